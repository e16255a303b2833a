// Taking groups of nodes out of a graph, and putting a node in the place of each.
#ifndef PASSLIB_PARTITION_CUT_H_
#define PASSLIB_PARTITION_CUT_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "partition_graph.h"

namespace passlib {

/// What an output of a node is called, behind the name of the node.
using OutputSuffix = std::function<std::string(const Node& node, int output)>;

class Cutter;

/// A group of nodes as a graph of its own, whose variables stand for what the group takes from
/// outside. The nodes are still those of the whole graph: unless the cut is accepted, its end puts
/// everything back as it was.
class Cut {
 public:
  Cut(Cutter* cutter, int group);
  ~Cut();
  Cut(const Cut&) = delete;
  Cut& operator=(const Cut&) = delete;

  Graph* graph() { return graph_.get(); }
  /// Makes the group one node of the whole graph.
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
  std::vector<Input> inputs_;                 ///< every edge that was cut
  std::vector<std::pair<int, int>> outputs_;  ///< edges that leave the group, and their outputs
  std::map<std::string, int> times_named_;    ///< how many variables are named after an output
  std::unordered_set<std::string> names_;
  std::map<Node*, std::vector<Node*>> control_;  ///< control dependencies as they were
  std::vector<Node*> control_outside_;
  bool accepted_ = false;
};

/// Cuts groups out of a graph one after the other.
class Cutter {
 public:
  /// @param merge_equal  one input for all uses of the same value, and one output
  Cutter(Graph* graph, const NumberedGraph& numbers, const std::vector<std::vector<int>>& groups,
         OutputSuffix suffix, bool merge_equal);

  /// Puts the graph in order once the last cut is done.
  void finish();

 private:
  friend class Cut;
  Node* node(int position) const { return graph_->nodes[static_cast<std::size_t>(position)]; }
  int groupOf(int node) const { return group_of_[static_cast<std::size_t>(node)]; }
  /// Where an edge ends by now; null if another edge stands for it.
  NodeEntry* target(int edge);
  std::string outputName(const NodeEntry& entry);

  Graph* graph_;
  const NumberedGraph& numbers_;
  const std::vector<std::vector<int>>& groups_;
  OutputSuffix suffix_;
  bool merge_equal_;
  std::vector<int> group_of_;
  std::vector<Node*> accepted_;  ///< of each group: the node in its place
  std::vector<int> new_slot_;    ///< of each edge: the input of that node which it is now, or -1
  std::map<const Node*, Node*> replaced_;  ///< members of groups that control dependencies name
  bool has_control_ = false;
  std::map<std::string, std::string> suffixes_;
};

}  // namespace passlib

#endif  // PASSLIB_PARTITION_CUT_H_
