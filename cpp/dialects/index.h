// Numbers by name or Id, of which files have hundreds of thousands.
#ifndef PASSLIB_DIALECTS_INDEX_H_
#define PASSLIB_DIALECTS_INDEX_H_

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "lib_api.h"

namespace passlib {

/// A table without memory of its own for each key. Texts must stay where they are. Keys of a file
/// cannot be chosen so that they collide.
template <typename Key>
class Index {
 public:
  static constexpr int32_t kNone = -1;

  int32_t find(const Key& key) const { return slots_[slotOf(key, hashOf(key))].number; }

  /// Returns the number of a key, or gives it this one and returns kNone.
  int32_t add(const Key& key, int32_t number) {
    const uint32_t hash = hashOf(key);
    Slot& slot = slots_[slotOf(key, hash)];
    if (slot.number != kNone) return slot.number;
    slot = Slot{key, hash, number};
    if (++count_ * 2 > slots_.size()) grow();
    return kNone;
  }

 private:
  struct Slot {
    Key key{};
    uint32_t hash = 0;
    int32_t number = kNone;
  };

  static uint32_t hashOf(std::string_view text) {
    return static_cast<uint32_t>(mxnet::ext::host::TextHash()(text));
  }
  static uint32_t hashOf(int64_t id) {
    return hashOf(std::string_view(reinterpret_cast<const char*>(&id), sizeof(id)));
  }

  std::size_t slotOf(const Key& key, uint32_t hash) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash & mask;
    while (slots_[at].number != kNone && (slots_[at].hash != hash || slots_[at].key != key)) {
      at = (at + 1) & mask;
    }
    return at;
  }

  void grow() {
    std::vector<Slot> before(slots_.size() * 2);
    before.swap(slots_);
    for (const Slot& slot : before) {
      if (slot.number != kNone) slots_[slotOf(slot.key, slot.hash)] = slot;
    }
  }

  std::size_t count_ = 0;
  std::vector<Slot> slots_ = std::vector<Slot>(64);
};

using NameIndex = Index<std::string_view>;
using IdIndex = Index<int64_t>;

}  // namespace passlib

#endif  // PASSLIB_DIALECTS_INDEX_H_
