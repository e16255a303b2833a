// Names of nodes, and which of them is repeated.
#ifndef PASSLIB_GRAPH_NAME_TABLE_H_
#define PASSLIB_GRAPH_NAME_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/text_hash.h"

namespace passlib {

/// Finds names that occur twice. Their hashes are computed while the nodes are at hand: later they
/// are far away in memory, and are looked at only if they most likely have the same name.
class NameTable {
 public:
  /// The name of the next node.
  void add(const std::string& name) { hashes_.push_back(TextHash()(name)); }
  void clear() { hashes_.clear(); }
  /// Returns the position of the first of these nodes, whose names were added, that has the name of
  /// one before it; their number if there is none.
  std::size_t repeated(const std::vector<Node*>& nodes) const {
    const std::size_t count = hashes_.size();
    std::size_t mask = 15;
    while (mask < count + count / 2) mask = mask * 2 + 1;
    std::vector<Slot> slots;
    slots.resize(mask + 1);
    for (std::size_t pos = 0; pos < count; ++pos) {
      if (pos + 8 < count) __builtin_prefetch(&slots[hashes_[pos + 8] & mask]);
      const uint32_t high = static_cast<uint32_t>(hashes_[pos] >> 32);
      std::size_t place = hashes_[pos] & mask;
      for (; slots[place].next != 0; place = (place + 1) & mask) {
        if (slots[place].high != high) continue;
        if (nodes[slots[place].next - 1]->name == nodes[pos]->name) return pos;
      }
      slots[place] = Slot{static_cast<uint32_t>(pos + 1), high};
    }
    return count;
  }

 private:
  struct Slot {
    uint32_t next;  // behind the position of the node; 0: none
    uint32_t high;  // half of the hash
  };
  std::vector<uint64_t> hashes_;
};

}  // namespace passlib

#endif  // PASSLIB_GRAPH_NAME_TABLE_H_
