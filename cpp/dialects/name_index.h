// Numbers by name, for names that stay where they are.
#ifndef PASSLIB_DIALECTS_NAME_INDEX_H_
#define PASSLIB_DIALECTS_NAME_INDEX_H_

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "lib_api.h"

namespace passlib {

/// A table without memory of its own for each name, of which files have hundreds of thousands.
class NameIndex {
 public:
  static constexpr int32_t kNone = -1;

  int32_t find(std::string_view name) const { return slots_[slotOf(name, hashOf(name))].number; }

  /// Returns the number of a name, or gives it this one and returns kNone.
  int32_t add(std::string_view name, int32_t number) {
    const uint32_t hash = hashOf(name);
    Slot& slot = slots_[slotOf(name, hash)];
    if (slot.number != kNone) return slot.number;
    slot = Slot{name, hash, number};
    if (++count_ * 2 > slots_.size()) grow();
    return kNone;
  }

 private:
  struct Slot {
    std::string_view name;
    uint32_t hash = 0;
    int32_t number = kNone;
  };

  static uint32_t hashOf(std::string_view name) {
    return static_cast<uint32_t>(mxnet::ext::detail::TextHash()(name));
  }

  std::size_t slotOf(std::string_view name, uint32_t hash) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash & mask;
    while (slots_[at].number != kNone && (slots_[at].hash != hash || slots_[at].name != name)) {
      at = (at + 1) & mask;
    }
    return at;
  }

  void grow() {
    std::vector<Slot> before(slots_.size() * 2);
    before.swap(slots_);
    for (const Slot& slot : before) {
      if (slot.number != kNone) slots_[slotOf(slot.name, slot.hash)] = slot;
    }
  }

  std::size_t count_ = 0;
  std::vector<Slot> slots_ = std::vector<Slot>(64);
};

}  // namespace passlib

#endif  // PASSLIB_DIALECTS_NAME_INDEX_H_
