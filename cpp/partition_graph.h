// A graph by numbers, as partitioning walks over it.
#ifndef PASSLIB_PARTITION_GRAPH_H_
#define PASSLIB_PARTITION_GRAPH_H_

#include <vector>

#include "graph.h"

namespace passlib {

/// Lists of numbers, one for each of a row of keys, in one block.
class Lists {
 public:
  struct Range {
    const int* first;
    const int* last;
    const int* begin() const { return first; }
    const int* end() const { return last; }
    int size() const { return static_cast<int>(last - first); }
  };
  Lists() = default;
  /// Files `values[i]` under `keys[i]`; within a list, values keep their order. Negative keys are
  /// left out.
  Lists(std::size_t count, const std::vector<int>& keys, const std::vector<int>& values);
  Range operator[](int key) const {
    const auto position = static_cast<std::size_t>(key);
    return {values_.data() + starts_[position], values_.data() + starts_[position + 1]};
  }

 private:
  std::vector<std::size_t> starts_;
  std::vector<int> values_;
};

/// The nodes of a graph by position and its edges by number. Every node must stand after those that
/// it needs.
///
/// Edges: input 0 of node 0, input 1 of node 0, ..., then the outputs of the graph.
class NumberedGraph {
 public:
  static constexpr int kOutput = -1;  ///< the consumer of a graph's outputs

  explicit NumberedGraph(const Graph& graph);

  int nodes() const { return static_cast<int>(is_variable_.size()); }
  int edges() const { return static_cast<int>(producer_.size()); }
  bool isVariable(int node) const { return is_variable_[static_cast<std::size_t>(node)]; }
  int firstEdge(int node) const { return first_edge_[static_cast<std::size_t>(node)]; }
  int producer(int edge) const { return producer_[static_cast<std::size_t>(edge)]; }
  int consumer(int edge) const { return consumer_[static_cast<std::size_t>(edge)]; }
  /// Number of the consumer's input, or of the graph's output.
  int slot(int edge) const { return slot_[static_cast<std::size_t>(edge)]; }
  /// The edges that start at a node, in ascending order.
  Lists::Range uses(int node) const { return uses_[node]; }
  /// The nodes that a node needs, control dependencies included, each once, in ascending order.
  Lists::Range before(int node) const { return before_[node]; }
  /// The nodes that need a node.
  Lists::Range after(int node) const { return after_[node]; }
  /// Where an edge comes in the order in which MXNet's partitioner sorts inputs and outputs: a walk
  /// over the edges, depth first from the outputs, that leaves a node when its inputs are done.
  int rank(int edge) const { return rank_[static_cast<std::size_t>(edge)]; }

 private:
  struct Needs {
    std::vector<int> producers;
    std::vector<int> consumers;
  };
  NumberedGraph(const Graph& graph, const NodeTable& table);
  static Needs listNeeds(const Graph& graph, const NodeTable& table);
  void rankEdges();

  std::vector<bool> is_variable_;
  std::vector<int> first_edge_;
  std::vector<int> producer_;
  std::vector<int> consumer_;
  std::vector<int> slot_;
  std::vector<int> rank_;
  Lists uses_;
  Lists before_;
  Lists after_;
};

}  // namespace passlib

#endif  // PASSLIB_PARTITION_GRAPH_H_
