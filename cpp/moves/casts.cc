#include <algorithm>
#include <optional>
#include <unordered_set>
#include <vector>

#include "moves/kernels.h"
#include "moves/moves.h"
#include "rules/terms.h"

namespace passlib::moves {
namespace {

/// Operators that move elements of any type, those of their first input.
const std::unordered_set<std::string_view> kMovers{
    "DepthToSpace", "Expand",       "Flatten", "Gather", "Identity",  "Reshape",
    "Slice",        "SpaceToDepth", "Squeeze", "Tile",   "Transpose", "Unsqueeze"};

/// A Cast that may go, and the operators between it and a later one, the last first.
struct Chain {
  Node* first;
  std::vector<Node*> between;
};

/// Returns the Cast before a Cast; nothing if something else uses what is between them.
std::optional<Chain> castBefore(Model* model, const Node& node) {
  Chain chain{};
  NodeEntry value = node.inputs[0];
  while (isOneOf(*value.node, kMovers) && isFree(*value.node)) {
    if (model->isOutput(value) || !model->onlyUse(value)) return std::nullopt;
    chain.between.push_back(value.node);
    value = value.node->inputs[0];
  }
  if (!isFreeOperator(*value.node, "Cast")) return std::nullopt;
  chain.first = value.node;
  return chain;
}

/// Whether one cast from the first to the last type has the same result as two casts.
bool areOne(int before, int middle, int after) {
  const auto is_number = [](int type) {
    return type != facts::kUnknownType && type != facts::kString && type != facts::kComplex64 &&
           type != facts::kComplex128;
  };
  if (!is_number(before) || !is_number(middle) || !is_number(after)) return false;
  if (!rules::isLossless(before, middle)) return false;
  // A number is rounded once: the first cast gives the same number.
  if (before == after || rules::isReal(after) || after == facts::kBool) return true;
  // Casts to a type of whole numbers keep the lowest bits of larger numbers.
  return rules::isWhole(middle) || rules::isLossless(before, after);
}

void mergeCasts(Model* model, Node* node, const Chain& chain) {
  const std::vector<Node*>& between = chain.between;
  const NodeEntry source = chain.first->inputs[0];
  const NodeEntry middle(chain.first, 0);
  const int before = model->type(source);
  const int after = model->type(NodeEntry(node, 0));
  if (!areOne(before, model->type(middle), after)) return;
  if (!std::all_of(between.begin(), between.end(), [&](const Node* mover) {
        return hasKernel(mover->op, before, model->opset());
      })) {
    return;
  }
  const bool undone = before == after;
  const bool shared = model->isOutput(middle) || !model->onlyUse(middle);
  const NodeEntry result = between.empty() ? source : NodeEntry(between.front(), 0);
  if (undone ? model->needsIdentity(NodeEntry(node, 0), result) : shared) return;
  model->connect(source, between.empty() ? node : between.back(), 0);
  for (Node* mover : between) model->retype(NodeEntry(mover, 0), before);
  if (undone) model->replace(node, result);
  model->removeUnused({chain.first});
}

}  // namespace

void propagateCasts(Model* model) {
  for (Node* node : model->sorted({"Cast"})) {
    if (model->isGone(node) || !isFreeOperator(*node, "Cast")) continue;
    if (const std::optional<Chain> chain = castBefore(model, *node))
      mergeCasts(model, node, *chain);
  }
}

}  // namespace passlib::moves
