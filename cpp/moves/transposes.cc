#include <algorithm>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "moves/moves.h"

namespace passlib::moves {
namespace {

using facts::Dim;
using facts::Shape;

const std::unordered_set<std::string_view> kTurning{"Transpose"};
const std::unordered_set<std::string_view> kTurningOrAxes{"Squeeze", "Transpose", "Unsqueeze"};

/// Stands for an axis of size 1 that was added.
constexpr int64_t kNew = -1;

bool isTranspose(const Node& node) { return isFreeOperator(node, "Transpose"); }

/// Lets a Transpose take what the Transpose before it takes.
void compose(Model* model, Node* node) {
  const Node& before = *node->inputs[0].node;
  if (!isTranspose(before)) return;
  const NodeEntry source = before.inputs[0];
  const std::optional<Shape> shape = model->shape(source);
  if (!shape) return;
  const std::optional<Integers> first = permutationOf(before, shape->size());
  const std::optional<Integers> second = permutationOf(*node, shape->size());
  if (!first || !second) return;
  Integers order;
  for (const int64_t axis : *second) order.push_back((*first)[static_cast<std::size_t>(axis)]);
  const NodeEntry result(node, 0);
  if (!isSorted(order)) {
    model->replace(node, model->addLike(result, "Transpose", {source}, {{"perm", textOf(order)}}));
  } else if (!model->needsIdentity(result, source)) {
    model->replace(node, source);
  } else if (model->runs("Identity", result)) {
    model->replace(node, model->addLike(result, "Identity", {source}));
  }
}

void composeAll(Model* model, const std::vector<Node*>& nodes) {
  for (Node* node : nodes) {
    if (!model->isGone(node) && isTranspose(*node)) compose(model, node);
  }
}

/// Whether a Transpose follows another one that no third one can meet.
bool endsPair(const Node& node) {
  if (!isTranspose(node)) return false;
  const Node& before = *node.inputs[0].node;
  return isTranspose(before) && !isPassable(*before.inputs[0].node);
}

/// Returns for each merged size the axes whose product it is; nothing if the axes are in no groups.
std::optional<std::vector<Integers>> groupsOf(const Shape& sizes, const Shape& merged) {
  std::vector<Integers> groups;
  std::size_t axis = 0;
  for (const Dim& size : merged) {
    Integers group;
    Dim total(1);
    while (axis < sizes.size() && (total != size || group.empty())) {
      if (group.empty() && size.is(1) && !sizes[axis].is(1)) break;
      total = total * sizes[axis];
      group.push_back(static_cast<int64_t>(axis));
      ++axis;
    }
    if (total != size) return std::nullopt;
    groups.push_back(std::move(group));
  }
  for (; axis < sizes.size() && !groups.empty() && sizes[axis].is(1); ++axis)
    groups.back().push_back(static_cast<int64_t>(axis));
  if (axis != sizes.size()) return std::nullopt;
  return groups;
}

/// Whether a Reshape works for sizes of 0 as for others.
bool neverFails(Model* model, const Node& reshape) {
  const NodeEntry* target = given(reshape, 1);
  const auto content = target == nullptr ? std::nullopt : model->content(*target);
  if (!content) return false;
  const auto is_rest = [](const Dim& item) { return item.is(-1); };
  const auto is_size = [](const Dim& item) { return item.isNumber() && !item.is(0); };
  return std::none_of(content->begin(), content->end(), is_rest) ||
         std::all_of(content->begin(), content->end(), is_size);
}

/// Replaces a Transpose of merged axes between two Reshapes by a Transpose of all axes.
void splitAgain(Model* model, Node* node, bool empty_errors) {
  const Node& turn = *node->inputs[0].node;
  if (!isTranspose(turn)) return;
  const Node& merge = *turn.inputs[0].node;
  if (!isFreeOperator(merge, "Reshape")) return;
  const NodeEntry source = merge.inputs[0];
  const std::optional<Shape> have = model->shape(source);
  const std::optional<Shape> merged = model->shape(turn.inputs[0]);
  const std::optional<Shape> want = model->shape(NodeEntry(node, 0));
  if (!have || !merged || !want) return;
  if (empty_errors && !(neverFails(model, merge) && neverFails(model, *node))) return;
  const std::optional<std::vector<Integers>> groups = groupsOf(*have, *merged);
  const std::optional<Integers> order = permutationOf(turn, merged->size());
  if (!groups || !order) return;
  Integers axes;
  Shape made;
  for (const int64_t place : *order) {
    for (const int64_t axis : (*groups)[static_cast<std::size_t>(place)]) {
      axes.push_back(axis);
      made.push_back((*have)[static_cast<std::size_t>(axis)]);
    }
  }
  if (made != *want || isSorted(axes)) return;
  model->replace(
      node, model->addLike(NodeEntry(node, 0), "Transpose", {source}, {{"perm", textOf(axes)}}));
}

/// Whether a node is a Transpose, or a Squeeze or Unsqueeze with known axes.
bool isLink(Model* model, const Node& node) {
  if (!isOneOf(node, kTurningOrAxes) || !isFree(node)) return false;
  if (node.op == "Transpose") return true;
  const std::optional<Integers> axes = model->axes(node);
  return axes && !axes->empty();
}

bool endsChain(Model* model, Node* node) {
  const NodeEntry value(node, 0);
  if (!isLink(model, *node)) return false;
  const std::optional<NodeEntry> use =
      model->isOutput(value) ? std::nullopt : model->onlyUse(value);
  return !use || use->entry != 0 || !isLink(model, *use->node);
}

/// Returns the links that end in one, the last first; none without Transpose. Nothing else uses
/// what is between them.
std::vector<Node*> chainOf(Model* model, Node* node) {
  std::vector<Node*> found;
  bool turns = false;
  while (isLink(model, *node)) {
    found.push_back(node);
    turns = turns || node->op == "Transpose";
    const NodeEntry& value = node->inputs[0];
    if (model->isOutput(value) || !model->onlyUse(value)) break;
    node = value.node;
  }
  return turns ? found : std::vector<Node*>();
}

/// Returns where the axes of the first value are in the result of a link.
std::optional<Integers> axesAfter(Model* model, const Node& node, const Integers& axes) {
  Integers made;
  if (node.op == "Transpose") {
    const std::optional<Integers> order = permutationOf(node, axes.size());
    if (!order) return std::nullopt;
    for (const int64_t place : *order) made.push_back(axes[static_cast<std::size_t>(place)]);
    return made;
  }
  const std::optional<Integers> listed = model->axes(node);
  if (!listed) return std::nullopt;
  const bool adds = node.op == "Unsqueeze";
  const std::size_t size = axes.size() + (adds ? listed->size() : 0);
  const auto rank = static_cast<int64_t>(size);
  std::vector<char> chosen(size);
  for (const int64_t axis : *listed) {
    if (axis < -rank || axis >= rank) return std::nullopt;
    char& seen = chosen[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)];
    if (seen != 0) return std::nullopt;
    seen = 1;
  }
  auto rest = axes.begin();
  for (const char is_chosen : chosen) {
    const bool is_new = is_chosen != 0 && adds;
    if (is_chosen == 0 || adds) made.push_back(is_new ? kNew : *rest);
    if (!is_new) ++rest;
  }
  return made;
}

/// One operator of a chain, and its axes.
struct Link {
  const char* op;
  Integers axes;
};

/// Returns the operators that bring the axes of a value of some rank to these places.
std::vector<Link> linksFor(std::size_t rank, const Integers& axes) {
  Integers kept;
  Integers places;
  Link squeeze{"Squeeze", {}};
  Link unsqueeze{"Unsqueeze", {}};
  Link transpose{"Transpose", {}};
  for (std::size_t place = 0; place < axes.size(); ++place) {
    Integers& list = axes[place] == kNew ? unsqueeze.axes : places;
    list.push_back(static_cast<int64_t>(place));
    if (axes[place] != kNew) kept.push_back(axes[place]);
  }
  std::sort(kept.begin(), kept.end());
  for (int64_t axis = 0; axis < static_cast<int64_t>(rank); ++axis) {
    if (!std::binary_search(kept.begin(), kept.end(), axis)) squeeze.axes.push_back(axis);
  }
  for (std::size_t place = 0; place < axes.size(); ++place) {
    const auto found = std::lower_bound(kept.begin(), kept.end(), axes[place]);
    transpose.axes.push_back(axes[place] == kNew
                                 ? static_cast<int64_t>(place)
                                 : places[static_cast<std::size_t>(found - kept.begin())]);
  }
  if (isSorted(transpose.axes)) transpose.axes.clear();
  std::vector<Link> links;
  for (Link* link : {&squeeze, &unsqueeze, &transpose}) {
    if (!link->axes.empty()) links.push_back(std::move(*link));
  }
  return links;
}

/// Replaces a chain by one operator of each kind at most, if it is longer. `node`: the last of it.
void exchange(Model* model, Node* node) {
  const std::vector<Node*> chain = chainOf(model, node);
  if (chain.empty()) return;
  const std::optional<Integers> stated = integersOf(*node, "perm");
  if (chain.size() == 1 && stated && !isSorted(*stated)) return;  // without a look at shapes
  const NodeEntry source = chain.back()->inputs[0];
  const std::optional<Shape> shape = model->shape(source);
  if (!shape) return;
  std::optional<Integers> axes(std::in_place);
  for (std::size_t axis = 0; axis < shape->size(); ++axis)
    axes->push_back(static_cast<int64_t>(axis));
  for (auto each = chain.rbegin(); axes && each != chain.rend(); ++each)
    axes = axesAfter(model, **each, *axes);
  if (!axes) return;
  const std::vector<Link> links = linksFor(shape->size(), *axes);
  if (links.size() >= chain.size()) return;
  const NodeEntry result(node, 0);
  if (links.empty() && model->needsIdentity(result, source)) return;
  NodeEntry value = source;
  for (const Link& link : links) {
    std::vector<NodeEntry> inputs{value};
    Model::Attributes attributes;
    if (link.op == std::string_view("Transpose")) {
      attributes.emplace_back("perm", textOf(link.axes));
    } else if (model->opset() >= 13) {
      inputs.push_back(model->addConstant(node->name + "_axes", link.axes));
    } else {
      attributes.emplace_back("axes", textOf(link.axes));
    }
    value = &link == &links.back() ? model->addLike(result, link.op, inputs, attributes)
                                   : model->addBefore(result, link.op, inputs, attributes);
  }
  model->replace(node, value);
}

}  // namespace

void cancelTransposes(Model* model, bool empty_errors, bool reorder_sums) {
  std::vector<Node*> pairs = model->sorted(kTurning);
  pairs.erase(
      std::remove_if(pairs.begin(), pairs.end(), [](const Node* node) { return !endsPair(*node); }),
      pairs.end());
  // The second would go on otherwise, and leave the first one between a layer and what ONNX Runtime
  // makes one with it.
  composeAll(model, pairs);
  sinkTransposes(model, reorder_sums);
  model->forgetFacts();
  for (Node* node : model->sorted({"Reshape"})) {
    if (!model->isGone(node) && isFree(*node)) splitAgain(model, node, empty_errors);
  }
  composeAll(model, model->sorted(kTurning));
  std::vector<Node*> ends = model->sorted(kTurningOrAxes);
  ends.erase(
      std::remove_if(ends.begin(), ends.end(), [&](Node* node) { return !endsChain(model, node); }),
      ends.end());
  for (Node* node : ends) {
    if (!model->isGone(node)) exchange(model, node);
  }
}

}  // namespace passlib::moves
