#include <optional>
#include <vector>

#include "moves/moves.h"

namespace passlib::moves {
namespace {

/// Whether a value is the result of a Concat that has no other user.
bool isInnerConcat(Model* model, const NodeEntry& value) {
  return isOperator(*value.node, "Concat") && value.node->control_deps.empty() &&
         !model->isOutput(value) && model->onlyUse(value);
}

/// The axis of a Concat, counted from the first one; nothing if that is unknown.
std::optional<int64_t> axisOfConcat(Model* model, Node* node) {
  const std::optional<facts::Shape> shape = model->shape(NodeEntry(node, 0));
  const std::optional<int64_t> axis = integerOf(*node, "axis", 1);
  const auto rank = static_cast<int64_t>(shape ? shape->size() : 0);
  if (!axis || *axis < -rank || *axis >= rank) return std::nullopt;
  return *axis < 0 ? *axis + rank : *axis;
}

}  // namespace

void mergeConcats(Model* model) {
  for (Node* node : model->sorted({"Concat"})) {
    if (!node->control_deps.empty()) continue;
    std::vector<NodeEntry> values;
    std::vector<Node*> inside;
    for (const NodeEntry& value : node->inputs) {
      const std::optional<int64_t> axis =
          isInnerConcat(model, value) ? axisOfConcat(model, value.node) : std::nullopt;
      if (axis && axis == axisOfConcat(model, node)) {
        inside.push_back(value.node);
        values.insert(values.end(), value.node->inputs.begin(), value.node->inputs.end());
      } else {
        values.push_back(value);
      }
    }
    if (inside.empty()) continue;
    model->owner().setInputs(model->graph(), node, values);
    model->removeUnused(std::move(inside));
  }
}

}  // namespace passlib::moves
