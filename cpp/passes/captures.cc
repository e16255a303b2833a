#include "captures.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

namespace passes {
namespace {

const char* const kCaptured = "__captured_inputs__";
const char* const kOuter = "__outer__";

/// The inputs of a node that its nested graphs capture: those from `first` on.
struct Captures {
  explicit Captures(const Node& node) : first(node.inputs.size()), used(node.inputs.size(), true) {
    const int64_t count = intAttr(&node, kCaptured, 0);
    if (count < 1 || static_cast<std::size_t>(count) > node.inputs.size()) return;
    first -= static_cast<std::size_t>(count);
    std::fill(used.begin() + static_cast<std::ptrdiff_t>(first), used.end(), false);
    for (const Graph* nested : node.subgraphs) {
      std::unordered_set<const Node*> heads;
      for (const NodeEntry& head : nested->outputs) heads.insert(head.node);
      for (const Node* variable : nested->inputs) {
        const std::size_t slot = slotOf(*variable);
        if (slot < first || slot >= used.size()) continue;
        if (!variable->outputs.empty() || heads.count(variable) != 0) used[slot] = true;
      }
    }
  }

  /// The input that a variable of a nested graph stands for; as many as there are if it is its own.
  std::size_t slotOf(const Node& variable) const {
    const int64_t slot = intAttr(&variable, kOuter, -1);
    return slot < 0 ? used.size() : static_cast<std::size_t>(slot);
  }

  bool allUsed() const { return std::find(used.begin(), used.end(), false) == used.end(); }

  std::size_t first;
  std::vector<bool> used;
};

/// Removes the variables of unused values, and numbers the others anew.
std::size_t renumber(const Captures& captures, Graph* nested) {
  std::vector<Node*> unwanted;
  for (Node* variable : nested->inputs) {
    const std::size_t slot = captures.slotOf(*variable);
    if (slot < captures.first || slot >= captures.used.size()) continue;
    if (!captures.used[slot]) {
      unwanted.push_back(variable);
      continue;
    }
    const auto end = captures.used.begin() + static_cast<std::ptrdiff_t>(slot);
    variable->attrs[kOuter] = std::to_string(std::count(captures.used.begin(), end, true));
  }
  nested->removeNodes(unwanted);
  return unwanted.size();
}

void dropInputs(const Captures& captures, Node* node) {
  std::vector<NodeEntry> left;
  for (std::size_t slot = 0; slot < node->inputs.size(); ++slot) {
    if (captures.used[slot]) left.push_back(node->inputs[slot]);
  }
  node->inputs.swap(left);
  node->attrs[kCaptured] = std::to_string(node->inputs.size() - captures.first);
}

/// Lists the uses of the inputs of some nodes anew, in one walk over the other side.
void relist(const std::unordered_set<Node*>& producers, const std::vector<Node*>& changed) {
  const std::unordered_set<const Node*> users(changed.begin(), changed.end());
  for (Node* producer : producers) {
    std::vector<NodeEntry>& uses = producer->outputs;
    const auto gone = [&users](const NodeEntry& use) { return users.count(use.node) != 0; };
    uses.erase(std::remove_if(uses.begin(), uses.end(), gone), uses.end());
  }
  for (Node* node : changed) {
    for (std::size_t slot = 0; slot < node->inputs.size(); ++slot) {
      node->inputs[slot].node->outputs.emplace_back(node, static_cast<int>(slot));
    }
  }
}

}  // namespace

std::size_t dropUnusedCaptures(Graph* graph, const std::unordered_set<const Graph*>& shared) {
  std::size_t removed = 0;
  std::vector<Node*> changed;
  std::unordered_set<Node*> producers;
  for (Node* node : graph->nodes) {
    if (node->subgraphs.empty()) continue;
    const auto is_shared = [&shared](const Graph* nested) { return shared.count(nested) != 0; };
    if (std::any_of(node->subgraphs.begin(), node->subgraphs.end(), is_shared)) continue;
    const Captures captures(*node);
    if (captures.allUsed()) continue;
    for (Graph* nested : node->subgraphs) removed += renumber(captures, nested);
    for (const NodeEntry& input : node->inputs) producers.insert(input.node);
    dropInputs(captures, node);
    changed.push_back(node);
  }
  relist(producers, changed);
  return removed;
}

}  // namespace passes
