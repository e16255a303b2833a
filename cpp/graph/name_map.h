// A table by name, which refers to the names.
#ifndef PASSLIB_GRAPH_NAME_MAP_H_
#define PASSLIB_GRAPH_NAME_MAP_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/text_hash.h"

namespace passlib {

/// A table with open addressing; names refer to memory elsewhere. An empty one has no memory.
///
/// A search reads hashes and places of eight bytes, so that a large table misses the cache once.
/// Names, which lie all over the file, are read only where hashes are equal.
template <typename Value>
class NameMap {
 public:
  explicit NameMap(std::size_t expected = 0) {
    if (expected == 0) return;
    entries_.reserve(expected);
    resize(expected);
  }

  bool empty() const { return entries_.empty(); }

  const Value* find(std::string_view name) const {
    if (slots_.empty()) return nullptr;
    if (entries_.size() <= kFew) {  // most names differ in their sizes, which takes no hash
      for (const Entry& each : entries_) {
        if (each.name == name) return &each.value;
      }
      return nullptr;
    }
    const Slot& slot = slots_[place(name, hashOf(name))];
    return slot.number != 0 ? &entries_[slot.number - 1].value : nullptr;
  }

  Value* find(std::string_view name) {
    return const_cast<Value*>(static_cast<const NameMap*>(this)->find(name));
  }

  /// Adds a name. Returns its value, and whether it is new.
  std::pair<Value*, bool> insert(std::string_view name, const Value& value) {
    return insert(name, hashOf(name), value);
  }

  /// Adds `count` names, the one of a number being `name_of(number)`, and calls `added(number,
  /// fresh)` after each. Slots are fetched into the cache ahead of their use.
  template <typename NameOf, typename ValueOf, typename Added>
  void insertAll(std::size_t count, NameOf name_of, ValueOf value_of, Added added) {
    constexpr std::size_t kAhead = 16;
    uint32_t hashes[kAhead] = {};
    reserve(entries_.size() + count);
    for (std::size_t number = 0; number < count + kAhead; ++number) {
      uint32_t& hash = hashes[number % kAhead];
      if (number >= kAhead) {
        const std::size_t now = number - kAhead;
        added(now, insert(name_of(now), hash, value_of(now)).second);
      }
      if (number >= count) continue;
      hash = hashOf(name_of(number));
      __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]);
    }
  }

 private:
  struct Entry {
    std::string_view name;
    Value value;
  };
  struct Slot {
    uint32_t hash = 0;
    uint32_t number = 0;  ///< of an entry, from 1; 0 for a free slot
  };

  std::pair<Value*, bool> insert(std::string_view name, uint32_t hash, const Value& value) {
    if ((entries_.size() + 1) * 2 > slots_.size()) resize(entries_.size() + 1);
    Slot& slot = slots_[place(name, hash)];
    const bool fresh = slot.number == 0;
    if (fresh) {
      entries_.push_back({name, value});
      slot = {hash, static_cast<uint32_t>(entries_.size())};
    }
    return {&entries_[slot.number - 1].value, fresh};
  }

  void reserve(std::size_t expected) {
    entries_.reserve(expected);
    if (expected * 2 > slots_.size()) resize(expected);
  }

  static uint32_t hashOf(std::string_view name) { return static_cast<uint32_t>(TextHash()(name)); }

  std::size_t place(std::string_view name, uint32_t hash) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash & mask;
    while (slots_[at].number != 0 &&
           (slots_[at].hash != hash || entries_[slots_[at].number - 1].name != name)) {
      at = (at + 1) & mask;
    }
    return at;
  }

  /// Makes room for as many names.
  void resize(std::size_t expected) {
    std::size_t size = 16;
    while (size < expected * 2) size *= 2;
    std::vector<Slot> old(size);
    old.swap(slots_);
    const std::size_t mask = size - 1;
    for (const Slot& slot : old) {
      if (slot.number == 0) continue;
      std::size_t at = slot.hash & mask;
      while (slots_[at].number != 0) at = (at + 1) & mask;
      slots_[at] = slot;
    }
  }

  static constexpr std::size_t kFew = 4;

  std::vector<Slot> slots_;
  std::vector<Entry> entries_;
};

}  // namespace passlib

#endif  // PASSLIB_GRAPH_NAME_MAP_H_
