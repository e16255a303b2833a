// Normalizations.
#include "facts/operators/common.h"

namespace passlib::facts {

void normalizeLayer(NodeView& node) {
  likeInput(node);
  const auto type = static_cast<Type>(node.integer("stash_type", 1));
  for (std::size_t i = 1; i < node.outputs(); ++i) node.set(i, type);
  Shape made = node.shape(0);
  const std::size_t axis = axisOf(node.integer("axis", -1), made.size());
  std::fill(made.begin() + static_cast<std::ptrdiff_t>(axis), made.end(), Dim(1));
  for (std::size_t i = 1; i < node.outputs(); ++i) node.setShape(i, made);
}

namespace {

void normalizeSame(NodeView& node) { likeInput(node); }

void normalizeRoot(NodeView& node) {
  likeInput(node);
  node.set(0, node.in(1).type);
}

void normalizeBatch(NodeView& node) {
  likeInput(node);
  Shape channels(1);
  if (node.in(0).shape && node.in(0).rank() > 1) channels[0] = (*node.in(0).shape)[1];
  for (std::size_t i = 1; i < node.outputs(); ++i) {
    // Running statistics have a type of their own from operator set 14 on.
    const bool own = node.opset() >= 14 && node.has(3);
    node.set(i, own ? node.in(i == 1 ? 3 : 4).type : node.in(0).type);
    Dim size = channels[0];
    for (std::size_t k = 1; k < 5; ++k) {
      if (node.rankOf(k) == 1) size = mergeDim(size, node.shape(k)[0]);
    }
    node.setShape(i, {size});
  }
}

}  // namespace

std::vector<Entry> families::normalization() {
  return {{"BatchNormalization", normalizeBatch}, {"InstanceNormalization", normalizeSame},
          {"GroupNormalization", normalizeSame},  {"LRN", normalizeSame},
          {"LpNormalization", normalizeSame},     {"MeanVarianceNormalization", normalizeSame},
          {"LayerNormalization", normalizeLayer}, {"SimplifiedLayerNormalization", normalizeLayer},
          {"RMSNormalization", normalizeRoot}};
}

}  // namespace passlib::facts
