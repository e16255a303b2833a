// Linear layers and their parameters, for folding.
#ifndef FOLD_LAYER_H_
#define FOLD_LAYER_H_

#include "attributes.h"
#include "lib_api.h"
#include "numbers.h"

namespace fold {

/// Returns the data of a parameter: dense numbers in CPU memory. Throws LeftAlone for other inputs.
inline const MXTensor& parameterOf(const Node& node, std::size_t input) {
  const Node& parameter = *node.inputs[input].node;
  if (parameter.op != "null") {
    throw LeftAlone("'" + parameter.name + "' is computed, not a parameter");
  }
  const MXTensor* tensor = parameter.tensor;
  if (tensor == nullptr) throw LeftAlone("no data were given for '" + parameter.name + "'");
  if (tensor->ctx.dev_type.compare(0, 3, "cpu") != 0 || tensor->stype != kDefaultStorage ||
      !isReal(tensor->dtype)) {
    throw LeftAlone("'" + parameter.name + "' is no dense array of real numbers on the CPU");
  }
  return *tensor;
}

/// The values of a parameter with one number per channel.
inline std::vector<double> channelParameter(const Node& node, std::size_t input,
                                            std::size_t channels) {
  const MXTensor& tensor = parameterOf(node, input);
  if (tensor.shape != std::vector<int64_t>(1, static_cast<int64_t>(channels))) {
    throw Inconsistent(node, "has " + std::to_string(channels) + " channels, but its parameter '" +
                                 node.inputs[input].node->name + "' has another shape");
  }
  return readAll(tensor);
}

/// Number of axes in an entry of __ext_shape__: 3 for "[8,16,4]", -1 if unknown.
inline int rankOf(const std::string& shape) {
  if (shape.empty() || shape[0] != '[') return -1;  // "None"
  if (shape == "[]") return 0;
  return 1 + static_cast<int>(std::count(shape.begin(), shape.end(), ','));
}

/// Convolution, its transpose, or FullyConnected.
class Layer {
 public:
  static bool is(const Node& node) {
    return isConvolution(node) || isTransposed(node) || isDense(node);
  }

  /// Throws LeftAlone if the weight is unknown.
  explicit Layer(Node* layer) : node(layer) {
    // The default of no_bias differs for the transposed convolution.
    has_bias = !boolAttribute(*node, "no_bias", isTransposed(*node));
    if (node->inputs.size() != (has_bias ? 3u : 2u)) {
      throw Inconsistent(*node, "has " + std::to_string(node->inputs.size()) + " inputs");
    }
    const MXTensor& weight = parameterOf(*node, 1);
    shape_ = weight.shape;
    groups_ = isTransposed(*node) ? numberAttribute<int64_t>(*node, "num_group", 1) : 1;
    if (shape_.size() < 2 || weight.size() == 0 || groups_ < 1 || shape_[0] % groups_ != 0) {
      throw Inconsistent(*node, "has a weight of the wrong shape");
    }
    channels = static_cast<std::size_t>(isTransposed(*node) ? shape_[1] * groups_ : shape_[0]);
  }

  /// The axis of the channels in the result, and its rank. If that is unknown, rank is -1 and the
  /// axis is counted from the end.
  void findChannels(int* axis, int* rank) const {
    if (isDense(*node)) {
      *rank = boolAttribute(*node, "flatten", true) ? 2 : inferredRank();
      *axis = *rank < 0 ? -1 : *rank - 1;
      return;
    }
    *rank = static_cast<int>(shape_.size());
    const std::string* layout = findAttribute(*node, "layout");
    *axis = layout == nullptr || *layout == "None" ? 1 : static_cast<int>(layout->find('C'));
  }

  /// The weights, with those of each channel multiplied by its factor.
  std::vector<double> scaledWeight(const std::vector<double>& scale) const {
    std::vector<double> values = readAll(parameterOf(*node, 1));
    // Usually (channels, inputs, kernel...). The transposed convolution has the inputs first, in
    // groups: (groups * inputs, channels of a group, kernel...).
    const std::size_t rows = static_cast<std::size_t>(shape_[0]);
    const std::size_t columns = isTransposed(*node) ? static_cast<std::size_t>(shape_[1]) : 1;
    const std::size_t rows_a_group = rows / static_cast<std::size_t>(groups_);
    const std::size_t block = values.size() / (rows * columns);  // adjacent weights with one scale
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t row = i / (block * columns);
      const std::size_t column = i / block % columns;
      values[i] *= scale[isTransposed(*node) ? row / rows_a_group * columns + column : row];
    }
    return values;
  }

  Node* node;
  bool has_bias;
  std::size_t channels;

 private:
  static bool isConvolution(const Node& node) {
    return node.op == "Convolution" || node.op == "Convolution_v1";
  }
  static bool isTransposed(const Node& node) { return node.op == "Deconvolution"; }
  static bool isDense(const Node& node) { return node.op == "FullyConnected"; }

  /// The rank of the result as inferred by the host; -1 if unknown.
  int inferredRank() const {
    const std::string* shapes = findAttribute(*node, MX_STR_SHAPE);
    return shapes == nullptr ? -1 : rankOf(getShapeAt(*shapes, 0));
  }

  std::vector<int64_t> shape_;  // of the weight
  int64_t groups_;
};

}  // namespace fold

#endif  // FOLD_LAYER_H_
