// A quick hash for tables that may forget.
#ifndef PASSLIB_GRAPH_SMALL_HASH_H_
#define PASSLIB_GRAPH_SMALL_HASH_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace passlib {

/// A place in a table of 512 that may forget, so that bytes may be chosen to collide. Four products
/// at a time, since each waits for the one before it.
inline std::size_t smallHash(const char* bytes, std::size_t size) {
  const uint64_t factor = 0x9e3779b97f4a7c15ULL;
  uint64_t lanes[4] = {size, 1, 2, 3};
  char few[32] = {0};
  if (size < sizeof(few)) {
    std::memcpy(few, bytes, size);
    bytes = few;
    size = sizeof(few);
  }
  const char* const last = bytes + size - sizeof(few);
  for (;; bytes = std::min(bytes + sizeof(few), last)) {
    for (int lane = 0; lane < 4; ++lane) {
      uint64_t word = 0;
      std::memcpy(&word, bytes + 8 * lane, 8);
      lanes[lane] = (lanes[lane] ^ word) * factor;
    }
    if (bytes == last) break;
  }
  uint64_t sum = lanes[0];
  for (int lane = 1; lane < 4; ++lane) {
    sum ^= (lanes[lane] << (16 * lane)) | (lanes[lane] >> (64 - 16 * lane));
  }
  return static_cast<std::size_t>(sum * factor >> 55);
}

}  // namespace passlib

#endif  // PASSLIB_GRAPH_SMALL_HASH_H_
