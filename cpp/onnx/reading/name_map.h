// The values of a graph by name.
#ifndef PASSLIB_ONNX_READING_NAME_MAP_H_
#define PASSLIB_ONNX_READING_NAME_MAP_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "lib_api.h"
#include "onnx/wire/fields.h"

namespace passlib::onnx {

/// A flat table with open addressing; names refer to memory elsewhere. An empty one has no memory.
template <typename Value>
class NameMap {
 public:
  explicit NameMap(std::size_t expected = 0) {
    if (expected > 0) resize(expected);
  }

  const Value* find(Bytes name) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[place(name, hashOf(name))];
    return slot.hash != 0 ? &slot.value : nullptr;
  }

  /// Adds a name. Returns its value, and whether it is new.
  std::pair<Value*, bool> insert(Bytes name, const Value& value) {
    if ((count_ + 1) * 2 > slots_.size()) grow();
    const uint32_t hash = hashOf(name);
    Slot& slot = slots_[place(name, hash)];
    const bool fresh = slot.hash == 0;
    if (fresh) {
      slot = Slot{name, value, hash};
      ++count_;
    }
    return {&slot.value, fresh};
  }

 private:
  /// Names lie all over the file: they are read only where hashes are equal, and not to grow.
  struct Slot {
    Bytes name;
    Value value{};
    uint32_t hash = 0;  ///< 0 for a free slot
  };

  static uint32_t hashOf(Bytes name) {
    return static_cast<uint32_t>(mxnet::ext::host::TextHash()(name)) | 1U << 31;
  }

  std::size_t place(Bytes name, uint32_t hash) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash & mask;
    while (slots_[at].hash != 0 && (slots_[at].hash != hash || slots_[at].name != name)) {
      at = (at + 1) & mask;
    }
    return at;
  }

  void resize(std::size_t expected) {
    std::size_t size = 16;
    while (size < expected * 2) size *= 2;
    slots_.resize(size);
  }

  void grow() {
    std::vector<Slot> old(slots_.empty() ? 16 : slots_.size() * 2);
    old.swap(slots_);
    const std::size_t mask = slots_.size() - 1;
    for (const Slot& slot : old) {
      if (slot.hash == 0) continue;
      std::size_t at = slot.hash & mask;
      while (slots_[at].hash != 0) at = (at + 1) & mask;
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_READING_NAME_MAP_H_
