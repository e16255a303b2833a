// One group of nodes as a graph of its own.
#ifndef PASSLIB_PARTITION_CUTTING_CUT_H_
#define PASSLIB_PARTITION_CUTTING_CUT_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/check.h"
#include "partition/cutting/cutter.h"

namespace passlib {

/// A group of nodes as a graph of its own, with variables for its inputs from outside. The nodes
/// still belong to the whole graph: unless the cut is accepted, its destructor restores the graph.
class Cut {
 public:
  Cut(Cutter* cutter, int group);
  ~Cut();
  Cut(const Cut&) = delete;
  Cut& operator=(const Cut&) = delete;

  Graph* graph() { return graph_.get(); }
  /// How the nodes of the new cut stand, as far as that follows from their numbers.
  NodeOrder order();
  /// Replaces the group in the whole graph by one node.
  void accept(const std::string& op, const std::string& name,
              const std::map<std::string, std::string>& attributes);

 private:
  void cutInputs();
  void cutOutputs();
  void cutControl();
  Node* addVariable(const NodeEntry& source, bool only);
  std::string variableName(const NodeEntry& source, bool only);

  Cutter& cutter_;
  int group_;
  const std::vector<int>& members_;
  std::unique_ptr<Graph> graph_;
  CutLists& lists_;
  std::map<Node*, std::vector<Node*>> control_;  ///< original control dependencies
  std::vector<Node*> control_outside_;
  bool accepted_ = false;
};

}  // namespace passlib

#endif  // PASSLIB_PARTITION_CUTTING_CUT_H_
