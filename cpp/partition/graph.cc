#include "partition/graph.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "errors.h"

namespace passlib {
namespace {

/// Checks that numbers of the ABI can count so many edges and nodes.
void checkCount(std::size_t count) {
  if (count <= static_cast<std::size_t>(std::numeric_limits<int>::max())) return;
  throw GraphError("the graph has more edges than the ABI of partitioners can count");
}

}  // namespace

Lists::Lists(std::size_t count, const std::vector<int>& keys) : starts_(count + 2, 0) {
  for (const int key : keys) ++starts_[at(key) + 2];
  std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
  values_.resize(keys.size());
  // Where the next number of a list goes: in the end, that is where the next list starts.
  for (std::size_t i = 0; i < keys.size(); ++i) {
    values_[at(starts_[at(keys[i]) + 1]++)] = static_cast<int>(i);
  }
  starts_.pop_back();
}

Lists Lists::transposed(std::size_t count) const {
  Lists result(count, values_);
  // The numbers are places among our values, in ascending order within each list.
  std::vector<int> keys(values_.size());
  for (std::size_t key = 0; key + 1 < starts_.size(); ++key) {
    std::fill(keys.begin() + starts_[key], keys.begin() + starts_[key + 1], static_cast<int>(key));
  }
  for (int& value : result.values_) value = keys[at(value)];
  return result;
}

void Lists::append(const std::vector<int>& list) {
  values_.insert(values_.end(), list.begin(), list.end());
  checkCount(values_.size());
  starts_.push_back(static_cast<int>(values_.size()));
}

NumberedGraph::NumberedGraph(const Graph& graph) {
  const NodeTable table(graph.nodes);
  const std::size_t nodes = graph.nodes.size();
  checkCount(nodes);
  is_variable_.resize(nodes);
  first_edge_.reserve(nodes + 1);
  producer_.reserve(nodes + graph.outputs.size());
  before_.reserve(nodes, nodes);
  std::vector<int> needs;
  for (std::size_t i = 0; i < nodes; ++i) {
    mxnet::ext::host::prefetchNode(graph.nodes, i, &Node::control_deps);
    const Node& node = *graph.nodes[i];
    is_variable_[i] = node.op == "null";
    first_edge_.push_back(edges());
    needs.clear();
    for (const NodeEntry& input : node.inputs) {
      needs.push_back(static_cast<int>(table.find(input.node)));
    }
    producer_.insert(producer_.end(), needs.begin(), needs.end());
    checkCount(producer_.size());
    for (const Node* dep : node.control_deps) needs.push_back(static_cast<int>(table.find(dep)));
    has_control_ = has_control_ || !node.control_deps.empty();
    std::sort(needs.begin(), needs.end());
    needs.erase(std::unique(needs.begin(), needs.end()), needs.end());
    before_.append(needs);
  }
  first_edge_.push_back(edges());
  for (const NodeEntry& head : graph.outputs) {
    producer_.push_back(static_cast<int>(table.find(head.node)));
  }
  checkCount(producer_.size());
  consumer_.assign(producer_.size(), kOutput);
  for (int node = 0; node < this->nodes(); ++node) {
    std::fill(consumer_.begin() + firstEdge(node), consumer_.begin() + firstEdge(node + 1), node);
  }
  uses_ = Lists(nodes, producer_);
  after_ = before_.transposed(nodes);
  rankEdges();
}

void NumberedGraph::rankEdges() {
  rank_.assign(producer_.size(), -1);
  int next_rank = 0;
  const auto finish = [&](int edge) { rank_[at(edge)] = next_rank++; };
  std::vector<bool> visited(is_variable_.size(), false);
  struct Entered {
    int edge;  ///< the edge by which the node was entered
    int next;  ///< the edge to look at next
  };
  std::vector<Entered> path;
  const auto enter = [&](int edge) {
    const auto node = at(producer(edge));
    if (visited[node]) return finish(edge);
    visited[node] = true;
    path.push_back({edge, first_edge_[node]});
  };
  for (int output = first_edge_.back(); output < edges(); ++output) {
    enter(output);
    while (!path.empty()) {
      Entered& entered = path.back();
      if (entered.next < firstEdge(producer(entered.edge) + 1)) {
        enter(entered.next++);
      } else {
        finish(entered.edge);
        path.pop_back();
      }
    }
  }
  for (int edge = 0; edge < edges(); ++edge) {  // edges that no output needs
    if (rank(edge) < 0) finish(edge);
  }
}

}  // namespace passlib
