/*
 * removeDeadNodes: takes out what neither an output of the model nor a side effect needs.
 *
 * A node stays if an output needs it, if it does something else than giving outputs (ARK's
 * communication, operators that nobody knows), if it writes to memory or to a state that something
 * else uses which stays, or if one that stays waits for it. Nested graphs are gone through as well;
 * their variables stay, for the node around them counts them.
 *
 * Option: verbose=1 prints how many nodes went.
 */
#include <memory>
#include <unordered_set>

#include "family.h"
#include "memory.h"
#include "nested.h"
#include "options.h"

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

  /// Marks those that write to what a live node uses.
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
    if (node->op == "null" && (nested || !family.isParameter(*node))) continue;
    dead.push_back(node);
  }
  graph->removeNodes(dead);
  return dead.size();
}

MXReturnValue removeDeadNodes(Graph* graph, const options_map_t& options) {
  requireKnown(options, {"verbose"});
  const Family family(*graph);
  std::size_t removed = 0;
  // A graph that is nested in a dead node is gone through for nothing, and no harm.
  for (Graph* each : withNested(graph)) removed += removeDead(each, family, each != graph);
  if (flag(options, "verbose")) {
    std::cout << "removeDeadNodes: " << removed << " nodes removed\n";
  }
  return MX_SUCCESS;
}

REGISTER_PASS(removeDeadNodes).setBody(removeDeadNodes);

}  // namespace
}  // namespace passes
