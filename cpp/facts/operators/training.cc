// ai.onnx.preview.training: optimizers return each tensor that they update.
#include "facts/operators/common.h"

namespace passlib::facts {
namespace {

/// After the learning rate and the step, inputs come in groups: tensors, gradients, states.
void optimize(NodeView& node, std::size_t groups, const std::vector<std::size_t>& returned) {
  require(node.count() >= 2 && (node.count() - 2) % groups == 0);
  const std::size_t each = (node.count() - 2) / groups;
  for (std::size_t i = 0; i < returned.size(); ++i) {
    for (std::size_t k = 0; k < each; ++k)
      likeInput(node, 2 + returned[i] * each + k, i * each + k);
  }
}

void adagrad(NodeView& node) { optimize(node, 3, {0, 2}); }
void momentum(NodeView& node) { optimize(node, 3, {0, 2}); }
void adam(NodeView& node) { optimize(node, 4, {0, 2, 3}); }

void gradient(NodeView& node) {
  const auto count = node.countStrings("xs");
  require(count.has_value());
  for (std::size_t i = 0; i < node.outputs() && i < *count; ++i) likeInput(node, i, i);
}

void flexible(NodeView& node) {
  node.set(0, node.in(0).type);
  const Shape& query = node.shape(0, 4);
  node.setShape(0, {query[0], query[1], query[2], node.shape(2, 4)[3]});
}

}  // namespace

std::vector<Entry> families::training() {
  return {{"Adagrad", adagrad},
          {"Momentum", momentum},
          {"Adam", adam},
          {"Gradient", gradient},
          {"FlexAttention", flexible}};
}

}  // namespace passlib::facts
