// Nodes and edges of a graph as numbers, for the walks of partitioning.
#ifndef PASSLIB_PARTITION_GRAPH_H_
#define PASSLIB_PARTITION_GRAPH_H_

#include <vector>

#include "graph/graph.h"

namespace passlib {

/// The number as an index.
inline std::size_t at(int number) { return static_cast<std::size_t>(number); }

/// Lists of numbers, one for each key from 0, in one block of memory.
class Lists {
 public:
  struct Range {
    const int* first;
    const int* last;
    const int* begin() const { return first; }
    const int* end() const { return last; }
    int size() const { return static_cast<int>(last - first); }
  };
  Lists() : starts_(1, 0) {}
  /// The list of a key has the positions in `keys` at which it stands.
  Lists(std::size_t count, const std::vector<int>& keys);
  void reserve(std::size_t count, std::size_t values) {
    starts_.reserve(count + 1);
    values_.reserve(values);
  }
  /// Adds the list of the next key. Throws GraphError if no int can count all values.
  void append(const std::vector<int>& list);
  /// The list of a key has the keys whose lists have its number, in ascending order.
  Lists transposed(std::size_t count) const;
  Range operator[](int key) const {
    return {values_.data() + starts_[at(key)], values_.data() + starts_[at(key) + 1]};
  }

 private:
  std::vector<int> starts_;
  std::vector<int> values_;
};

/// The nodes of a graph by position and its edges by number. Every node must come after those it
/// depends on.
///
/// Edges: input 0 of node 0, input 1 of node 0, ..., then the outputs of the graph.
class NumberedGraph {
 public:
  static constexpr int kOutput = -1;  ///< the consumer of a graph's outputs

  explicit NumberedGraph(const Graph& graph);

  int nodes() const { return static_cast<int>(is_variable_.size()); }
  int edges() const { return static_cast<int>(producer_.size()); }
  bool isVariable(int node) const { return is_variable_[at(node)]; }
  int firstEdge(int node) const { return first_edge_[at(node)]; }
  int producer(int edge) const { return producer_[at(edge)]; }
  int consumer(int edge) const { return consumer_[at(edge)]; }
  /// Number of the consumer's input, or of the graph's output.
  int slot(int edge) const {
    const int node = consumer(edge);
    return edge - (node == kOutput ? first_edge_.back() : firstEdge(node));
  }
  /// The edges from a node, in ascending order.
  Lists::Range uses(int node) const { return uses_[node]; }
  /// The nodes that a node depends on, by edges or control, each once, in ascending order.
  Lists::Range before(int node) const { return before_[node]; }
  /// The nodes that depend on a node.
  Lists::Range after(int node) const { return after_[node]; }
  /// The position of an edge in the order in which MXNet's partitioner sorts inputs and outputs:
  /// depth first from the outputs, in post-order.
  int rank(int edge) const { return rank_[at(edge)]; }
  /// Whether there are control dependencies.
  bool hasControl() const { return has_control_; }

 private:
  void rankEdges();

  bool has_control_ = false;
  std::vector<bool> is_variable_;
  std::vector<int> first_edge_;
  std::vector<int> producer_;
  std::vector<int> consumer_;
  std::vector<int> rank_;
  Lists uses_;
  Lists before_;
  Lists after_;
};

}  // namespace passlib

#endif  // PASSLIB_PARTITION_GRAPH_H_
