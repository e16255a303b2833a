#include "graph/edited.h"

#include <algorithm>
#include <cctype>
#include <exception>
#include <limits>
#include <stdexcept>
#include <utility>

#include "errors.h"

namespace passlib {
namespace {

using mxnet::ext::host::quoted;

std::string outputText(const NodeEntry& value) {
  return "output " + std::to_string(value.entry) + " of node " + quoted(value.node->name) + " (" +
         value.node->op + ")";
}

/// Removes the edges into a node from the lists of its producers.
void detachInputs(Node* node) {
  for (std::size_t i = 0; i < node->inputs.size(); ++i) {
    mxnet::ext::host::dropConsumer(node->inputs[i].node, node, static_cast<int>(i));
  }
  node->inputs.clear();
}

}  // namespace

EditedGraph::EditedGraph(std::unique_ptr<Graph> graph, std::string editor, bool types_known,
                         ReadTypes types)
    : graph_(std::move(graph)),
      editor_(std::move(editor)),
      types_known_(types_known),
      types_(std::move(types)) {
  if (types_) untyped_ = graph_->nodes;
}

void EditedGraph::readTypes() {
  if (!types_) return;
  const auto texts = types_();
  types_ = nullptr;
  types_known_ = true;
  for (std::size_t i = 0; i < untyped_.size(); ++i) {
    untyped_[i]->attrs[MX_STR_SHAPE] = texts.at(i).first;
    untyped_[i]->attrs[MX_STR_DTYPE] = texts.at(i).second;
  }
}

void EditedGraph::requireTypes() {
  readTypes();
  if (types_known_) return;
  throw GraphError("shapes and types are not inferred for " + editor_ +
                   ": declare it with graph_pass(shapes=True)");
}

void EditedGraph::throwClosed() const {
  throw GraphError("the graph of " + editor_ +
                   " was used after it had returned; a graph can be used during the call only");
}

void EditedGraph::throwRemoved(const Node& node) const {
  throw GraphError("node " + quoted(node.name) + " (" + node.op + ") was removed from the graph");
}

void EditedGraph::requireValue(const NodeEntry& value) const {
  requireLive(value.node);
  if (mxnet::ext::host::hasOutput(*value.node, value.entry)) return;
  throw std::out_of_range(outputText(value) + " does not exist: the node has " +
                          std::to_string(std::max(value.node->num_outputs, 1)));
}

Node* EditedGraph::addNode(Graph* graph, const std::string& op, std::string name,
                           const std::vector<NodeEntry>& inputs, int num_outputs) {
  requireOpen();
  if (op.empty()) throw std::invalid_argument("a node needs an operator");
  if (num_outputs < 0) throw std::invalid_argument("a node cannot have less than no outputs");
  for (const NodeEntry& input : inputs) requireValue(input);
  const bool variable = op == "null";
  if (name.empty()) {
    for (const char character : op) {
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(character)));
    }
  }
  if (variable && namesOf(*graph).has(name)) {
    throw GraphError("there is a node named " + quoted(name) +
                     " already; a variable needs a name of its own");
  }
  name = freeName(*graph, name);
  noteChange();
  Node* node = graph->addNode(name, op);
  namesOf(*graph).insert(name);
  if (variable) graph->inputs.push_back(node);
  if (num_outputs > 0) mxnet::ext::host::declareOutputs(node, num_outputs);
  for (const NodeEntry& input : inputs) {
    connect(graph, input, node, static_cast<int>(node->inputs.size()));
  }
  added_.insert(node);
  return node;
}

std::vector<std::string> EditedGraph::originsOf(Node* node) const {
  const auto noted = origins_.find(node);
  if (noted != origins_.end()) return noted->second;
  std::vector<std::string> names;
  std::string earlier;
  if (mxnet::ext::host::AttributeTexts(node->attrs).get(MX_STR_ORIGIN, &earlier)) {
    try {
      for (const auto& each : mxnet::ext::JsonVal::parse(earlier).list) names.push_back(each.str);
    } catch (const std::exception&) {  // an attribute of the pass
      names.clear();
    }
  } else if (added_.count(node) == 0) {
    names.push_back(node->name);
  }
  return names;
}

void EditedGraph::noteOrigin(Node* heir, Node* node, bool last) {
  constexpr std::size_t kMost = 256;
  if (heir == node || heir->op == "null" || node->op == "null") return;
  std::vector<std::string> names = originsOf(heir);
  for (std::string& each : originsOf(node)) {
    const auto known = std::find(names.begin(), names.end(), each);
    if (names.size() >= kMost || (known != names.end() && !last)) continue;
    if (known != names.end()) names.erase(known);
    names.insert(last ? names.end() : names.begin(), std::move(each));
  }
  if (!names.empty()) origins_[heir] = std::move(names);
}

void EditedGraph::setInputs(Graph* graph, Node* node, const std::vector<NodeEntry>& inputs) {
  requireLive(node);
  for (const NodeEntry& input : inputs) requireValue(input);
  noteChange();
  for (const NodeEntry& input : node->inputs) heirs_.emplace(input.node, node);
  detachInputs(node);
  for (const NodeEntry& input : inputs) {
    connect(graph, input, node, static_cast<int>(node->inputs.size()));
  }
}

void EditedGraph::connect(Graph* graph, const NodeEntry& value, Node* node, int input) {
  requireValue(value);
  requireLive(node);
  if (input >= 0 && static_cast<std::size_t>(input) < node->inputs.size()) {
    Node* const before = node->inputs[static_cast<std::size_t>(input)].node;
    if (before != value.node) heirs_.emplace(before, node);
  }
  noteChange();
  graph->connect(value.node, value.entry, node, input);
  node->inputs[static_cast<std::size_t>(input)].version = value.version;
}

std::size_t EditedGraph::replace(Graph* graph, const NodeEntry& from, const NodeEntry& target) {
  requireValue(from);
  requireValue(target);
  noteChange();
  noteOrigin(target.node, from.node, true);
  heirs_[from.node] = target.node;
  dropRemoved(from.node);
  std::vector<NodeEntry> outputs;
  outputs.swap(graph->outputs);  // which `graph` would walk over
  std::size_t uses = graph->replace(from, target);
  outputs.swap(graph->outputs);
  Heads& heads = headsOf(*graph);
  const auto places = heads.extract({from.node, from.entry});
  if (places.empty()) return uses;
  std::vector<std::size_t>& made = heads[{target.node, target.entry}];
  for (const std::size_t place : places.mapped()) {
    graph->outputs[place] = target;
    made.push_back(place);
    ++uses;
  }
  return uses;
}

/// Throws if another node uses the nodes to be removed, or the graph has one as output.
void EditedGraph::requireUnused(const Graph& graph, const std::unordered_set<const Node*>& gone) {
  const Heads& heads = headsOf(graph);
  for (const Node* node : gone) {
    const auto head = heads.lower_bound({node, std::numeric_limits<int>::min()});
    if (head == heads.end() || head->first.first != node) continue;
    throw GraphError("node " + quoted(node->name) +
                     " cannot be removed, because it computes an output of the graph; replace "
                     "the output first");
  }
  for (const Node* node : gone) {
    for (const NodeEntry& use : node->outputs) {
      if (gone.count(use.node) != 0 || isRemoved(use.node)) continue;
      throw GraphError("node " + quoted(node->name) + " cannot be removed, because node " +
                       quoted(use.node->name) + " uses it as input " + std::to_string(use.entry) +
                       "; replace that first, or remove both at once");
    }
  }
}

void EditedGraph::remove(Graph* graph, const std::vector<Node*>& nodes) {
  for (const Node* node : nodes) requireLive(node);
  const std::unordered_set<const Node*> gone(nodes.begin(), nodes.end());
  requireUnused(*graph, gone);
  noteChange();
  std::vector<Node*>& listed = listed_[graph];
  for (Node* node : nodes) {
    if (!removed_.insert(node).second) continue;
    const auto heir = heirs_.find(node);
    if (heir != heirs_.end()) {
      // Its removed producers have the same heir.
      Node* const made = heir->second;
      noteOrigin(made, node, false);
      for (const NodeEntry& input : node->inputs) {
        if (input.node != made) heirs_.emplace(input.node, made);
      }
    }
    for (const NodeEntry& input : node->inputs) ++stale_[input.node];
    listed.push_back(node);
    if (named_ == graph) names_.erase(node->name);
  }
}

void EditedGraph::dropRemoved(Node* node) {
  const auto found = stale_.find(node);
  if (found == stale_.end()) return;
  std::vector<NodeEntry>& uses = node->outputs;
  uses.erase(std::remove_if(uses.begin(), uses.end(),
                            [&](const NodeEntry& use) { return isRemoved(use.node); }),
             uses.end());
  stale_.erase(found);
}

const std::vector<NodeEntry>& EditedGraph::consumersOf(Node* node) {
  const auto found = stale_.find(node);
  if (found != stale_.end() && found->second * 2 > node->outputs.size()) dropRemoved(node);
  return node->outputs;
}

std::vector<NodeEntry> EditedGraph::usesOf(Node* node, int output) {
  std::vector<NodeEntry> uses;
  for (const NodeEntry& use : consumersOf(node)) {
    const bool same = use.node->inputs[static_cast<std::size_t>(use.entry)].entry == output;
    if (same && !isRemoved(use.node)) uses.push_back(use);
  }
  return uses;
}

bool EditedGraph::isUsed(const Graph& graph, const Node* node) const {
  const auto found = stale_.find(node);
  if (node->outputs.size() > (found == stale_.end() ? 0 : found->second)) return true;
  return isHead(graph, node);
}

bool EditedGraph::isHead(const Graph& graph, const Node* node) const {
  const Heads& heads = headsOf(graph);
  const auto head = heads.lower_bound({node, std::numeric_limits<int>::min()});
  return head != heads.end() && head->first.first == node;
}

bool EditedGraph::isOutput(const Graph& graph, const NodeEntry& value) const {
  return headsOf(graph).count({value.node, value.entry}) != 0;
}

EditedGraph::Heads& EditedGraph::headsOf(const Graph& graph) const {
  const auto [found, fresh] = heads_.try_emplace(&graph);
  if (fresh) {
    for (std::size_t place = 0; place < graph.outputs.size(); ++place) {
      const NodeEntry& head = graph.outputs[place];
      found->second[{head.node, head.entry}].push_back(place);
    }
  }
  return found->second;
}

int EditedGraph::knownOutputs(const Graph& graph, Node* node) {
  if (node->op == "null") return 1;
  int count = std::max(node->num_outputs, 1);
  if (!mxnet::ext::host::hasOutput(*node, count)) return count;
  for (const NodeEntry& use : consumersOf(node)) {
    count = std::max(count, use.node->inputs[static_cast<std::size_t>(use.entry)].entry + 1);
  }
  const Heads& heads = headsOf(graph);
  auto last = heads.lower_bound({node, std::numeric_limits<int>::max()});
  if (last != heads.begin() && (--last)->first.first == node) {
    count = std::max(count, last->first.second + 1);
  }
  return count;
}

void EditedGraph::flush(Graph* graph) {
  const auto found = listed_.find(graph);
  if (found == listed_.end()) return;
  for (const Node* node : found->second) {
    for (const NodeEntry& input : node->inputs) stale_.erase(input.node);
  }
  graph->removeNodes(found->second);
  listed_.erase(found);
}

const std::vector<Node*>& EditedGraph::nodes(Graph* graph) {
  requireOpen();
  flush(graph);
  return graph->nodes;
}

void EditedGraph::setOutputs(Graph* graph, const std::vector<NodeEntry>& outputs) {
  if (outputs.empty()) throw std::invalid_argument("a graph needs an output");
  for (const NodeEntry& output : outputs) requireValue(output);
  noteChange();
  graph->outputs = outputs;
  heads_.erase(graph);
}

void EditedGraph::rename(Graph* graph, Node* node, const std::string& name) {
  requireLive(node);
  if (name == node->name) return;
  UsedNames& names = namesOf(*graph);
  if (names.has(name)) {
    throw GraphError("node " + quoted(node->name) + " cannot be renamed to " + quoted(name) +
                     ", which is the name of another node");
  }
  noteChange();
  names.erase(node->name);
  names.insert(name);
  node->name = name;
}

std::vector<NodeEntry> EditedGraph::absorb(Graph* graph, Node* node, std::size_t number,
                                           const std::vector<std::pair<Node*, NodeEntry>>& given,
                                           std::vector<Node*>* moved) {
  requireLive(node);
  if (number >= node->subgraphs.size()) {
    throw std::out_of_range("node " + quoted(node->name) + " has " +
                            std::to_string(node->subgraphs.size()) + " nested graphs");
  }
  Graph* nested = node->subgraphs[number];
  flush(nested);
  std::unordered_map<const Node*, NodeEntry> by_variable;
  for (const auto& [variable, value] : given) {
    requireLive(variable);
    requireValue(value);
    by_variable.emplace(variable, value);
  }
  noteChange();
  std::vector<NodeEntry> results = nested->outputs;
  nested->outputs.clear();
  heads_.erase(nested);
  for (NodeEntry& result : results) {
    const auto found = by_variable.find(result.node);
    if (found != by_variable.end()) result = found->second;
  }
  for (const auto& [variable, value] : given) nested->replace(NodeEntry(variable, 0), value);
  UsedNames& names = namesOf(*graph);
  std::vector<Node*> staying;
  for (Node* each : nested->nodes) {
    if (by_variable.count(each) != 0) {
      staying.push_back(each);
      continue;
    }
    each->name = freeName(*graph, each->name);
    names.insert(each->name);
    graph->nodes.push_back(each);
    moved->push_back(each);
    if (each->op == "null") graph->inputs.push_back(each);
  }
  nested->nodes = staying;
  nested->inputs = std::move(staying);
  if (named_ == nested) named_ = nullptr;
  return results;
}

std::unique_ptr<Graph> EditedGraph::part(const std::vector<NodeEntry>& values) {
  readTypes();
  requireOpen();
  while (!listed_.empty()) flush(listed_.begin()->first);
  for (const NodeEntry& value : values) requireValue(value);
  const NodeTable table(graph_->nodes);
  std::unique_ptr<Graph> copy = copyGraph(*graph_);
  copy->attrs.clear();
  copy->outputs.clear();
  for (const NodeEntry& value : values) {
    const int64_t place = table.find(value.node);
    if (place < 0) throw std::invalid_argument(outputText(value) + " is in a nested graph");
    copy->outputs.emplace_back(copy->nodes[static_cast<std::size_t>(place)], value.entry,
                               value.version);
  }
  sortGraph(copy.get());
  orderLevel(copy.get());
  return copy;
}

std::unique_ptr<Graph> EditedGraph::close() {
  requireOpen();
  while (!listed_.empty()) flush(listed_.begin()->first);
  for (const auto& [node, names] : origins_) {
    if (isRemoved(node)) continue;
    mxnet::ext::JsonVal list(mxnet::ext::LIST);
    for (const std::string& each : names) list.list.emplace_back(each);
    node->attrs[MX_STR_ORIGIN] = list.dump();
  }
  return std::move(graph_);
}

std::string EditedGraph::freeName(const Graph& graph, const std::string& wanted) {
  const UsedNames& names = namesOf(graph);
  std::string name = wanted;
  while (names.has(name)) name = wanted + "_" + std::to_string(++numbers_[wanted]);
  return name;
}

UsedNames& EditedGraph::namesOf(const Graph& graph) {
  if (named_ != &graph) {
    names_.clear();
    numbers_.clear();
    for (const Node* node : graph.nodes) {
      if (removed_.count(node) == 0) names_.insert(node->name);
    }
    named_ = &graph;
  }
  return names_;
}

}  // namespace passlib
