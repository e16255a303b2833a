#include "partition/cut.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_set>

#include "graph/attributes.h"

namespace passlib {
namespace {

using EntryOfText = std::string (*)(const std::string& text, unsigned index);

/// Entry `output` of an attribute with one entry per output; `unknown` if there is none. The
/// attribute may come from a file and be malformed.
std::string entryOf(const Node& node, const char* key, int output, EntryOfText entry_of,
                    const char* unknown) {
  const std::string_view text = attributeOf(node, key);
  if (text.data() == nullptr) return unknown;
  try {
    return entry_of(std::string(text), static_cast<unsigned>(output));
  } catch (const std::out_of_range&) {
    return unknown;
  }
}

/// Sets shapes and types of the outputs of `node` to those of `values` that are known.
void describe(Node* node, const std::vector<NodeEntry>& values) {
  struct Attribute {
    const char* key;
    EntryOfText entry_of;
    const char* unknown;
  };
  const Attribute attributes[] = {{MX_STR_SHAPE, &mxnet::ext::getShapeAt, "None"},
                                  {MX_STR_DTYPE, &mxnet::ext::getDtypeAt, "-1"}};
  for (const Attribute& attribute : attributes) {
    bool known = false;
    std::string text;
    for (const NodeEntry& value : values) {
      known = known || value.node->attrs.count(attribute.key) != 0;
      text += (text.empty() ? "" : ",") + entryOf(*value.node, attribute.key, value.entry,
                                                  attribute.entry_of, attribute.unknown);
    }
    if (known) setAttribute(node, attribute.key, "[" + text + "]");
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
      suffix_(std::move(suffix)),
      merge_equal_(merge_equal),
      group_of_(at(numbers.nodes()), -1),
      accepted_(groups.size(), nullptr),
      new_slot_(at(numbers.edges()), -1) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (int member : groups[i]) group_of_[at(member)] = static_cast<int>(i);
  }
  for (const Node* each : graph->nodes) has_control_ = has_control_ || !each->control_deps.empty();
}

NodeEntry* Cutter::target(int edge) {
  const int consumer = numbers_.consumer(edge);
  if (consumer == NumberedGraph::kOutput) return &graph_->outputs[at(numbers_.slot(edge))];
  const int group = groupOf(consumer);
  Node* stand_in = group < 0 ? nullptr : accepted_[at(group)];
  if (stand_in == nullptr) return &node(consumer)->inputs[at(numbers_.slot(edge))];
  const int slot = new_slot_[at(edge)];
  return slot < 0 ? nullptr : &stand_in->inputs[at(slot)];
}

std::string Cutter::outputName(const NodeEntry& entry) {
  const Node& producer = *entry.node;
  // Nodes with the same operator and attributes share their output names.
  std::string key = kindOf(producer);
  const int counts[] = {entry.entry, producer.num_outputs};
  key.append(reinterpret_cast<const char*>(counts), sizeof counts);
  auto found = suffixes_.find(key);
  if (found == suffixes_.end()) {
    found = suffixes_.emplace(std::move(key), suffix_(producer, entry.entry)).first;
  }
  return producer.name + found->second;
}

void Cutter::finish(bool linked) {
  std::vector<Node*>& nodes = graph_->nodes;
  nodes.erase(std::remove(nodes.begin(), nodes.end(), nullptr), nodes.end());
  if (linked) {
    linkOutputs(graph_);
  } else {
    mxnet::ext::host::forEachGraph(graph_, linkOutputs);
  }
  if (!has_control_) return;
  for (Node* each : nodes) {
    std::vector<Node*> deps;
    for (Node* dep : each->control_deps) {
      const auto found = replaced_.find(dep);
      Node* now = found == replaced_.end() ? dep : found->second;
      if (std::find(deps.begin(), deps.end(), now) == deps.end()) deps.push_back(now);
    }
    each->control_deps = std::move(deps);
  }
}

Cut::Cut(Cutter* cutter, int group)
    : cutter_(*cutter),
      group_(group),
      members_(cutter->groups_[at(group)]),
      graph_(std::make_unique<Graph>()) {
  std::size_t inputs = 0;
  for (int member : members_) inputs += cutter_.node(member)->inputs.size();
  graph_->nodes.reserve(inputs + members_.size());  // nothing may throw while nodes have two owners
  cutInputs();
  cutOutputs();
  if (cutter_.has_control_) cutControl();
  for (int member : members_) graph_->nodes.push_back(cutter_.node(member));
}

Cut::~Cut() {
  if (accepted_) return;
  graph_->nodes = variables_;
  for (const Input& input : inputs_) *cutter_.target(input.edge) = input.source;
  for (auto& [node, deps] : control_) node->control_deps = std::move(deps);
}

void Cut::cutInputs() {
  const NumberedGraph& numbers = cutter_.numbers_;
  std::vector<int> edges;
  for (int member : members_) {
    const int end = numbers.firstEdge(member + 1);
    for (int edge = numbers.firstEdge(member); edge < end; ++edge) {
      if (cutter_.groupOf(numbers.producer(edge)) != group_) edges.push_back(edge);
    }
  }
  const auto by_rank = [&](int a, int b) { return numbers.rank(a) < numbers.rank(b); };
  std::sort(edges.begin(), edges.end(), by_rank);
  std::map<std::pair<Node*, int>, std::size_t> known;
  for (int edge : edges) {
    const NodeEntry source = *cutter_.target(edge);
    const auto [found, is_new] =
        known.emplace(std::make_pair(source.node, source.entry), variables_.size());
    if (is_new || !cutter_.merge_equal_) {
      found->second = variables_.size();
      variables_.push_back(addVariable(source));
      sources_.push_back(source);
    }
    NodeEntry& kept = sources_[found->second];
    kept.version = std::max(kept.version, source.version);
    inputs_.push_back(Input{edge, found->second, source});
  }
  for (const Input& input : inputs_) {
    *cutter_.target(input.edge) = NodeEntry(variables_[input.variable], 0);
  }
}

Node* Cut::addVariable(const NodeEntry& source) {
  Node* variable = graph_->addNode(variableName(source), "null");
  variable->_declareOutputs(1);
  graph_->inputs.push_back(variable);
  const bool is_arg = source.node->op == "null";
  std::pair<std::string, std::string> attributes[] = {{"isArg", is_arg ? "True" : "False"},
                                                      {"argName", source.node->name}};
  variable->attrs._pack(attributes, is_arg ? 2 : 1);
  describe(variable, {source});
  return variable;
}

std::string Cut::variableName(const NodeEntry& source) {
  const std::string base = cutter_.outputName(source);
  // The eleventh variable for "a" and the first for "a1" would both be "a10".
  for (int& times = times_named_[base];;) {
    const std::string name = base + std::to_string(times++);
    if (names_.insert(name).second) return name;
  }
}

void Cut::cutOutputs() {
  const NumberedGraph& numbers = cutter_.numbers_;
  std::vector<std::pair<int, NodeEntry>> edges;
  for (int member : members_) {
    for (int edge : numbers.uses(member)) {
      const int consumer = numbers.consumer(edge);
      if (consumer != NumberedGraph::kOutput && cutter_.groupOf(consumer) == group_) continue;
      const NodeEntry* target = cutter_.target(edge);
      if (target != nullptr) edges.emplace_back(edge, *target);
    }
  }
  const auto by_rank = [&](const auto& a, const auto& b) {
    return numbers.rank(a.first) < numbers.rank(b.first);
  };
  std::sort(edges.begin(), edges.end(), by_rank);
  std::map<std::pair<Node*, int>, int> known;
  for (const auto& [edge, value] : edges) {
    const int next = static_cast<int>(graph_->outputs.size());
    const auto [found, is_new] = known.emplace(std::make_pair(value.node, value.entry), next);
    if (is_new || !cutter_.merge_equal_) {
      found->second = next;
      graph_->outputs.push_back(value);
    }
    outputs_.emplace_back(edge, found->second);
  }
}

void Cut::cutControl() {
  std::unordered_set<const Node*> own;
  for (int member : members_) own.insert(cutter_.node(member));
  for (int member : members_) {
    Node* node = cutter_.node(member);
    if (node->control_deps.empty()) continue;
    std::vector<Node*> inside;
    for (Node* dep : node->control_deps) {
      (own.count(dep) != 0 ? inside : control_outside_).push_back(dep);
    }
    control_.emplace(node, std::exchange(node->control_deps, std::move(inside)));
  }
}

void Cut::accept(const std::string& op, const std::string& name,
                 const std::map<std::string, std::string>& attributes) {
  Graph* whole = cutter_.graph_;
  Node* node = whole->addNode(name, op);
  node->_declareOutputs(static_cast<int>(graph_->outputs.size()));
  describe(node, graph_->outputs);
  for (const auto& [key, value] : attributes) setAttribute(node, key, value);
  node->inputs = sources_;
  node->control_deps = control_outside_;
  std::vector<bool> taken(sources_.size(), false);
  for (const Input& input : inputs_) {
    if (taken[input.variable]) continue;
    taken[input.variable] = true;
    cutter_.new_slot_[at(input.edge)] = static_cast<int>(input.variable);
  }
  for (const auto& [edge, output] : outputs_) *cutter_.target(edge) = NodeEntry(node, output);
  node->subgraphs.push_back(nullptr);
  node->subgraphs.back() = graph_.release();
  accepted_ = true;
  whole->nodes.pop_back();
  for (int member : members_) {
    if (cutter_.has_control_) cutter_.replaced_.emplace(cutter_.node(member), node);
    whole->nodes[at(member)] = nullptr;
  }
  whole->nodes[at(members_.back())] = node;
  cutter_.accepted_[at(group_)] = node;
}

}  // namespace passlib
