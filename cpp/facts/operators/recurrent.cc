// Recurrent layers.
#include "facts/operators/common.h"

namespace passlib::facts {

void recurrentLayer(NodeView& node, std::size_t states) {
  for (std::size_t i = 0; i < node.outputs(); ++i) node.set(i, node.in(0).type);
  Dim directions = node.text("direction", "forward") == "bidirectional" ? 2 : 1;
  Dim hidden;
  if (const auto stated = node.integer("hidden_size")) hidden = *stated;
  Dim steps;
  Dim batch;
  const bool batch_first = node.integer("layout", 0) != 0;
  if (node.in(0).shape) {
    const Shape& shape = node.shape(0, 3);
    steps = shape[batch_first ? 1 : 0];
    batch = shape[batch_first ? 0 : 1];
  }
  const Shape last =
      batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
  node.setShape(0, batch_first ? Shape{batch, steps, directions, hidden}
                               : Shape{steps, directions, batch, hidden});
  for (std::size_t i = 1; i <= states; ++i) node.setShape(i, last);
}

namespace {

void recur(NodeView& node) { recurrentLayer(node, node.op() == "LSTM" ? 2 : 1); }

}  // namespace

std::vector<Entry> families::recurrent() {
  return {{"LSTM", recur}, {"GRU", recur}, {"RNN", recur}};
}

}  // namespace passlib::facts
