// Replacement of groups of nodes in a graph, each by one node with a subgraph.
#ifndef PASSLIB_PARTITION_CUTTING_CUTTER_H_
#define PASSLIB_PARTITION_CUTTING_CUTTER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "graph/check.h"
#include "graph/notes/post_order.h"
#include "partition/cutting/names.h"
#include "partition/graph.h"

namespace passlib {

/// Sets `outputs` of a graph's nodes by their inputs.
void linkOutputs(Graph* graph);

/// The parts of a cut. The next cut uses the memory again: large graphs have many small ones.
struct CutLists {
  struct Input {
    int edge;
    std::size_t variable;
    NodeEntry source;
  };
  void clear() {
    variables.clear();
    sources.clear();
    inputs.clear();
    outputs.clear();
  }

  std::vector<Node*> variables;
  std::vector<NodeEntry> sources;            ///< of the variables
  std::vector<Input> inputs;                 ///< all cut edges
  std::vector<std::pair<int, int>> outputs;  ///< edges that leave the group, and their outputs
};

/// Cuts groups out of a graph one at a time.
class Cutter {
 public:
  /// `merge_equal`: one input, or output, for all uses of the same value.
  Cutter(Graph* graph, const NumberedGraph& numbers, const std::vector<std::vector<int>>& groups,
         OutputSuffix suffix, bool merge_equal);

  /// Completes the graph after the last cut. `linked`: subgraphs were linked when they were cut,
  /// and no nodes but those of the groups were changed meanwhile. Then the variables are listed
  /// anew, too, and it returns how the nodes stand; kAny if that is not known.
  NodeOrder finish(bool linked);
  /// Which nodes of the completed graph were there before.
  std::vector<bool> oldNodes() const;

 private:
  friend class Cut;
  struct Accepted {
    Node* node = nullptr;  ///< the node that replaced the group
    std::size_t first_edge = 0;
    std::size_t end_edge = 0;
  };
  Node* node(int position) const { return graph_->nodes[at(position)]; }
  int groupOf(int node) const { return group_of_[at(node)]; }
  /// The replacement of the group of a node; null if there is none.
  const Accepted* replacementOf(int node) const {
    const int group = groupOf(node);
    return group < 0 || accepted_[at(group)].node == nullptr ? nullptr : &accepted_[at(group)];
  }
  /// Whether a node is the last of its group.
  bool isLast(int node) const { return groups_[at(groupOf(node))].back() == node; }
  /// The present end of an edge; null if it was merged into another edge.
  NodeEntry* target(int edge);
  /// Asks the processor for what the cuts of the groups after this one will read: nodes lie far
  /// apart.
  void prefetch(int group) const;
  void prefetchNode(int position) const;
  NodeOrder order();
  void renewControl();

  Graph* graph_;
  const NumberedGraph& numbers_;
  const std::vector<std::vector<int>>& groups_;
  bool merge_equal_;
  OutputNames output_names_;
  std::vector<int> group_of_;
  std::vector<Accepted> accepted_;         ///< by group
  std::vector<int> new_slot_;              ///< of each edge: its input of that node, or -1
  std::vector<int> new_edges_;             ///< the edges that became inputs of those nodes in turn
  std::map<const Node*, Node*> replaced_;  ///< members of groups, for control dependencies
  // Memory that each cut uses.
  CutLists lists_;
  std::vector<int> edges_;
  std::vector<std::pair<int, NodeEntry>> leaving_;
  TextCounts times_named_;  ///< how many variables are named for an output
  TextCounts names_;
  std::vector<uint32_t> place_;  ///< of nodes: where they stand in the graph that is looked at
  EdgePositions positions_;
  std::vector<PostOrderStep> path_;
};

}  // namespace passlib

#endif  // PASSLIB_PARTITION_CUTTING_CUTTER_H_
