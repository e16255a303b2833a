// Names of what crosses the border of a subgraph.
#ifndef PASSLIB_PARTITION_CUTTING_NAMES_H_
#define PASSLIB_PARTITION_CUTTING_NAMES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/text_table.h"

namespace passlib {

/// Returns the name of a node's output, without the name of the node before it.
using OutputSuffix = std::function<std::string(const Node& node, int output)>;

/// Names of outputs. Nodes with the same operator and attributes share what follows their names.
class OutputNames {
 public:
  explicit OutputNames(OutputSuffix suffix) : suffix_(std::move(suffix)) {}
  std::string name(const NodeEntry& entry);

 private:
  using Suffixes = TextMap<std::string>;

  OutputSuffix suffix_;
  Suffixes suffixes_;
  const Suffixes::value_type* last_ = nullptr;
  std::string kind_;
};

/// How often texts occurred. Keeps its memory when it is emptied, which takes no time: for many
/// small sets of texts, one after the other.
class TextCounts {
 public:
  void clear();
  /// Returns the count of a text, 0 at first. Valid until the next call.
  int& operator[](std::string_view text);

 private:
  struct Slot {
    uint32_t round = 0;  ///< the slot is empty if this is not the present one
    uint32_t number = 0;
    std::size_t hash = 0;
  };
  int& add(std::string_view text);
  void grow();

  std::vector<Slot> slots_;  ///< a power of two, at least twice as many as texts
  std::vector<std::pair<std::string, int>> texts_;
  std::size_t used_ = 0;
  uint32_t round_ = 1;
};

}  // namespace passlib

#endif  // PASSLIB_PARTITION_CUTTING_NAMES_H_
