// Replacement of groups of nodes in a graph, each by one node with a subgraph.
#ifndef PASSLIB_PARTITION_CUT_H_
#define PASSLIB_PARTITION_CUT_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/text_table.h"
#include "partition/graph.h"

namespace passlib {

/// Returns the name of a node's output, without the name of the node before it.
using OutputSuffix = std::function<std::string(const Node& node, int output)>;

/// Sets `outputs` of a graph's nodes by their inputs.
void linkOutputs(Graph* graph);

class Cutter;

/// A group of nodes as a graph of its own, with variables for its inputs from outside. The nodes
/// still belong to the whole graph: unless the cut is accepted, its destructor restores the graph.
class Cut {
 public:
  Cut(Cutter* cutter, int group);
  ~Cut();
  Cut(const Cut&) = delete;
  Cut& operator=(const Cut&) = delete;

  Graph* graph() { return graph_.get(); }
  /// Replaces the group in the whole graph by one node.
  void accept(const std::string& op, const std::string& name,
              const std::map<std::string, std::string>& attributes);

 private:
  struct Input {
    int edge;
    std::size_t variable;
    NodeEntry source;
  };
  void cutInputs();
  void cutOutputs();
  void cutControl();
  Node* addVariable(const NodeEntry& source);
  std::string variableName(const NodeEntry& source);

  Cutter& cutter_;
  int group_;
  const std::vector<int>& members_;
  std::unique_ptr<Graph> graph_;
  std::vector<Node*> variables_;
  std::vector<NodeEntry> sources_;            ///< of the variables
  std::vector<Input> inputs_;                 ///< all cut edges
  std::vector<std::pair<int, int>> outputs_;  ///< edges that leave the group, and their outputs
  std::map<std::string, int> times_named_;    ///< how many variables are named for an output
  TextSet names_;
  std::map<Node*, std::vector<Node*>> control_;  ///< original control dependencies
  std::vector<Node*> control_outside_;
  bool accepted_ = false;
};

/// Cuts groups out of a graph one at a time.
class Cutter {
 public:
  /// `merge_equal`: one input, or output, for all uses of the same value.
  Cutter(Graph* graph, const NumberedGraph& numbers, const std::vector<std::vector<int>>& groups,
         OutputSuffix suffix, bool merge_equal);

  /// Completes the graph after the last cut. `linked`: subgraphs were linked when they were cut.
  void finish(bool linked);

 private:
  friend class Cut;
  Node* node(int position) const { return graph_->nodes[at(position)]; }
  int groupOf(int node) const { return group_of_[at(node)]; }
  /// The present end of an edge; null if it was merged into another edge.
  NodeEntry* target(int edge);
  std::string outputName(const NodeEntry& entry);

  Graph* graph_;
  const NumberedGraph& numbers_;
  const std::vector<std::vector<int>>& groups_;
  OutputSuffix suffix_;
  bool merge_equal_;
  std::vector<int> group_of_;
  std::vector<Node*> accepted_;            ///< of each group: the node that replaced it
  std::vector<int> new_slot_;              ///< of each edge: its input of that node, or -1
  std::map<const Node*, Node*> replaced_;  ///< members of groups, for control dependencies
  bool has_control_ = false;
  TextMap<std::string> suffixes_;
};

}  // namespace passlib

#endif  // PASSLIB_PARTITION_CUT_H_
