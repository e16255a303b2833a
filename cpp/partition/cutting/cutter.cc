#include "partition/cutting/cutter.h"

#include <algorithm>
#include <utility>

namespace passlib {
namespace {

/// Sets `outputs` of nodes each of which comes after those that it depends on.
void linkSorted(Graph* graph) {
  const std::vector<Node*>& nodes = graph->nodes;
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    mxnet::ext::host::prefetchNode(nodes, k, &Node::outputs);
    Node* each = nodes[k];
    each->outputs.clear();
    for (std::size_t i = 0; i < each->inputs.size(); ++i) {
      each->inputs[i].node->outputs.emplace_back(each, static_cast<int>(i));
    }
  }
}

}  // namespace

void linkOutputs(Graph* graph) {
  const std::vector<Node*>& nodes = graph->nodes;
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    mxnet::ext::host::prefetchNode(nodes, k, &Node::outputs);
    nodes[k]->outputs.clear();
  }
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    mxnet::ext::host::prefetchNode(nodes, k, &Node::outputs);
    Node* each = nodes[k];
    for (std::size_t i = 0; i < each->inputs.size(); ++i) {
      each->inputs[i].node->outputs.emplace_back(each, static_cast<int>(i));
    }
  }
}

Cutter::Cutter(Graph* graph, const NumberedGraph& numbers,
               const std::vector<std::vector<int>>& groups, OutputSuffix suffix, bool merge_equal)
    : graph_(graph),
      numbers_(numbers),
      groups_(groups),
      merge_equal_(merge_equal),
      output_names_(std::move(suffix)),
      group_of_(at(numbers.nodes()), -1),
      accepted_(groups.size()),
      new_slot_(at(numbers.edges()), -1),
      place_(at(numbers.nodes())) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (int member : groups[i]) group_of_[at(member)] = static_cast<int>(i);
  }
}

NodeEntry* Cutter::target(int edge) {
  const int consumer = numbers_.consumer(edge);
  if (consumer == NumberedGraph::kOutput) return &graph_->outputs[at(numbers_.slot(edge))];
  const Accepted* replacement = replacementOf(consumer);
  if (replacement == nullptr) return &node(consumer)->inputs[at(numbers_.slot(edge))];
  const int slot = new_slot_[at(edge)];
  return slot < 0 ? nullptr : &replacement->node->inputs[at(slot)];
}

void Cutter::prefetch(int group) const {
  constexpr int kNodes = 6;  // so many groups ahead
  constexpr int kEdges = 2;
  const auto first = [this](int later) { return groups_[at(later)].front(); };
  const auto count = static_cast<int>(groups_.size());
  if (group + kNodes < count) {
    const int member = first(group + kNodes);
    prefetchNode(member);
    if (numbers_.firstEdge(member) < numbers_.firstEdge(member + 1)) {
      prefetchNode(numbers_.producer(numbers_.firstEdge(member)));
    }
  }
  if (group + kEdges < count) {
    for (const int edge : numbers_.uses(first(group + kEdges))) {
      const int consumer = numbers_.consumer(edge);
      const Node* user = consumer == NumberedGraph::kOutput ? nullptr : node(consumer);
      if (user != nullptr) __builtin_prefetch(user->inputs.data());
      break;
    }
  }
}

void Cutter::prefetchNode(int position) const {
  const Node* wanted = node(position);
  if (wanted == nullptr) return;
  __builtin_prefetch(&wanted->op);
  __builtin_prefetch(&wanted->inputs);
  __builtin_prefetch(&wanted->attrs);
}

NodeOrder Cutter::finish(bool linked) {
  std::vector<Node*>& nodes = graph_->nodes;
  const NodeOrder stand = linked ? order() : NodeOrder::kAny;
  if (linked) {
    graph_->inputs.clear();
    for (int i = 0; i < numbers_.nodes(); ++i) {
      if (numbers_.isVariable(i)) graph_->inputs.push_back(node(i));
    }
  }
  nodes.erase(std::remove(nodes.begin(), nodes.end(), nullptr), nodes.end());
  if (stand >= NodeOrder::kSorted) {
    linkSorted(graph_);
  } else if (linked) {
    linkOutputs(graph_);
  } else {
    mxnet::ext::host::forEachGraph(graph_, linkOutputs);
  }
  if (numbers_.hasControl()) renewControl();
  return stand;
}

void Cutter::renewControl() {
  for (Node* each : graph_->nodes) {
    std::vector<Node*> deps;
    for (Node* dep : each->control_deps) {
      const auto found = replaced_.find(dep);
      Node* now = found == replaced_.end() ? dep : found->second;
      if (std::find(deps.begin(), deps.end(), now) == deps.end()) deps.push_back(now);
    }
    each->control_deps = std::move(deps);
  }
}

NodeOrder Cutter::order() {
  if (numbers_.hasControl()) return NodeOrder::kAny;
  uint32_t next = 0;
  for (int i = 0; i < numbers_.nodes(); ++i) {
    if (replacementOf(i) == nullptr) {
      place_[at(i)] = next++;
    } else if (isLast(i)) {
      for (const int member : groups_[at(groupOf(i))]) place_[at(member)] = next;
      ++next;
    }
  }
  positions_.clear();
  bool sorted = true;
  const auto add = [&](int edge) {
    positions_.producers.push_back(place_[at(numbers_.producer(edge))]);
    sorted = sorted && positions_.producers.back() < positions_.ends.size();
  };
  for (int i = 0; i < numbers_.nodes(); ++i) {
    const Accepted* replacement = replacementOf(i);
    if (replacement == nullptr) {
      const int end = numbers_.firstEdge(i + 1);
      for (int edge = numbers_.firstEdge(i); edge < end; ++edge) add(edge);
    } else if (isLast(i)) {
      for (std::size_t k = replacement->first_edge; k < replacement->end_edge; ++k) {
        add(new_edges_[k]);
      }
    } else {
      continue;
    }
    positions_.ends.push_back(static_cast<uint32_t>(positions_.producers.size()));
  }
  for (int edge = numbers_.firstEdge(numbers_.nodes()); edge < numbers_.edges(); ++edge) {
    positions_.heads.push_back(place_[at(numbers_.producer(edge))]);
  }
  if (!sorted) return NodeOrder::kAny;
  return isPostOrder(positions_, &path_) ? NodeOrder::kPostOrder : NodeOrder::kSorted;
}

std::vector<bool> Cutter::oldNodes() const {
  std::vector<bool> old;
  old.reserve(graph_->nodes.size());
  for (int i = 0; i < numbers_.nodes(); ++i) {
    const bool replaced = replacementOf(i) != nullptr;
    if (!replaced || isLast(i)) old.push_back(!replaced);
  }
  return old;
}

}  // namespace passlib
