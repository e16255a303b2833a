// A hash of texts that cannot be chosen to collide.
#ifndef PASSLIB_GRAPH_TEXT_HASH_H_
#define PASSLIB_GRAPH_TEXT_HASH_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <random>
#include <utility>

namespace passlib {

/// A hash of text under a key that differs from process to process (SipHash-1-3): texts of a file
/// cannot be chosen so that they collide.
class TextHash {
 public:
  std::size_t operator()(const char* text, std::size_t size) const {
    uint64_t state[4] = {key()[0] ^ 0x736f6d6570736575ULL, key()[1] ^ 0x646f72616e646f6dULL,
                         key()[0] ^ 0x6c7967656e657261ULL, key()[1] ^ 0x7465646279746573ULL};
    uint64_t word = 0;
    std::size_t pos = 0;
    for (; pos + 8 <= size; pos += 8) {
      std::memcpy(&word, text + pos, 8);
      absorb(word, state);
    }
    word = 0;
    std::memcpy(&word, text + pos, size - pos);
    absorb(word | (static_cast<uint64_t>(size) << 56), state);
    state[2] ^= 0xff;
    for (int round = 0; round < 3; ++round) mix(state);
    return static_cast<std::size_t>(state[0] ^ state[1] ^ state[2] ^ state[3]);
  }
  /// For containers of std::string and of std::string_view.
  template <typename TextType>
  std::size_t operator()(const TextType& text) const {
    return (*this)(text.data(), text.size());
  }

 private:
  static const uint64_t* key() {
    static const std::pair<uint64_t, uint64_t> made(makeKey(), makeKey());
    static const uint64_t words[2] = {made.first, made.second};
    return words;
  }
  static uint64_t makeKey() {
    uint64_t word = static_cast<uint64_t>(reinterpret_cast<std::uintptr_t>(&word));
    try {
      std::random_device device;
      word ^= (static_cast<uint64_t>(device()) << 32) ^ device();
    } catch (const std::exception&) {
      // No random device: the address, which differs from process to process, must do.
    }
    return word;
  }
  static uint64_t turn(uint64_t word, int bits) { return (word << bits) | (word >> (64 - bits)); }
  static void mix(uint64_t* state) {
    state[0] += state[1];
    state[1] = turn(state[1], 13) ^ state[0];
    state[0] = turn(state[0], 32);
    state[2] += state[3];
    state[3] = turn(state[3], 16) ^ state[2];
    state[0] += state[3];
    state[3] = turn(state[3], 21) ^ state[0];
    state[2] += state[1];
    state[1] = turn(state[1], 17) ^ state[2];
    state[2] = turn(state[2], 32);
  }
  static void absorb(uint64_t word, uint64_t* state) {
    state[3] ^= word;
    mix(state);
    state[0] ^= word;
  }
};

}  // namespace passlib

#endif  // PASSLIB_GRAPH_TEXT_HASH_H_
