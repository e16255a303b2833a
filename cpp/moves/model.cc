#include "moves/model.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "facts/node_view.h"
#include "graph/attributes.h"
#include "moves/kernels.h"
#include "rules/engine.h"

namespace passlib::moves {
namespace {

constexpr const char* kAbsent = "__absent__";

bool has(const Node& node, std::string_view key) {
  return attributeOf(node, key).data() != nullptr;
}

/// Whether a node is a variable with a known value that callers cannot set.
bool isConstant(const Node& node) {
  if (!isVariable(node) || has(node, "__default__") || has(node, "__outer__")) return false;
  if (node.tensor != nullptr || has(node, "__opaque__")) return true;
  const std::string_view id = attributeOf(node, "__id__");
  return id.data() != nullptr && id.substr(0, 6) != "input.";
}

}  // namespace

bool isOperator(const Node& node, std::string_view op) {
  return node.op == op && isOwnDomain(node);
}

bool isOneOf(const Node& node, const std::unordered_set<std::string_view>& ops) {
  return ops.count(node.op) != 0 && isOwnDomain(node);
}

bool isOldBroadcast(const Node& node) { return has(node, "axis") || has(node, "broadcast"); }

std::optional<Integers> integersOf(const Node& node, std::string_view key) {
  const std::string_view text = attributeOf(node, key);
  Integers numbers;
  if (text.data() == nullptr || !facts::parseIntegers(text, &numbers)) return std::nullopt;
  return numbers;
}

std::optional<Integers> permutationOf(const Node& node, std::size_t rank) {
  if (!has(node, "perm")) {
    Integers reversed(rank);
    for (std::size_t axis = 0; axis < rank; ++axis)
      reversed[axis] = static_cast<int64_t>(rank - 1 - axis);
    return reversed;
  }
  std::optional<Integers> stated = integersOf(node, "perm");
  if (!stated || stated->size() != rank) return std::nullopt;
  std::vector<char> seen(rank);
  for (const int64_t axis : *stated) {
    if (axis < 0 || axis >= static_cast<int64_t>(rank)) return std::nullopt;
    if (seen[static_cast<std::size_t>(axis)]++ != 0) return std::nullopt;
  }
  return stated;
}

bool isSorted(const Integers& numbers) { return std::is_sorted(numbers.begin(), numbers.end()); }

std::string textOf(const Integers& numbers) {
  std::string text = "[";
  for (const int64_t number : numbers)
    text += (text.size() > 1 ? ", " : "") + std::to_string(number);
  return text + "]";
}

Model::Model(const Hooks& hooks) : hooks_(hooks) {
  opset_ = rules::operatorSetsOf(*hooks.graph)[""];
}

std::vector<Node*> Model::sorted(const std::unordered_set<std::string_view>& ops) const {
  const std::vector<Node*>& nodes = owner().nodes(hooks_.graph);
  std::vector<Node*> order = mxnet::ext::sortNodes(nodes, NodeTable(nodes));
  order.erase(std::remove_if(order.begin(), order.end(),
                             [&ops](const Node* node) { return !isOneOf(*node, ops); }),
              order.end());
  return order;
}

std::optional<NodeEntry> Model::onlyUse(const NodeEntry& value) const {
  std::optional<NodeEntry> only;
  for (const NodeEntry& use : owner().consumersOf(value.node)) {
    const NodeEntry& input = use.node->inputs[static_cast<std::size_t>(use.entry)];
    if (input.entry != value.entry || isGone(use.node)) continue;
    if (only) return std::nullopt;
    only = use;
  }
  return only;
}

bool Model::needsIdentity(const NodeEntry& result, const NodeEntry& by) const {
  return isOutput(result) && (isVariable(*by.node) || isOutput(by));
}

const MXTensor* Model::array(const NodeEntry& value) const {
  return isVariable(*value.node) && !has(*value.node, "__default__") ? value.node->tensor : nullptr;
}

const facts::Fact& Model::fact(const NodeEntry& value) {
  if (!inferred_) hooks_.infer();
  inferred_ = true;
  const auto same = value.entry == 0 ? same_.find(value.node) : same_.end();
  return hooks_.fact(same == same_.end() ? value : same->second);
}

std::optional<facts::Shape> Model::shape(const NodeEntry& value) {
  if (const MXTensor* constant = array(value))
    return facts::Shape(constant->shape.begin(), constant->shape.end());
  const facts::Fact& known = fact(value);
  return known.isTensor() ? known.shape : std::nullopt;
}

bool Model::runs(std::string_view op, const NodeEntry& value) {
  if (const MXTensor* constant = array(value))
    return hasKernel(op, rules::onnxType(constant->dtype), opset_);
  const facts::Fact& known = fact(value);
  return known.isTensor() && hasKernel(op, known.type, opset_);
}

std::string Model::fresh(const std::string& wish) {
  if (!named_) {
    for (const Node* node : owner().nodes(hooks_.graph)) names_.insert(node->name);
    named_ = true;
  }
  std::string name = wish;
  int& count = numbers_[wish];
  while (names_.count(name) != 0) name = wish + "_" + std::to_string(++count);
  names_.insert(name);
  return name;
}

NodeEntry Model::add(const std::string& wish, const std::string& op,
                     const std::vector<NodeEntry>& inputs, const Attributes& attributes) {
  Node* node = owner().addNode(hooks_.graph, op, fresh(wish), inputs, 1);
  for (const auto& [key, text] : attributes) node->attrs[key] = text;
  return NodeEntry(node, 0);
}

NodeEntry Model::addLike(const NodeEntry& value, const std::string& op,
                         const std::vector<NodeEntry>& inputs, const Attributes& attributes) {
  std::string wish = value.node->name + "_";
  for (const char letter : op)
    wish += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  const NodeEntry made = add(wish, op, inputs, attributes);
  const auto same = value.entry == 0 ? same_.find(value.node) : same_.end();
  same_[made.node] = same == same_.end() ? value : same->second;
  return made;
}

NodeEntry Model::addConstant(const std::string& wish, const std::vector<int64_t>& shape,
                             MXDType type) {
  Node* node = owner().addNode(hooks_.graph, "null", fresh(wish), {}, 0);
  hooks_.allocate(node, shape, type);
  return NodeEntry(node, 0);
}

NodeEntry Model::addConstant(const std::string& wish, const Integers& numbers) {
  const NodeEntry made =
      addConstant(wish, {static_cast<int64_t>(numbers.size())}, mxnet::ext::kInt64);
  if (!numbers.empty())
    std::memcpy(made.node->tensor->data_ptr, numbers.data(), numbers.size() * sizeof(int64_t));
  return made;
}

void Model::replace(Node* node, const NodeEntry& by) {
  owner().replace(hooks_.graph, NodeEntry(node, 0), by);
  removeUnused({node});
}

void Model::removeUnused(std::vector<Node*> pending) {
  while (!pending.empty()) {
    Node* node = pending.back();
    pending.pop_back();
    if (isGone(node) || node->name == kAbsent || owner().isUsed(*hooks_.graph, node)) continue;
    if (isVariable(*node) && !isConstant(*node)) continue;
    if (isVariable(*node)) gone_constants_.push_back(node->name);
    for (const NodeEntry& input : node->inputs) pending.push_back(input.node);
    owner().remove(hooks_.graph, {node});
  }
}

}  // namespace passlib::moves
