#include "library/calls/restore.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/text_table.h"

namespace passlib {

void restoreLost(const Graph& before, Graph* after) {
  // Names of operators may repeat: the first node of a name matches the first, and so on.
  TextViewMap<std::vector<const Node*>> by_name;
  for (auto node = before.nodes.rbegin(); node != before.nodes.rend(); ++node) {
    by_name[(*node)->name].push_back(*node);
  }
  std::unordered_map<const Node*, Node*> successor;
  std::vector<std::pair<const Node*, Node*>> pairs;
  for (Node* node : after->nodes) {
    const auto found = by_name.find(node->name);
    if (found == by_name.end() || found->second.empty()) continue;
    const Node* original = found->second.back();
    if (original->op != node->op) continue;
    found->second.pop_back();
    successor.emplace(original, node);
    pairs.emplace_back(original, node);
  }
  for (const auto& [original, node] : pairs) {
    if (node->num_outputs == 0 && node->attrs == original->attrs) {
      mxnet::ext::host::declareOutputs(node, original->num_outputs);
    }
    if (node->control_deps.empty()) {
      for (const Node* dep : original->control_deps) {
        const auto found = successor.find(dep);
        if (found != successor.end()) node->control_deps.push_back(found->second);
      }
    }
    const std::size_t count = std::min(node->inputs.size(), original->inputs.size());
    for (std::size_t i = 0; i < count; ++i) {
      const NodeEntry& old = original->inputs[i];
      NodeEntry& now = node->inputs[i];
      const auto found = successor.find(old.node);
      const bool same = found != successor.end() && found->second == now.node;
      if (same && now.entry == old.entry) now.version = old.version;
    }
  }
}

}  // namespace passlib
