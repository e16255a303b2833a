#include "graph/variables.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "graph/text_table.h"

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

std::vector<std::string> namesOfVariables(const Graph& graph) {
  std::vector<std::string> names;
  names.reserve(graph.inputs.size());
  for (const Node* node : graph.inputs) names.push_back(node->name);
  return names;
}

std::vector<std::string> missingNames(std::vector<std::string> names, const Graph& graph) {
  // Most passes leave most variables in place: only names after the first difference are looked
  // up.
  std::size_t same = 0;
  while (same < names.size() && same < graph.inputs.size() &&
         graph.inputs[same]->name == names[same]) {
    ++same;
  }
  names.erase(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(same));
  TextViewSet present;
  for (std::size_t i = same; i < graph.inputs.size(); ++i) present.insert(graph.inputs[i]->name);
  const auto found = [&](const std::string& name) { return present.count(name) != 0; };
  names.erase(std::remove_if(names.begin(), names.end(), found), names.end());
  return names;
}

}  // namespace passlib
