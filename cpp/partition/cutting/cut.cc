#include "partition/cutting/cut.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "graph/attributes.h"

namespace passlib {
namespace {

using Slice = mxnet::ext::JsonReader::Slice;
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
    const auto isKnown = [&](const NodeEntry& value) {
      return attributeOf(*value.node, attribute.key).data() != nullptr;
    };
    if (std::none_of(values.begin(), values.end(), isKnown)) continue;
    std::string text;
    for (const NodeEntry& value : values) {
      text += (text.empty() ? "" : ",") + entryOf(*value.node, attribute.key, value.entry,
                                                  attribute.entry_of, attribute.unknown);
    }
    setAttribute(node, attribute.key, "[" + text + "]");
  }
}

}  // namespace

Cut::Cut(Cutter* cutter, int group)
    : cutter_(*cutter),
      group_(group),
      members_(cutter->groups_[at(group)]),
      graph_(std::make_unique<Graph>()),
      lists_(cutter->lists_) {
  cutter_.prefetch(group);
  lists_.clear();
  std::size_t inputs = 0;
  for (int member : members_) inputs += cutter_.node(member)->inputs.size();
  graph_->nodes.reserve(inputs + members_.size());  // nothing may throw while nodes have two owners
  cutInputs();
  cutOutputs();
  if (cutter_.numbers_.hasControl()) cutControl();
  for (int member : members_) graph_->nodes.push_back(cutter_.node(member));
}

Cut::~Cut() {
  if (accepted_) return;
  graph_->nodes = lists_.variables;
  for (const CutLists::Input& input : lists_.inputs) *cutter_.target(input.edge) = input.source;
  for (auto& [node, deps] : control_) node->control_deps = std::move(deps);
}

void Cut::cutInputs() {
  const NumberedGraph& numbers = cutter_.numbers_;
  std::vector<int>& edges = cutter_.edges_;
  edges.clear();
  for (int member : members_) {
    const int end = numbers.firstEdge(member + 1);
    for (int edge = numbers.firstEdge(member); edge < end; ++edge) {
      if (cutter_.groupOf(numbers.producer(edge)) != group_) edges.push_back(edge);
    }
  }
  const auto by_rank = [&](int a, int b) { return numbers.rank(a) < numbers.rank(b); };
  std::sort(edges.begin(), edges.end(), by_rank);
  cutter_.times_named_.clear();
  cutter_.names_.clear();
  graph_->inputs.reserve(edges.size());
  std::map<std::pair<Node*, int>, std::size_t> known;  // empty unless equal ones are merged
  for (int edge : edges) {
    const NodeEntry source = *cutter_.target(edge);
    std::size_t variable = lists_.variables.size();
    if (cutter_.merge_equal_) {
      variable = known.emplace(std::make_pair(source.node, source.entry), variable).first->second;
    }
    if (variable == lists_.variables.size()) {
      lists_.variables.push_back(addVariable(source, edges.size() == 1));
      lists_.sources.push_back(source);
    }
    NodeEntry& kept = lists_.sources[variable];
    kept.version = std::max(kept.version, source.version);
    lists_.inputs.push_back(CutLists::Input{edge, variable, source});
    cutter_.new_slot_[at(edge)] = static_cast<int>(variable);
  }
  for (const CutLists::Input& input : lists_.inputs) {
    *cutter_.target(input.edge) = NodeEntry(lists_.variables[input.variable], 0);
  }
}

Node* Cut::addVariable(const NodeEntry& source, bool only) {
  std::string name = variableName(source, only);
  Node* variable = graph_->addNode(std::string(), "null");
  variable->name = std::move(name);
  mxnet::ext::host::declareOutputs(variable, 1);
  graph_->inputs.push_back(variable);
  const bool is_arg = source.node->op == "null";
  const auto slice = [](std::string_view text) { return Slice{text.data(), text.size()}; };
  std::pair<Slice, Slice> attributes[] = {{slice("isArg"), slice(is_arg ? "True" : "False")},
                                          {slice("argName"), slice(source.node->name)}};
  mxnet::ext::host::AttributeTexts::pack(attributes, is_arg ? 2 : 1, &variable->attrs);
  describe(variable, {source});
  return variable;
}

std::string Cut::variableName(const NodeEntry& source, bool only) {
  std::string name = cutter_.output_names_.name(source);
  if (only) return name += '0';
  const std::size_t size = name.size();
  // The eleventh variable for "a" and the first for "a1" would both be "a10".
  for (int& times = cutter_.times_named_[name];;) {
    name.resize(size);
    name += std::to_string(times++);
    if (cutter_.names_[name]++ == 0) return name;
  }
}

void Cut::cutOutputs() {
  const NumberedGraph& numbers = cutter_.numbers_;
  std::vector<std::pair<int, NodeEntry>>& edges = cutter_.leaving_;
  edges.clear();
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
  std::map<std::pair<Node*, int>, int> known;  // empty unless equal ones are merged
  for (const auto& [edge, value] : edges) {
    const int next = static_cast<int>(graph_->outputs.size());
    int output = next;
    if (cutter_.merge_equal_) {
      output = known.emplace(std::make_pair(value.node, value.entry), next).first->second;
    }
    if (output == next) graph_->outputs.push_back(value);
    lists_.outputs.emplace_back(edge, output);
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

NodeOrder Cut::order() {
  const NumberedGraph& numbers = cutter_.numbers_;
  if (numbers.hasControl()) return NodeOrder::kAny;
  EdgePositions& positions = cutter_.positions_;
  positions.clear();
  positions.ends.assign(lists_.variables.size(), 0);
  for (int member : members_) {
    if (!cutter_.node(member)->subgraphs.empty()) return NodeOrder::kAny;
    const int end = numbers.firstEdge(member + 1);
    for (int edge = numbers.firstEdge(member); edge < end; ++edge) {
      const int producer = numbers.producer(edge);
      const bool inside = cutter_.groupOf(producer) == group_;
      positions.producers.push_back(inside ? cutter_.place_[at(producer)]
                                           : static_cast<uint32_t>(cutter_.new_slot_[at(edge)]));
    }
    cutter_.place_[at(member)] = static_cast<uint32_t>(positions.ends.size());
    positions.ends.push_back(static_cast<uint32_t>(positions.producers.size()));
  }
  // Every output of the cut is that of a member.
  for (const auto& [edge, output] : lists_.outputs) {
    positions.heads.push_back(cutter_.place_[at(numbers.producer(edge))]);
  }
  return isPostOrder(positions, &cutter_.path_) ? NodeOrder::kPostOrder : NodeOrder::kSorted;
}

void Cut::accept(const std::string& op, const std::string& name,
                 const std::map<std::string, std::string>& attributes) {
  Graph* whole = cutter_.graph_;
  Node* node = whole->addNode(name, op);
  mxnet::ext::host::declareOutputs(node, static_cast<int>(graph_->outputs.size()));
  describe(node, graph_->outputs);
  for (const auto& [key, value] : attributes) setAttribute(node, key, value);
  node->inputs = lists_.sources;
  node->control_deps = control_outside_;
  Cutter::Accepted& accepted = cutter_.accepted_[at(group_)];
  accepted.first_edge = cutter_.new_edges_.size();
  for (const CutLists::Input& input : lists_.inputs) {
    const bool first = input.variable == cutter_.new_edges_.size() - accepted.first_edge;
    if (first) cutter_.new_edges_.push_back(input.edge);
    if (!first) cutter_.new_slot_[at(input.edge)] = -1;
  }
  accepted.end_edge = cutter_.new_edges_.size();
  for (const auto& [edge, output] : lists_.outputs) {
    *cutter_.target(edge) = NodeEntry(node, output);
  }
  node->subgraphs.push_back(nullptr);
  node->subgraphs.back() = graph_.release();
  accepted_ = true;
  whole->nodes.pop_back();
  for (int member : members_) {
    if (cutter_.numbers_.hasControl()) cutter_.replaced_.emplace(cutter_.node(member), node);
    whole->nodes[at(member)] = nullptr;
  }
  whole->nodes[at(members_.back())] = node;
  accepted.node = node;
}

}  // namespace passlib
