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

/// A flat table with open addressing; names refer to memory elsewhere.
template <typename Value>
class NameMap {
 public:
  explicit NameMap(std::size_t expected = 0) { resize(expected); }

  const Value* find(Bytes name) const {
    const Slot& slot = slots_[place(name)];
    return slot.used ? &slot.value : nullptr;
  }

  /// Adds a name. Returns its value, and whether it is new.
  std::pair<Value*, bool> insert(Bytes name, const Value& value) {
    if ((count_ + 1) * 2 > slots_.size()) grow();
    Slot& slot = slots_[place(name)];
    const bool fresh = !slot.used;
    if (fresh) {
      slot = Slot{name, value, true};
      ++count_;
    }
    return {&slot.value, fresh};
  }

 private:
  struct Slot {
    Bytes name;
    Value value{};
    bool used = false;
  };

  std::size_t place(Bytes name) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = mxnet::ext::detail::TextHash()(name) & mask;
    while (slots_[at].used && slots_[at].name != name) at = (at + 1) & mask;
    return at;
  }

  void resize(std::size_t expected) {
    std::size_t size = 16;
    while (size < expected * 2) size *= 2;
    slots_.resize(size);
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.used) slots_[place(slot.name)] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_READING_NAME_MAP_H_
