#include "layer.h"

#include <algorithm>

#include "node_text.h"
#include "weights/tensor_values.h"

namespace passes {

const MXTensor& parameterOf(const Node& node, std::size_t input) {
  const Node& parameter = *node.inputs.at(input).node;
  if (parameter.op != "null") {
    throw LeftAlone("'" + parameter.name + "' is computed, not a parameter");
  }
  if (parameter.tensor == nullptr)
    throw LeftAlone("no data were given for '" + parameter.name + "'");
  if (!isParameter(&parameter)) {
    throw LeftAlone("'" + parameter.name + "' is an input, which may have other values");
  }
  if (!isDense(parameter.tensor) || !isReal(parameter.tensor->dtype)) {
    throw LeftAlone("'" + parameter.name + "' is no dense array of real numbers on the CPU");
  }
  return *parameter.tensor;
}

std::vector<double> elementsOf(const Node& node, std::size_t input) {
  parameterOf(node, input);  // throws if it is none
  const MXTensor& tensor = *node.inputs[input].node->readTensor();
  if (tensor.data_ptr == nullptr && tensor.size() != 0) {
    throw LeftAlone("no data were given for '" + node.inputs[input].node->name + "'");
  }
  return valuesOf(tensor);
}

bool hasInput(const Node& node, std::size_t input) {
  return input < node.inputs.size() && !isAbsent(*node.inputs[input].node);
}

Layer::Layer(const Family& family, Node* layer, const LayerFacts& facts)
    : family_(family), node_(layer), facts_(facts) {
  const std::string function =
      facts.activation == nullptr ? "identity" : textAttr(layer, facts.activation, "identity");
  if (function != "identity") {
    throw LeftAlone("'" + layer->name + "' applies " + function + " to its result");
  }
  if (facts.kernel != nullptr && textAttr(layer, facts.kernel, facts.usual) != facts.usual) {
    throw LeftAlone("'" + layer->name + "' has weights in the order " +
                    textAttr(layer, facts.kernel));
  }
  const bool matrix = facts.weight == WeightOrder::kMatrixByFlag;
  if (matrix && family.operatorSet() < 7) {
    throw LeftAlone("'" + layer->name + "' is of an operator set whose bias is not broadcast");
  }
  if (layer->inputs.size() < 2 || layer->inputs.size() > 3) {
    throw LeftAlone("'" + layer->name + "' has " + std::to_string(layer->inputs.size()) +
                    " inputs");
  }
  shape_ = parameterOf(*layer, 1).shape;
  const bool inputs_first = facts.weight == WeightOrder::kInputsFirst;
  const int64_t groups = inputs_first ? intAttr(layer, facts.groups, 1) : 1;
  const bool fits = shape_.size() >= 2 && (!matrix || shape_.size() == 2) &&
                    std::all_of(shape_.begin(), shape_.end(), [](int64_t n) { return n > 0; });
  if (!fits || groups < 1 || shape_[0] % groups != 0) {
    throw LeftAlone("the weight of '" + layer->name + "' has an unexpected shape");
  }
  groups_ = static_cast<std::size_t>(groups);
  const std::size_t axis = inputs_first || (matrix && !isTransposedMatrix()) ? 1 : 0;
  channels_ = static_cast<std::size_t>(shape_[axis]) * groups_;
  bias();  // throws if it is not known
}

void Layer::requireChannels(int64_t axis) const {
  int rank = 2;
  int channels = 1;
  switch (facts_.channels) {
    case ChannelAxis::kSecond:
      break;
    case ChannelAxis::kLayout: {
      rank = static_cast<int>(shape_.size());
      const std::string layout = textAttr(node_, "layout", "None");
      if (layout == "None" || family_.name() == "onnx") break;
      const std::size_t found = layout.find('C');
      const std::string result = textAttr(node_, "out_layout", layout);
      const bool other = result != layout && result != "__undef__";
      if (found == std::string::npos || layout.size() != shape_.size() || other) {
        throw LeftAlone("'" + node_->name + "' has layout " + (other ? result : layout));
      }
      channels = static_cast<int>(found);
      break;
    }
    case ChannelAxis::kFlatten:
      if (boolAttr(node_, "flatten", true)) break;
      [[fallthrough]];
    case ChannelAxis::kLast:
      rank = inferredRank();
      channels = rank < 0 ? -1 : rank - 1;
      break;
  }
  const int64_t wanted = axis < 0 && rank >= 0 ? axis + rank : axis;
  const bool transposed = facts_.weight == WeightOrder::kInputsFirst;
  if (wanted != channels || (transposed && channels != 1)) {
    throw LeftAlone("axis " + std::to_string(axis) + " is not known to be that of the channels");
  }
}

/// The rank of the result as inferred by the host; -1 if unknown.
int Layer::inferredRank() const {
  const ValueShape shape = shapeOf(NodeEntry(node_, 0));
  return shape.known ? static_cast<int>(shape.extents.size()) : -1;
}

std::vector<double> Layer::weightFactors(const Affine& affine) const {
  const bool by_row = facts_.weight == WeightOrder::kOutputsFirst ||
                      (facts_.weight == WeightOrder::kMatrixByFlag && isTransposedMatrix());
  if (by_row) return affine.scale;
  const std::size_t rows = static_cast<std::size_t>(shape_[0]);
  const std::size_t columns = static_cast<std::size_t>(shape_[1]);
  std::vector<double> factors;
  factors.reserve(rows * columns);
  for (std::size_t row = 0; row < rows; ++row) {
    const double* first = affine.scale.data() + row / (rows / groups_) * columns;
    factors.insert(factors.end(), first, first + columns);
  }
  return factors;
}

std::vector<double> Layer::biasFor(const Affine& affine) const {
  std::vector<double> values = bias();
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = values[i] * affine.scale[i] + affine.shift[i];
  }
  return values;
}

/// The values added to each channel.
std::vector<double> Layer::bias() const {
  std::vector<double> values(channels_, 0.0);
  const bool flagged =
      (facts_.has_bias.key == nullptr || facts_.has_bias.of(*node_)) && !facts_.no_bias.of(*node_);
  const bool optional = facts_.has_bias.key == nullptr && facts_.no_bias.key == nullptr;
  if (!optional && flagged != hasBias()) {
    throw LeftAlone("'" + node_->name + "' has " + std::to_string(node_->inputs.size()) +
                    " inputs");
  }
  if (!hasBias()) return values;
  const MXTensor& tensor = parameterOf(*node_, 2);
  const bool matrix = facts_.weight == WeightOrder::kMatrixByFlag;
  const int64_t last = tensor.shape.empty() ? 1 : tensor.shape.back();
  const bool row = tensor.size() == last && tensor.shape.size() <= (matrix ? 2U : 1U);
  const bool whole = static_cast<std::size_t>(last) == channels_ && !tensor.shape.empty();
  if (!row || !(whole || (matrix && last == 1))) {
    throw LeftAlone("'" + node_->inputs[2].node->name + "' is not one number a channel");
  }
  const std::vector<double> given = elementsOf(*node_, 2);
  const double factor = matrix ? realAttr(node_, "beta", 1) : 1;
  for (std::size_t i = 0; i < channels_; ++i) values[i] = factor * given[whole ? i : 0];
  return values;
}

void Layer::declareBias() const {
  if (facts_.has_bias.key != nullptr) {
    node_->attrs[facts_.has_bias.key] = family_.name() == "dlprim" ? "true" : "True";
  }
  if (facts_.no_bias.key != nullptr) node_->attrs[facts_.no_bias.key] = "False";
  if (facts_.weight == WeightOrder::kMatrixByFlag) node_->attrs.erase("beta");
}

}  // namespace passes
