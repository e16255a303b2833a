#include "partition/graph.h"

#include <algorithm>
#include <limits>

#include "errors.h"

namespace passlib {
namespace {

std::size_t countEdges(const Graph& graph) {
  std::size_t count = graph.outputs.size();
  for (const Node* node : graph.nodes) count += node->inputs.size();
  if (count > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw GraphError("the graph has more edges than the ABI of partitioners can count");
  }
  return count;
}

}  // namespace

Lists::Lists(std::size_t count, const std::vector<int>& keys, const std::vector<int>& values)
    : starts_(count + 1, 0) {
  for (int key : keys) {
    if (key >= 0) ++starts_[at(key) + 1];
  }
  for (std::size_t i = 0; i < count; ++i) starts_[i + 1] += starts_[i];
  values_.resize(starts_[count]);
  std::vector<std::size_t> next(starts_.begin(), starts_.end() - 1);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] >= 0) values_[next[at(keys[i])]++] = values[i];
  }
}

NumberedGraph::NumberedGraph(const Graph& graph) : NumberedGraph(graph, NodeTable(graph.nodes)) {}

NumberedGraph::NumberedGraph(const Graph& graph, const NodeTable& table) {
  const std::size_t edges = countEdges(graph);
  const std::size_t nodes = graph.nodes.size();
  producer_.reserve(edges);
  consumer_.reserve(edges);
  slot_.reserve(edges);
  const auto add = [&](const NodeEntry& entry, int consumer, std::size_t slot) {
    producer_.push_back(static_cast<int>(table.find(entry.node)));
    consumer_.push_back(consumer);
    slot_.push_back(static_cast<int>(slot));
  };
  for (std::size_t i = 0; i < nodes; ++i) {
    mxnet::ext::host::prefetchNode(graph.nodes, i, &Node::op);
    const Node& node = *graph.nodes[i];
    is_variable_.push_back(node.op == "null");
    first_edge_.push_back(static_cast<int>(producer_.size()));
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      add(node.inputs[k], static_cast<int>(i), k);
    }
  }
  first_edge_.push_back(static_cast<int>(producer_.size()));
  for (std::size_t k = 0; k < graph.outputs.size(); ++k) add(graph.outputs[k], kOutput, k);
  std::vector<int> numbers(producer_.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int>(i);
  uses_ = Lists(nodes, producer_, numbers);
  const Needs needs = listNeeds(graph, table);
  before_ = Lists(nodes, needs.consumers, needs.producers);
  after_ = Lists(nodes, needs.producers, needs.consumers);
  rankEdges();
}

NumberedGraph::Needs NumberedGraph::listNeeds(const Graph& graph, const NodeTable& table) {
  Needs needs;
  std::vector<int> own;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    mxnet::ext::host::prefetchNode(graph.nodes, i, &Node::control_deps);
    own.clear();
    for (const NodeEntry& input : graph.nodes[i]->inputs) {
      own.push_back(static_cast<int>(table.find(input.node)));
    }
    for (const Node* dep : graph.nodes[i]->control_deps) {
      own.push_back(static_cast<int>(table.find(dep)));
    }
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    needs.producers.insert(needs.producers.end(), own.begin(), own.end());
    needs.consumers.insert(needs.consumers.end(), own.size(), static_cast<int>(i));
  }
  return needs;
}

void NumberedGraph::rankEdges() {
  rank_.assign(producer_.size(), -1);
  int next_rank = 0;
  const auto finish = [&](int edge) { rank_[at(edge)] = next_rank++; };
  std::vector<bool> visited(is_variable_.size(), false);
  struct Step {
    int edge;  ///< the edge by which the node was entered
    int next;  ///< the edge to look at next
  };
  std::vector<Step> path;
  const auto enter = [&](int edge) {
    const auto node = at(producer(edge));
    if (visited[node]) return finish(edge);
    visited[node] = true;
    path.push_back({edge, first_edge_[node]});
  };
  for (int output = first_edge_.back(); output < edges(); ++output) {
    enter(output);
    while (!path.empty()) {
      Step& step = path.back();
      if (step.next < firstEdge(producer(step.edge) + 1)) {
        enter(step.next++);
      } else {
        finish(step.edge);
        path.pop_back();
      }
    }
  }
  for (int edge = 0; edge < edges(); ++edge) {  // edges that no output needs
    if (rank(edge) < 0) finish(edge);
  }
}

}  // namespace passlib
