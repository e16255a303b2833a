#include "graph/difference.h"

#include <algorithm>

#include "graph/text_table.h"

namespace passlib {
namespace {

bool sameEntry(const NodeEntry& left, const NodeEntry& right) {
  return left.entry == right.entry && left.version == right.version &&
         left.node->name == right.node->name;
}

bool sameNode(const Node& left, const Node& right) {
  const auto same_name = [](const Node* a, const Node* b) { return a->name == b->name; };
  const auto same_graph = [](const Graph* a, const Graph* b) { return equalGraphs(*a, *b); };
  return left.op == right.op && left.num_outputs == right.num_outputs &&
         left.attrs == right.attrs &&
         std::equal(left.inputs.begin(), left.inputs.end(), right.inputs.begin(),
                    right.inputs.end(), sameEntry) &&
         std::equal(left.control_deps.begin(), left.control_deps.end(), right.control_deps.begin(),
                    right.control_deps.end(), same_name) &&
         std::equal(left.subgraphs.begin(), left.subgraphs.end(), right.subgraphs.begin(),
                    right.subgraphs.end(), same_graph);
}

}  // namespace

Difference differenceOf(const Graph& before, const Graph& after) {
  // Of each name: the nodes of `before` in reverse order, so that the first is taken from the end.
  TextViewMap<std::vector<const Node*>> old;
  for (auto node = before.nodes.rbegin(); node != before.nodes.rend(); ++node) {
    old[(*node)->name].push_back(*node);
  }
  Difference difference;
  for (const Node* node : after.nodes) {
    const auto found = old.find(node->name);
    if (found == old.end() || found->second.empty()) {
      difference.added.push_back(node->name);
      continue;
    }
    if (!sameNode(*found->second.back(), *node)) difference.changed.push_back(node->name);
    found->second.pop_back();
  }
  for (const Node* node : before.nodes) {
    std::vector<const Node*>& left = old[node->name];
    if (left.empty()) continue;
    difference.removed.push_back(node->name);
    left.pop_back();
  }
  return difference;
}

}  // namespace passlib
