/*
 * removeDeadNodes: removes nodes that neither an output of the model nor a side effect needs.
 *
 * A node is live if an output depends on it, if it has side effects (ARK's communication, unknown
 * operators), if it writes to memory or a state that another live node uses, or if a live node has
 * a control dependency on it. Subgraphs are processed first. They keep the variables that stand for
 * inputs of the operator itself; values that they capture and do not use are no longer captured.
 */
#include <algorithm>
#include <memory>
#include <unordered_set>

#include "captures.h"
#include "facts/family.h"
#include "facts/memory.h"
#include "nested.h"

namespace passes {
namespace {

class LiveNodes {
 public:
  LiveNodes(const Graph& graph, const Family& family)
      : family_(family), table_(graph.nodes), live_(graph.nodes.size(), 0) {
    if (family.name() == "ark") memory_ = std::make_unique<Memory>(graph);
    for (const NodeEntry& head : graph.outputs) mark(head.node);
    for (Node* node : graph.nodes) {
      if (family.hasEffects(*node) || (memory_ && memory_->writesToInput(*node))) mark(node);
    }
    while (!pending_.empty()) {
      Node* node = pending_.back();
      pending_.pop_back();
      for (const NodeEntry& input : node->inputs) mark(input.node);
      for (Node* other : node->control_deps) mark(other);
      markWriters(*node);
    }
  }

  bool has(const Node* node) const { return live_[slot(node)] != 0; }

 private:
  std::size_t slot(const Node* node) const { return static_cast<std::size_t>(table_.find(node)); }

  void mark(Node* node) {
    char& live = live_[slot(node)];
    if (live != 0) return;
    live = 1;
    pending_.push_back(node);
  }

  /// Marks nodes that write to memory or states that a live node uses.
  void markWriters(const Node& node) {
    if (memory_) {
      const std::size_t region = memory_->region(node);
      if (!regions_.insert(region).second) return;
      for (Node* writer : memory_->writersOf(region)) mark(writer);
      return;
    }
    if (node.op != "null") return;
    for (const NodeEntry& use : node.outputs) {
      for (std::size_t state : family_.stateInputs(*use.node)) {
        if (state == static_cast<std::size_t>(use.entry)) mark(use.node);
      }
    }
  }

  const Family& family_;
  NodeTable table_;
  std::vector<char> live_;
  std::unique_ptr<Memory> memory_;
  std::unordered_set<std::size_t> regions_;
  std::vector<Node*> pending_;
};

std::size_t removeDead(Graph* graph, const Family& family, bool nested) {
  const LiveNodes live(*graph, family);
  std::vector<Node*> dead;
  for (Node* node : graph->nodes) {
    if (live.has(node)) continue;
    if (node->op == "null" && (nested || !isParameter(node))) continue;
    dead.push_back(node);
  }
  graph->removeNodes(dead);
  return dead.size();
}

MXReturnValue removeDeadNodes(Graph* graph, const OptionValues& options) {
  const Family family(*graph);
  std::size_t removed = 0;
  // Inner graphs first: values that they no longer use may be dead in the graphs around them.
  // Processing the subgraphs of dead nodes is useless, but harmless.
  std::vector<Graph*> graphs = withNested(graph);
  std::reverse(graphs.begin(), graphs.end());
  std::unordered_set<const Graph*> known;
  std::unordered_set<const Graph*> shared;
  for (const Graph* each : graphs) {
    if (!known.insert(each).second) shared.insert(each);
  }
  for (Graph* each : graphs) {
    removed += dropUnusedCaptures(each, shared);
    removed += removeDead(each, family, each != graph);
  }
  if (options.boolean("verbose")) {
    std::cout << "removeDeadNodes: " << removed << " nodes removed\n";
  }
  return MX_SUCCESS;
}

REGISTER_PASS(removeDeadNodes)
    .setBody(removeDeadNodes)
    .describe("Remove operators that no output depends on, then unused weights and constants.")
    .option("verbose", false, "Print the number of removed nodes.")
    .needsWeights(false)
    .needsShapes(false)
    .exact()
    .joins("clean", "mergeEqualNodes")
    .joins("simplify", "mergeEqualNodes");

}  // namespace
}  // namespace passes
