#include "graph.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "errors.h"

namespace passlib {
namespace {

/// Copies one graph without its nested ones, which are queued as (original, copy).
void copyLevel(const Graph& from, Graph* to, std::vector<std::pair<const Graph*, Graph*>>* nested) {
  const NodeTable table(from.nodes);
  const auto copy_of = [&](const Node* node) {
    return to->nodes[static_cast<std::size_t>(table.find(node))];
  };
  to->attrs = from.attrs;
  to->nodes.reserve(from.nodes.size());
  for (const Node* original : from.nodes) {
    Node* node = to->addNode(original->name, original->op);
    node->attrs = original->attrs;
    if (original->num_outputs > 0) node->_declareOutputs(original->num_outputs);
    node->extra = original->extra;
    node->outputs.reserve(original->outputs.size());
    for (const Graph* subgraph : original->subgraphs) {
      node->subgraphs.push_back(nullptr);
      node->subgraphs.back() = new Graph();  // the node's graph owns it from here on
      nested->emplace_back(subgraph, node->subgraphs.back());
    }
    if (node->op == "null") to->inputs.push_back(node);
  }
  for (std::size_t i = 0; i < from.nodes.size(); ++i) {
    const Node* original = from.nodes[i];
    Node* node = to->nodes[i];
    node->inputs.reserve(original->inputs.size());
    for (const NodeEntry& input : original->inputs) {
      Node* producer = copy_of(input.node);
      producer->outputs.emplace_back(node, static_cast<int>(node->inputs.size()));
      node->inputs.emplace_back(producer, input.entry, input.version);
    }
    for (const Node* dep : original->control_deps) node->control_deps.push_back(copy_of(dep));
  }
  to->outputs.reserve(from.outputs.size());
  for (const NodeEntry& head : from.outputs) {
    to->outputs.emplace_back(copy_of(head.node), head.entry, head.version);
  }
}

/// Nodes in post-order from the heads.
std::vector<Node*> reachable(const Graph& graph, const NodeTable& table) {
  std::vector<bool> seen(graph.nodes.size(), false);
  std::vector<Node*> order;
  order.reserve(graph.nodes.size());
  std::vector<std::pair<Node*, std::size_t>> path;
  const auto enter = [&](Node* node) {
    const auto position = static_cast<std::size_t>(table.find(node));
    if (seen[position]) return;
    seen[position] = true;
    path.emplace_back(node, 0);
  };
  for (const NodeEntry& head : graph.outputs) {
    enter(head.node);
    while (!path.empty()) {
      auto& [node, next] = path.back();
      const std::size_t inputs = node->inputs.size();
      if (next < inputs) {
        enter(node->inputs[next++].node);
      } else if (next < inputs + node->control_deps.size()) {
        enter(node->control_deps[next++ - inputs]);
      } else {
        order.push_back(node);
        path.pop_back();
      }
    }
  }
  return order;
}

/// Compares one graph without its nested ones, which are queued in pairs.
bool equalLevel(const Graph& left, const Graph& right,
                std::vector<std::pair<const Graph*, const Graph*>>* nested) {
  if (left.nodes.size() != right.nodes.size() || left.outputs.size() != right.outputs.size()) {
    return false;
  }
  const NodeTable left_table(left.nodes);
  const NodeTable right_table(right.nodes);
  const auto same_entry = [&](const NodeEntry& a, const NodeEntry& b) {
    return a.entry == b.entry && a.version == b.version &&
           left_table.find(a.node) == right_table.find(b.node);
  };
  const auto same_node = [&](const Node* a, const Node* b) {
    return left_table.find(a) == right_table.find(b);
  };
  for (std::size_t i = 0; i < left.nodes.size(); ++i) {
    const Node& a = *left.nodes[i];
    const Node& b = *right.nodes[i];
    if (a.name != b.name || a.op != b.op || a.num_outputs != b.num_outputs || a.attrs != b.attrs ||
        a.subgraphs.size() != b.subgraphs.size() || !(a.extra == b.extra) ||
        !std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(),
                    same_entry) ||
        !std::equal(a.control_deps.begin(), a.control_deps.end(), b.control_deps.begin(),
                    b.control_deps.end(), same_node)) {
      return false;
    }
    for (std::size_t k = 0; k < a.subgraphs.size(); ++k) {
      nested->emplace_back(a.subgraphs[k], b.subgraphs[k]);
    }
  }
  return std::equal(left.outputs.begin(), left.outputs.end(), right.outputs.begin(), same_entry);
}

}  // namespace

bool equalGraphs(const Graph& left, const Graph& right) {
  std::vector<std::pair<const Graph*, const Graph*>> pending{{&left, &right}};
  while (!pending.empty()) {
    const auto [a, b] = pending.back();
    pending.pop_back();
    if (!equalLevel(*a, *b, &pending)) return false;
  }
  return true;
}

std::unique_ptr<Graph> copyGraph(const Graph& graph) {
  auto copy = std::make_unique<Graph>();
  std::vector<std::pair<const Graph*, Graph*>> pending{{&graph, copy.get()}};
  while (!pending.empty()) {
    const auto [from, to] = pending.back();
    pending.pop_back();
    copyLevel(*from, to, &pending);
  }
  return copy;
}

void orderGraph(Graph* root) {
  mxnet::ext::detail::forEachGraph(root, [](Graph* graph) {
    const NodeTable table(graph->nodes);
    std::vector<Node*> order = reachable(*graph, table);
    if (order == graph->nodes) return;
    if (order.size() < graph->nodes.size()) {
      const std::unordered_set<Node*> kept(order.begin(), order.end());
      std::vector<Node*> dead;
      for (Node* node : graph->nodes) {
        if (kept.count(node) == 0) dead.push_back(node);
      }
      graph->removeNodes(dead);
    }
    graph->inputs.clear();
    for (Node* node : order) {
      if (node->op == "null") graph->inputs.push_back(node);
    }
    graph->nodes = std::move(order);
  });
}

Variables listVariables(const Graph& graph, const AuxiliaryInputs& auxiliary,
                        const NodeStates& own) {
  std::unordered_set<const Node*> states;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node* node = graph.nodes[i];
    const std::vector<int>* slots = nullptr;
    if (const auto told = own.find(i); told != own.end()) {
      slots = &told->second;
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

void restoreLost(const Graph& before, Graph* after) {
  // Operators may share a name; the first one of a name stands for the first one, and so on.
  std::unordered_map<std::string_view, std::vector<const Node*>> by_name;
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
      node->_declareOutputs(original->num_outputs);
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
