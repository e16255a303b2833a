#include "graph/graph.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "graph/attributes.h"
#include "graph/node_blocks.h"

namespace passlib {
namespace {

/// Asks the processor for all of the nodes that a walk reads some steps after a position.
void prefetchWhole(const std::vector<Node*>& nodes, std::size_t pos) {
  constexpr std::size_t kLine = 64, kAhead = 16, kTexts = 6;
  if (pos + kAhead >= nodes.size()) return;
  const auto* const later = reinterpret_cast<const char*>(nodes[pos + kAhead]);
  for (std::size_t at = 0; at < sizeof(Node); at += kLine) __builtin_prefetch(later + at);
  __builtin_prefetch(nodes[pos + kTexts]->name.data());
  __builtin_prefetch(nodes[pos + kTexts]->inputs.data());
}

/// Copies one graph; its subgraphs are queued as (original, copy).
void copyLevel(const Graph& from, Graph* to, std::vector<std::pair<const Graph*, Graph*>>* nested) {
  const NodeTable table(from.nodes);
  const auto copy_of = [&](const Node* node) {
    return to->nodes[static_cast<std::size_t>(table.find(node))];
  };
  to->attrs = from.attrs;
  to->nodes.reserve(from.nodes.size());
  to->inputs.reserve(from.inputs.size());
  NodeBlocks blocks(from.nodes.size());
  for (std::size_t i = 0; i < from.nodes.size(); ++i) {
    prefetchWhole(from.nodes, i);
    const Node* const original = from.nodes[i];
    Node* node = blocks.add(to, original->name, original->op);
    node->attrs = original->attrs;
    if (original->num_outputs > 0) mxnet::ext::host::declareOutputs(node, original->num_outputs);
    node->extra = original->extra;
    // Next to the node, since walks read both.
    node->inputs.reserve(original->inputs.size());
    node->outputs.reserve(original->outputs.size());
    for (const Graph* subgraph : original->subgraphs) {
      node->subgraphs.push_back(nullptr);
      node->subgraphs.back() = new Graph();  // now owned by the node's graph
      nested->emplace_back(subgraph, node->subgraphs.back());
    }
    if (node->op == "null") to->inputs.push_back(node);
  }
  for (std::size_t i = 0; i < from.nodes.size(); ++i) {
    mxnet::ext::host::prefetchNode(from.nodes, i, &Node::control_deps);
    mxnet::ext::host::prefetchNode(to->nodes, i, &Node::control_deps);
    const Node* original = from.nodes[i];
    Node* node = to->nodes[i];
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

/// The nodes that the heads need, in post-order.
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

/// Compares two graphs; their subgraphs are queued in pairs.
bool equalLevel(const Graph& left, const Graph& right, std::string_view but,
                std::vector<std::pair<const Graph*, const Graph*>>* nested) {
  if (left.nodes.size() != right.nodes.size() || left.outputs.size() != right.outputs.size()) {
    return false;
  }
  const NodeTable table(left.nodes);
  const auto same_node = [&](const Node* a, const Node* b) {
    return right.nodes[static_cast<std::size_t>(table.find(a))] == b;
  };
  const auto same_entry = [&](const NodeEntry& a, const NodeEntry& b) {
    return a.entry == b.entry && a.version == b.version && same_node(a.node, b.node);
  };
  for (std::size_t i = 0; i < left.nodes.size(); ++i) {
    prefetchWhole(left.nodes, i);
    prefetchWhole(right.nodes, i);
    const Node& a = *left.nodes[i];
    const Node& b = *right.nodes[i];
    if (a.name != b.name || a.op != b.op || a.num_outputs != b.num_outputs ||
        !sameAttributesBut(but, a, b) || a.subgraphs.size() != b.subgraphs.size() ||
        !(a.extra == b.extra) ||
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

bool equalGraphs(const Graph& left, const Graph& right, std::string_view but) {
  std::vector<std::pair<const Graph*, const Graph*>> pending{{&left, &right}};
  while (!pending.empty()) {
    const auto [a, b] = pending.back();
    pending.pop_back();
    if (!equalLevel(*a, *b, but, &pending)) return false;
  }
  return true;
}

int nestingDepth(const Graph& graph) {
  std::vector<std::pair<const Graph*, int>> pending{{&graph, 0}};
  int deepest = 0;
  while (!pending.empty()) {
    const auto [level, depth] = pending.back();
    pending.pop_back();
    deepest = std::max(deepest, depth);
    for (const Node* node : level->nodes) {
      for (const Graph* subgraph : node->subgraphs) pending.emplace_back(subgraph, depth + 1);
    }
  }
  return deepest;
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

void orderLevel(Graph* graph) {
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
}

void orderGraph(Graph* root) { mxnet::ext::host::forEachGraph(root, orderLevel); }

void sortGraph(Graph* root) {
  mxnet::ext::host::forEachGraph(
      root, [](Graph* graph) { graph->nodes = sortNodes(graph->nodes, NodeTable(graph->nodes)); });
}

}  // namespace passlib
