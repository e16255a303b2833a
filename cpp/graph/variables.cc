#include "graph/variables.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "graph/text_table.h"

namespace passlib {
namespace {

/// Of a name, in bytes; memory that is not used costs nothing.
constexpr std::size_t kCommonLength = 48;

}  // namespace

Variables listVariables(const Graph& graph, const AuxiliaryInputs& auxiliary,
                        const NodeStates& own) {
  const bool none = auxiliary.empty() && own.empty();
  std::unordered_set<const Node*> states;
  for (std::size_t i = 0; i < graph.nodes.size() && !none; ++i) {
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
  variables.args.reserve(graph.inputs.size(), kCommonLength * graph.inputs.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    mxnet::ext::host::prefetchNode(graph.nodes, i, &Node::name);
    const Node* const node = graph.nodes[i];
    if (node->op != "null") continue;
    (states.count(node) != 0 ? variables.aux : variables.args).push(node->name);
  }
  return variables;
}

NameList namesOfVariables(const Graph& graph) {
  NameList names;
  names.reserve(graph.inputs.size(), kCommonLength * graph.inputs.size());
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    mxnet::ext::host::prefetchNode(graph.inputs, i, &Node::name);
    names.push(graph.inputs[i]->name);
  }
  return names;
}

TextViewSet usedAmong(const TextViewSet& names, Graph* graph) {
  TextViewSet used;
  mxnet::ext::host::forEachGraph(graph, [&](const Graph* level) {
    for (std::size_t i = 0; i < level->nodes.size() && used.size() < names.size(); ++i) {
      mxnet::ext::host::prefetchNode(level->nodes, i, &Node::name);
      const Node* const node = level->nodes[i];
      if (node->op != "null") continue;
      const auto found = names.find(node->name);
      if (found != names.end()) used.insert(*found);
    }
  });
  return used;
}

std::vector<std::string> missingNames(const NameList& names, const Graph& graph) {
  // Most passes leave most variables in their order: only names that are not found among the next
  // few are looked up.
  constexpr std::size_t kNext = 8;
  std::vector<std::string> left;
  TextViewSet added;
  std::size_t place = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string_view name = names[i];
    mxnet::ext::host::prefetchNode(graph.inputs, place, &Node::name);
    const std::size_t end = std::min(place + kNext, graph.inputs.size());
    std::size_t found = place;
    while (found < end && graph.inputs[found]->name != name) ++found;
    if (found == end) {
      left.emplace_back(name);
      continue;
    }
    for (; place < found; ++place) added.insert(graph.inputs[place]->name);
    ++place;
  }
  if (left.empty()) return left;
  for (; place < graph.inputs.size(); ++place) added.insert(graph.inputs[place]->name);
  const auto isPresent = [&](const std::string& name) { return added.count(name) != 0; };
  left.erase(std::remove_if(left.begin(), left.end(), isPresent), left.end());
  return left;
}

}  // namespace passlib
