#include <algorithm>
#include <optional>
#include <unordered_set>

#include "moves/moves.h"

namespace passlib::moves {
namespace {

using facts::Dim;
using facts::Shape;

const std::unordered_set<std::string_view> kReshaping{"Flatten", "Identity", "Reshape", "Squeeze",
                                                      "Unsqueeze"};
const std::unordered_set<std::string_view> kViews{"Flatten",   "Identity",  "Reshape",
                                                  "Squeeze",   "Unsqueeze", "ReduceMax",
                                                  "ReduceMin", "Transpose"};

Shape withoutOnes(Shape shape) {
  shape.erase(std::remove_if(shape.begin(), shape.end(), [](const Dim& dim) { return dim.is(1); }),
              shape.end());
  return shape;
}

/// Whether the result has the elements of the first input in the same order.
bool isView(Model* model, Node* node) {
  if (!isFree(*node)) return false;
  if (kReshaping.count(node->op) != 0) return true;
  const std::optional<Shape> shape = model->shape(node->inputs[0]);
  if (!shape) return false;
  if (node->op != "Transpose") {
    // Reductions return an only element as it is.
    const std::optional<Shape> sizes = model->shape(NodeEntry(node, 0));
    return sizes && withoutOnes(*shape) == withoutOnes(*sizes);
  }
  std::optional<Integers> order = permutationOf(*node, shape->size());
  if (!order) return false;
  order->erase(
      std::remove_if(order->begin(), order->end(),
                     [&](int64_t axis) { return (*shape)[static_cast<std::size_t>(axis)].is(1); }),
      order->end());
  return isSorted(*order);
}

/// Returns a constant shape for Reshape between two shapes, valid for all open dimensions; nothing
/// if more than one open dimension changes its position.
std::optional<Integers> reshapeTarget(const Shape& source, const Shape& wanted) {
  Integers found;
  const Dim* rest = nullptr;
  Dim others(1);
  for (std::size_t place = 0; place < wanted.size(); ++place) {
    const Dim& size = wanted[place];
    const bool same = place < source.size() && source[place] == size;
    if (size.isNumber() && (size.number() != 0 || same)) {
      found.push_back(size.number());
    } else if (same) {
      found.push_back(0);
    } else if (rest != nullptr) {
      return std::nullopt;
    } else {
      found.push_back(-1);
      rest = &size;
      continue;
    }
    others = others * Dim(found.back());
  }
  if (rest == nullptr) return found;
  // With another size of 0 there is no size that -1 could stand for.
  if (!std::all_of(found.begin(), found.end(), [](int64_t size) { return size == -1 || size > 0; }))
    return std::nullopt;
  const bool fits = facts::quotient(facts::product(source), others) == *rest;
  if (!fits || !facts::atLeast(*rest, 0)) return std::nullopt;
  return found;
}

/// Returns the axes of size 1 that the longer shape adds; none if that is not the difference.
Integers insertedAxes(const Shape& shorter, const Shape& longer) {
  Integers axes;
  std::size_t place = 0;
  for (std::size_t axis = 0; axis < longer.size(); ++axis) {
    if (place < shorter.size() && shorter[place] == longer[axis]) {
      ++place;
    } else if (longer[axis].is(1)) {
      axes.push_back(static_cast<int64_t>(axis));
    } else {
      return {};
    }
  }
  return place == shorter.size() ? axes : Integers();
}

/// Computes a value from another one with the same elements by at most one operator. Returns
/// `source` if the shapes are equal, nothing if one operator is not enough.
std::optional<NodeEntry> addView(Model* model, const NodeEntry& value, const Shape& want,
                                 const NodeEntry& source) {
  const std::optional<Shape> have = model->shape(source);
  if (!have) return std::nullopt;
  if (*have == want) return source;
  for (const char* op : {"Squeeze", "Unsqueeze"}) {
    const bool squeezes = op[0] == 'S';
    const Integers axes = squeezes ? insertedAxes(want, *have) : insertedAxes(*have, want);
    if (axes.empty() || !model->runs(op, value)) continue;
    if (model->opset() < 13) return model->addLike(value, op, {source}, {{"axes", textOf(axes)}});
    const NodeEntry listed = model->addConstant(value.node->name + "_axes", axes);
    return model->addLike(value, op, {source, listed});
  }
  const std::optional<Integers> target = reshapeTarget(*have, want);
  if (!target || model->opset() < 5 || !model->runs("Reshape", value)) return std::nullopt;
  const NodeEntry listed = model->addConstant(value.node->name + "_shape", *target);
  return model->addLike(value, "Reshape", {source, listed});
}

/// The most operators of a chain that are looked at from each, which would take quadratic time.
constexpr std::size_t kMostSources = 64;

/// Returns the inputs of chains of at least two operators, nearest first.
std::vector<NodeEntry> sourcesOf(const Node& node, const std::unordered_set<const Node*>& views) {
  std::vector<NodeEntry> found;
  NodeEntry value = node.inputs[0];
  while (views.count(value.node) != 0 && value.entry == 0 && found.size() < kMostSources) {
    value = value.node->inputs[0];
    found.push_back(value);
  }
  return found;
}

}  // namespace

void mergeReshapes(Model* model) {
  std::vector<Node*> nodes = model->sorted(kViews);
  nodes.erase(
      std::remove_if(nodes.begin(), nodes.end(),
                     [&](Node* node) { return model->isKept(*node) || !isView(model, node); }),
      nodes.end());
  std::unordered_set<const Node*> views(nodes.begin(), nodes.end());
  for (Node* node : nodes) {
    if (model->isGone(node)) continue;
    const NodeEntry result(node, 0);
    const std::vector<NodeEntry> sources = sourcesOf(*node, views);
    if (sources.empty()) continue;
    const std::optional<Shape> want = model->shape(result);
    if (!want) continue;
    for (auto source = sources.rbegin(); source != sources.rend(); ++source) {
      std::optional<NodeEntry> made = addView(model, result, *want, *source);
      if (!made) continue;
      if (*made == *source && model->needsIdentity(result, *source)) {
        if (!model->runs("Identity", result)) continue;
        made = model->addLike(result, "Identity", {*source});
      } else if (!(*made == *source)) {
        views.insert(made->node);
      }
      model->replace(node, *made);
      break;
    }
  }
}

}  // namespace passlib::moves
