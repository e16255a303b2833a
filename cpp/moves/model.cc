#include "moves/model.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <utility>

#include "facts/node_view.h"
#include "facts/onnx_source.h"
#include "graph/attributes.h"
#include "moves/kernels.h"
#include "onnx/parts/attribute.h"
#include "onnx/parts/tensor.h"
#include "rules/engine.h"
#include "rules/known.h"

namespace passlib::moves {
namespace {

constexpr const char* kAbsent = "__absent__";

bool has(const Node& node, std::string_view key) {
  return attributeOf(node, key).data() != nullptr;
}

/// The original of a variable of a nested graph; null for other nodes.
const onnx::Original* nestedOriginal(const onnx::Originals* file, const Node& node) {
  if (file == nullptr || !isVariable(node) || has(node, "__outer__")) return nullptr;
  const std::string_view id = attributeOf(node, "__id__");
  if (std::count(id.begin(), id.end(), '.') < 2) return nullptr;
  return file->find(id);
}

template <typename Number>
NestedElements elementsOf(int type, Integers dims, const std::vector<Number>& numbers) {
  NestedElements made{type, std::move(dims), {}, nullptr};
  made.copied.resize(numbers.size() * sizeof(Number));
  if (!numbers.empty()) std::memcpy(made.copied.data(), numbers.data(), made.copied.size());
  made.data = made.copied.data();
  return made;
}

/// The elements of a constant of a nested graph whose data is in another file.
std::optional<NestedElements> elementsElsewhere(const onnx::Originals& file,
                                                const onnx::Tensor& tensor) {
  const onnx::Elsewhere* const found = file.elsewhere(tensor.message);
  const onnx::ElementType* const type = onnx::elementType(tensor.type);
  if (found == nullptr || type == nullptr) return std::nullopt;
  const std::size_t count = onnx::countElements(tensor.dims, [] { return std::string("tensor"); });
  if (count != found->data.size() / type->size) return std::nullopt;
  return NestedElements{tensor.type, tensor.dims, {}, found->data.data(), found->owner};
}

template <typename Number>
NestedElements listOf(int type, const std::vector<Number>& numbers) {
  return elementsOf(type, {static_cast<int64_t>(numbers.size())}, numbers);
}

}  // namespace

bool isAbsent(const Node& node) { return node.name == kAbsent; }

bool isConstant(const Node& node) {
  if (!isVariable(node) || has(node, "__default__") || has(node, "__outer__")) return false;
  if (node.tensor != nullptr || has(node, "__opaque__")) return true;
  const std::string_view id = attributeOf(node, "__id__");
  return id.data() != nullptr && id.substr(0, 6) != "input.";
}

const NodeEntry* outerValue(const Node& variable, const Node& node) {
  std::size_t place = 0;
  const std::string_view number = attributeOf(variable, "__outer__");
  if (!onnx::parsePosition(number, &place) || place >= node.inputs.size()) return nullptr;
  return &node.inputs[place];
}

bool isOperator(const Node& node, std::string_view op) {
  return node.op == op && isOwnDomain(node);
}

bool isFree(const Node& node) { return node.control_deps.empty() && !node.inputs.empty(); }

bool isFreeOperator(const Node& node, std::string_view op) {
  return isOperator(node, op) && isFree(node);
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

std::optional<int64_t> integerOf(const Node& node, std::string_view key, int64_t preset) {
  const std::string_view text = attributeOf(node, key);
  if (text.data() == nullptr) return preset;
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

const NodeEntry* given(const Node& node, std::size_t number) {
  if (number >= node.inputs.size() || isAbsent(*node.inputs[number].node)) return nullptr;
  return &node.inputs[number];
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

std::string tupleOf(const Integers& numbers) {
  std::string text = "(";
  for (std::size_t i = 0; i < numbers.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(numbers[i]);
  return text + (numbers.size() == 1 ? ",)" : ")");
}

Model::Model(const Hooks& hooks) : hooks_(hooks) {
  opset_ = rules::operatorSetsOf(*hooks.graph)[""];
}

std::vector<Graph*> Model::graphs() const {
  std::vector<Graph*> found = {graph()};
  for (const Node* node : nodes()) {
    std::vector<Graph*> pending = node->subgraphs;
    while (!pending.empty()) {
      Graph* const nested = pending.back();
      pending.pop_back();
      found.push_back(nested);
      for (const Node* inner : owner().nodes(nested))
        pending.insert(pending.end(), inner->subgraphs.begin(), inner->subgraphs.end());
    }
  }
  return found;
}

std::vector<Node*> Model::sorted() const {
  return mxnet::ext::sortNodes(nodes(), NodeTable(nodes()));
}

std::vector<Node*> Model::sorted(const std::unordered_set<std::string_view>& ops) const {
  std::vector<Node*> order = sorted();
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

std::vector<Node*> Model::users(Node* node) const {
  std::vector<Node*> found;
  std::unordered_set<const Node*> seen;
  for (const NodeEntry& use : owner().consumersOf(node)) {
    if (!isGone(use.node) && seen.insert(use.node).second) found.push_back(use.node);
  }
  return found;
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
  return hooks_.fact(known(value));
}

bool Model::isOneNumber(const NodeEntry& value) {
  if (const MXTensor* constant = array(value)) return constant->size() == 1;
  if (!isConstant(*value.node)) return false;
  const std::optional<facts::Shape> sizes = shape(value);
  return sizes && facts::product(*sizes).is(1);
}

std::optional<facts::Shape> Model::shape(const NodeEntry& value) {
  if (const MXTensor* constant = array(value))
    return facts::Shape(constant->shape.begin(), constant->shape.end());
  const facts::Fact& known = fact(value);
  return known.isTensor() ? known.shape : std::nullopt;
}

std::optional<std::vector<facts::Dim>> Model::content(const NodeEntry& value) {
  if (const MXTensor* constant = array(value)) {
    const auto size = static_cast<std::size_t>(constant->size());
    const int type = rules::onnxType(constant->dtype);
    if (size > facts::kMostElements || (!rules::isWhole(type) && type != facts::kBool))
      return std::nullopt;
    std::vector<facts::Dim> items;
    for (std::size_t pos = 0; pos < size; ++pos)
      items.emplace_back(rules::integerAt(*constant, pos));
    return items;
  }
  const std::vector<facts::Dim>* items = facts::wholeItems(fact(value));
  return items == nullptr ? std::nullopt : std::optional(*items);
}

std::optional<Integers> Model::whole(const NodeEntry& value) {
  const std::optional<std::vector<facts::Dim>> items = content(value);
  if (!items) return std::nullopt;
  Integers numbers;
  for (const facts::Dim& item : *items) {
    if (!item.isNumber()) return std::nullopt;
    numbers.push_back(item.number());
  }
  return numbers;
}

std::optional<Integers> Model::axes(const Node& node) {
  if (has(node, "axes")) return integersOf(node, "axes");
  const NodeEntry* listed = given(node, 1);
  return listed == nullptr ? std::nullopt : whole(*listed);
}

int Model::type(const NodeEntry& value) {
  if (const MXTensor* constant = array(value)) return rules::onnxType(constant->dtype);
  const auto changed = types_.find({value.node, value.entry});
  if (changed != types_.end()) return changed->second;
  const facts::Fact& known = fact(value);
  return known.isTensor() ? known.type : 0;
}

facts::Fact Model::nestedFact(const Node& node) const {
  if (nestedOriginal(hooks_.file.get(), node) == nullptr) return {};
  return facts::OnnxSource(hooks_.file).describe(node);
}

std::optional<Integers> Model::nestedNumbers(const Node& node) const {
  const facts::Fact fact = nestedFact(node);
  const std::vector<facts::Dim>* const items = facts::wholeItems(fact);
  if (items == nullptr) return std::nullopt;
  Integers numbers;
  for (const facts::Dim& item : *items) numbers.push_back(item.number());
  return numbers;
}

bool Model::runs(std::string_view op, const NodeEntry& value) {
  return hasKernel(op, type(value), opset_);
}

std::string Model::fresh(const std::string& wish) {
  if (!named_) {
    for (const Node* node : owner().nodes(hooks_.graph)) names_.use(node->name);
    named_ = true;
  }
  return names_.fresh(wish);
}

NodeEntry Model::add(const std::string& wish, const std::string& op,
                     const std::vector<NodeEntry>& inputs, const Attributes& attributes,
                     int num_outputs) {
  Node* node = owner().addNode(hooks_.graph, op, fresh(wish), inputs, num_outputs);
  for (const auto& [key, text] : attributes) node->attrs[key] = text;
  return NodeEntry(node, 0);
}

NodeEntry Model::addBefore(const NodeEntry& value, const std::string& op,
                           const std::vector<NodeEntry>& inputs, const Attributes& attributes) {
  std::string wish = value.node->name + "_";
  for (const char letter : op)
    wish += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return add(wish, op, inputs, attributes);
}

NodeEntry Model::addLike(const NodeEntry& value, const std::string& op,
                         const std::vector<NodeEntry>& inputs, const Attributes& attributes) {
  const NodeEntry made = addBefore(value, op, inputs, attributes);
  noteSame(made, value);
  return made;
}

NodeEntry Model::addConstant(const std::string& wish, const std::vector<int64_t>& shape,
                             MXDType type) {
  Node* node = owner().addNode(hooks_.graph, "null", fresh(wish), {}, 0);
  hooks_.allocate(node, shape, type);
  return NodeEntry(node, 0);
}

NodeEntry Model::addSmallConstant(const std::string& wish, const std::vector<int64_t>& shape,
                                  const std::string& type) {
  const NodeEntry made =
      addConstant(wish, shape, type == "int4" ? mxnet::ext::kInt8 : mxnet::ext::kUint8);
  made.node->attrs["__opaque__"] = type;
  made.node->attrs["__shape__"] = tupleOf(shape);
  return made;
}

void Model::handOver(Node* weight) {
  weight->tensor = nullptr;
  hooks_.hand_over(weight);
}

NodeEntry Model::addCopy(const std::string& wish, const NestedElements& elements) {
  Node* node = owner().addNode(hooks_.graph, "null", fresh(wish), {}, 0);
  setElements(node, elements);
  return NodeEntry(node, 0);
}

NodeEntry Model::addConstant(const std::string& wish, const Integers& numbers) {
  const NodeEntry made =
      addConstant(wish, {static_cast<int64_t>(numbers.size())}, mxnet::ext::kInt64);
  if (!numbers.empty())
    std::memcpy(made.node->tensor->data_ptr, numbers.data(), numbers.size() * sizeof(int64_t));
  return made;
}

void Model::noteOrigin(Node* made, const Node& node) {
  const std::string_view origin = attributeOf(node, MX_STR_ORIGIN);
  mxnet::ext::JsonVal own(mxnet::ext::LIST);
  own.list.emplace_back(node.name);
  made->attrs[MX_STR_ORIGIN] = origin.data() == nullptr ? own.dump() : std::string(origin);
  const std::string_view rules = attributeOf(node, MX_STR_RULES);
  if (rules.data() != nullptr) made->attrs[MX_STR_RULES] = std::string(rules);
}

NodeEntry Model::capture(Graph* around, Node* node, Graph* nested, const NodeEntry& outer,
                         const std::string& name) const {
  const std::size_t slot = node->inputs.size();
  const int64_t captured = integerOf(*node, "__captured_inputs__", 0).value_or(0);
  node->attrs.emplace("__formal_inputs__", std::to_string(static_cast<int64_t>(slot) - captured));
  node->attrs["__captured_inputs__"] = std::to_string(captured + 1);
  owner().connect(around, outer, node, static_cast<int>(slot));
  Node* const variable = owner().addNode(nested, "null", name, {}, 0);
  variable->attrs["__outer__"] = std::to_string(slot);
  return NodeEntry(variable, 0);
}

NodeEntry Model::absent() {
  const std::vector<Node*>& all = nodes();
  const auto found =
      std::find_if(all.begin(), all.end(), [](const Node* node) { return isAbsent(*node); });
  if (found != all.end()) return NodeEntry(*found, 0);
  return NodeEntry(owner().addNode(hooks_.graph, "null", kAbsent, {}, 0), 0);
}

void Model::noteMoved(const std::vector<Node*>& nodes) {
  for (Node* node : nodes) {
    if (named_) names_.use(node->name);
    if (const std::optional<NestedElements> elements = nestedElements(*node))
      setElements(node, *elements);
  }
}

std::optional<NestedElements> Model::nestedElements(const Node& constant) const {
  const onnx::Original* const original = nestedOriginal(hooks_.file.get(), constant);
  if (original == nullptr) return std::nullopt;
  onnx::Bytes message = original->message();
  if (original->what == onnx::Original::kConstant) {
    const onnx::Range range = original->record().attributes;
    if (range.count != 1) return std::nullopt;
    const onnx::Attribute& value = original->graph->level.attributes[range.first].attribute;
    if (value.kind == onnx::Kind::kInt)
      return elementsOf(facts::kInt64, {}, std::vector<int64_t>{value.whole});
    if (value.kind == onnx::Kind::kFloat)
      return elementsOf(facts::kFloat, {}, std::vector<float>{value.real});
    if (value.kind == onnx::Kind::kInts)
      return listOf(facts::kInt64, onnx::numbersOf<int64_t>(value));
    if (value.kind == onnx::Kind::kFloats)
      return listOf(facts::kFloat, onnx::numbersOf<float>(value));
    if (value.kind != onnx::Kind::kTensor) return std::nullopt;
    message = value.content;
  } else if (original->what != onnx::Original::kInitializer) {
    return std::nullopt;
  }
  const onnx::Tensor tensor = onnx::readTensor(message);
  if (tensor.external) return elementsElsewhere(*hooks_.file, tensor);
  const onnx::Elements elements = onnx::checkElements(
      tensor, [&] { return "tensor " + std::string(attributeOf(constant, "__id__")); });
  if (elements.type == nullptr) return std::nullopt;
  NestedElements found{tensor.type, tensor.dims, {}, elements.raw.data()};
  if (!tensor.has_raw) {
    found.copied.resize(elements.count * elements.type->size);
    onnx::copyElements(tensor, elements, found.copied.data());
    found.data = found.copied.data();
  }
  return found;
}

void Model::setElements(Node* variable, const NestedElements& elements) {
  const MXDType type = rules::arrayType(elements.type);
  if (elements.owner != nullptr) {
    hooks_.lend(variable, elements.dims, type, elements.data, elements.owner);
    return;
  }
  hooks_.allocate(variable, elements.dims, type);
  const MXTensor& made = *variable->tensor;
  const std::size_t bytes = static_cast<std::size_t>(made.size()) * rules::bytesOf(made.dtype);
  if (bytes != 0) std::memcpy(made.data_ptr, elements.data, bytes);
}

void Model::forgetFacts() {
  inferred_ = false;
  same_.clear();
  types_.clear();
}

void Model::replace(Node* node, const NodeEntry& by) {
  owner().replace(hooks_.graph, NodeEntry(node, 0), by);
  removeUnused({node});
}

void Model::replace(Node* node, const std::vector<NodeEntry>& by) {
  const int count = owner().knownOutputs(*hooks_.graph, node);
  for (int i = 0; i < std::min(count, static_cast<int>(by.size())); ++i)
    owner().replace(hooks_.graph, NodeEntry(node, i), by[static_cast<std::size_t>(i)]);
  removeUnused({node});
}

void Model::removeUnused(std::vector<Node*> pending) {
  while (!pending.empty()) {
    Node* node = pending.back();
    pending.pop_back();
    if (isGone(node) || isAbsent(*node) || owner().isUsed(*hooks_.graph, node)) continue;
    if (isVariable(*node) && !isConstant(*node)) continue;
    if (isVariable(*node)) gone_constants_.push_back(node->name);
    for (const NodeEntry& input : node->inputs) pending.push_back(input.node);
    owner().remove(hooks_.graph, {node});
  }
}

}  // namespace passlib::moves
