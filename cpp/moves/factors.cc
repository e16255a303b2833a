#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "moves/moves.h"
#include "rules/known.h"

namespace passlib::moves {
namespace {

/// The variable input of an operator, and its constant.
struct Factor {
  NodeEntry variable;
  const MXTensor* constant;
};

bool isPlainFactor(const Node& node) {
  return (isOperator(node, "Mul") || isOperator(node, "Add")) && node.control_deps.empty() &&
         node.inputs.size() == 2 && !isOldBroadcast(node);
}

std::optional<Factor> factorOf(const Model& model, const Node& node) {
  for (const std::size_t place : {std::size_t{1}, std::size_t{0}}) {
    const MXTensor* constant = model.array(node.inputs[place]);
    const NodeEntry& variable = node.inputs[1 - place];
    if (constant == nullptr || model.array(variable) != nullptr) continue;
    if (constant->dtype == mxnet::ext::kFloat32 || constant->dtype == mxnet::ext::kFloat64)
      return Factor{variable, constant};
  }
  return std::nullopt;
}

/// Whether `small` has the shape `large` once it is broadcast to it.
bool broadcastsTo(const std::vector<int64_t>& small, const std::vector<int64_t>& large) {
  if (small.size() > large.size()) return false;
  const std::size_t offset = large.size() - small.size();
  for (std::size_t axis = 0; axis < small.size(); ++axis) {
    if (small[axis] != 1 && small[axis] != large[offset + axis]) return false;
  }
  return true;
}

/// Whether numbers are far from overflow, and factors from underflow. The sum of very different
/// constants loses digits in another order.
bool isTame(const MXTensor& tensor, bool is_factor) {
  const auto size = static_cast<std::size_t>(tensor.size());
  for (std::size_t pos = 0; pos < size; ++pos) {
    const double number = std::fabs(rules::elementAt(tensor, pos));
    if (!(number < 1e4) || (is_factor && !(number > 1e-4))) return false;
  }
  return true;
}

/// Calls visit(pos, other) for the elements of a tensor and those of one that is broadcast to it.
template <typename Visit>
bool forEachPair(const std::vector<int64_t>& large, const std::vector<int64_t>& small,
                 Visit visit) {
  std::vector<std::size_t> steps(large.size());
  std::size_t step = 1;
  for (std::size_t axis = small.size(); axis-- > 0;) {
    if (small[axis] != 1) steps[large.size() - small.size() + axis] = step;
    step *= static_cast<std::size_t>(small[axis]);
  }
  std::size_t count = 1;
  for (const int64_t size : large) count *= static_cast<std::size_t>(size);
  std::vector<int64_t> place(large.size());
  std::size_t other = 0;
  for (std::size_t pos = 0; pos < count; ++pos) {
    if (!visit(pos, other)) return false;
    for (std::size_t axis = large.size(); axis-- > 0;) {
      other += steps[axis];
      if (++place[axis] < large[axis]) break;
      other -= steps[axis] * static_cast<std::size_t>(large[axis]);
      place[axis] = 0;
    }
  }
  return true;
}

/// Adds the combined constant; nothing if it would be larger or extreme.
std::optional<NodeEntry> merged(Model* model, const std::string& wish, bool is_factor,
                                const MXTensor& inner, const MXTensor& outer) {
  if (inner.dtype != outer.dtype) return std::nullopt;
  const bool by_inner = broadcastsTo(outer.shape, inner.shape);
  if (!by_inner && !broadcastsTo(inner.shape, outer.shape)) return std::nullopt;
  if (!isTame(inner, is_factor) || !isTame(outer, is_factor)) return std::nullopt;
  const MXTensor& large = by_inner ? inner : outer;
  const MXTensor& small = by_inner ? outer : inner;
  const auto combined = [&](std::size_t pos, std::size_t other) {
    const double left = rules::elementAt(large, pos);
    const double right = rules::elementAt(small, other);
    const double exact = is_factor ? left * right : left + right;
    return inner.dtype == mxnet::ext::kFloat32 ? static_cast<double>(static_cast<float>(exact))
                                               : exact;
  };
  const bool is_tame =
      forEachPair(large.shape, small.shape, [&](std::size_t pos, std::size_t other) {
        const double size = std::fabs(combined(pos, other));
        if (is_factor) return size < 1e4 && size > 1e-4;
        // The summands must not take digits from each other.
        const double most = std::max(std::fabs(rules::elementAt(large, pos)),
                                     std::fabs(rules::elementAt(small, other)));
        return size < 1e4 && size * 2 >= most;
      });
  if (!is_tame) return std::nullopt;
  const NodeEntry made = model->addConstant(wish, large.shape, inner.dtype);
  forEachPair(large.shape, small.shape, [&](std::size_t pos, std::size_t other) {
    rules::setElementAt(*made.node->tensor, pos, combined(pos, other));
    return true;
  });
  return made;
}

}  // namespace

void mergeFactors(Model* model) {
  for (Node* node : model->sorted({"Add", "Mul"})) {
    if (model->isGone(node) || !isPlainFactor(*node) || model->isKept(*node)) continue;
    const std::optional<Factor> outer = factorOf(*model, *node);
    if (!outer) continue;
    Node* before = outer->variable.node;
    if (before->op != node->op || !isPlainFactor(*before) || model->isKept(*before)) continue;
    if (model->isOutput(outer->variable) || !model->onlyUse(outer->variable)) continue;
    const std::optional<Factor> inner = factorOf(*model, *before);
    if (!inner) continue;
    const std::optional<NodeEntry> constant = merged(
        model, node->name + "_constant", node->op == "Mul", *inner->constant, *outer->constant);
    if (!constant) continue;
    model->replace(node,
                   model->addLike(NodeEntry(node, 0), node->op, {inner->variable, *constant}));
  }
}

}  // namespace passlib::moves
