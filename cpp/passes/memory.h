// Who writes to which memory, in graphs of ARK.
#ifndef PASSES_MEMORY_H_
#define PASSES_MEMORY_H_

#include <string>
#include <vector>

#include "lib_api.h"

namespace passes {

using namespace mxnet::ext;

/// The memory that the nodes of an ARK graph share through views, and by the numbers of their
/// buffers. Where edges and numbers disagree, because an earlier pass moved edges, both count.
class Memory {
 public:
  /// Linear in the graph. `graph` must outlive this and keep its edges while it is asked.
  explicit Memory(const Graph& graph);

  /// The piece of memory, told by a number, in which a node's outputs lie.
  std::size_t region(const Node& node) const { return find(slot(node)); }

  /// The nodes that write to a region.
  const std::vector<Node*>& writersOf(std::size_t region) const { return groups_[region].writers; }

  /// Whether a node writes to the memory of an input of the model.
  bool writesToInput(const Node& node) const;

  /// Whether a node gives memory that it alone declares and writes to, or, if it is a view, that
  /// one node at most writes to, and before it.
  bool givesFixedValue(const Node& node) const;

  /// Whether all that a node reads is the same whenever it runs.
  bool readsFixedValues(const Node& node) const;

  /// The declaration of what such a node writes to; null if there is none.
  static Node* destination(const Node& node);

  /// How many inputs a node reads; those behind them it writes.
  static std::size_t readCount(const Node& node);

  /// What the outputs are like, but for which memory they are in.
  static std::string geometry(const Node& node);

 private:
  struct Group {
    std::vector<Node*> writers;
    std::size_t declarations = 0;
    bool input = false;
    bool remote = false;  // of another rank, or seen by one
  };
  std::size_t slot(const Node& node) const;
  std::size_t find(std::size_t slot) const;
  void unite(std::size_t one, std::size_t other);
  const Group& group(const Node& node) const { return groups_[region(node)]; }
  const Node& source(const Node& node) const;
  bool isFixed(const Node& node) const;

  NodeTable table_;
  mutable std::vector<std::size_t> parents_;
  std::vector<Group> groups_;
  mutable std::vector<const Node*> sources_;
};

}  // namespace passes

#endif  // PASSES_MEMORY_H_
