#include "graph/variables.h"

#include <unordered_set>

namespace passlib {

Variables listVariables(const Graph& graph, const AuxiliaryInputs& auxiliary,
                        const NodeStates& own) {
  std::unordered_set<const Node*> states;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node* node = graph.nodes[i];
    const std::vector<int>* slots = nullptr;
    if (const auto declared = own.find(i); declared != own.end()) {
      slots = &declared->second;
    } else if (const auto found = auxiliary.find(node->op); found != auxiliary.end()) {
      slots = &found->second;
    } else {
      continue;
    }
    for (int slot : *slots) {
      if (static_cast<std::size_t>(slot) >= node->inputs.size()) continue;
      states.insert(node->inputs[static_cast<std::size_t>(slot)].node);
    }
  }
  Variables variables;
  for (const Node* node : graph.nodes) {
    if (node->op != "null") continue;
    (states.count(node) != 0 ? variables.aux : variables.args).push_back(node->name);
  }
  return variables;
}

}  // namespace passlib
