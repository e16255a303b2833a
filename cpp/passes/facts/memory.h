// Reads and writes of memory in graphs of ARK.
#ifndef PASSES_FACTS_MEMORY_H_
#define PASSES_FACTS_MEMORY_H_

#include <string>
#include <vector>

#include "lib_api.h"

namespace passes {

using namespace mxnet::ext;

/// The memory that the nodes of an ARK graph share through views and buffer numbers. If edges and
/// numbers disagree, because an earlier pass moved edges, both count.
class Memory {
 public:
  /// Linear in the graph, which must outlive this object and keep its edges meanwhile.
  explicit Memory(const Graph& graph);

  /// The number of the memory region of a node's outputs.
  std::size_t region(const Node& node) const { return find(slot(node)); }

  /// The nodes that write to a region.
  const std::vector<Node*>& writersOf(std::size_t region) const { return groups_[region].writers; }

  /// Whether a node writes to the memory of an input of the model.
  bool writesToInput(const Node& node) const;

  /// Whether a node's result is in memory that only it declares and writes to; for a view, in
  /// memory written by at most one node, and before it.
  bool givesFixedValue(const Node& node) const;

  /// Whether everything that a node reads has the same value at any time it runs.
  bool readsFixedValues(const Node& node) const;

  /// The declaration of the memory that a node writes to, or null.
  static Node* destination(const Node& node);

  /// The number of inputs that a node reads; it writes to those after them.
  static std::size_t readCount(const Node& node);

  /// A description of the outputs without their place in memory.
  static std::string geometry(const Node& node);

 private:
  struct Group {
    std::vector<Node*> writers;
    std::size_t declarations = 0;
    bool input = false;
    bool remote = false;  // of another rank, or visible to one
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

#endif  // PASSES_FACTS_MEMORY_H_
