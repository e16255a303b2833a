#include "layer.h"

#include <algorithm>
#include <sstream>

#include "node_text.h"
#include "tensor_values.h"

namespace passes {

double numberAttribute(const Node& node, const char* key, double preset) {
  const std::string* text = findAttribute(node, key);
  if (text == nullptr) return preset;
  std::istringstream stream(*text);
  stream.imbue(std::locale::classic());
  double value;
  if (!(stream >> value) || stream.peek() != std::istringstream::traits_type::eof()) {
    throw LeftAlone("'" + node.name + "' has " + key + "=" + *text + ", which is no number");
  }
  return value;
}

int integerAttribute(const Node& node, const char* key, int preset) {
  const double value = numberAttribute(node, key, preset);
  const bool fits = value >= (std::numeric_limits<int>::min)() &&
                    value <= (std::numeric_limits<int>::max)() && value == std::trunc(value);
  if (!fits) {
    throw LeftAlone("'" + node.name + "' has " + key + "=" + *findAttribute(node, key) +
                    ", which is no whole number of 32 bits");
  }
  return static_cast<int>(value);
}

const MXTensor& parameterOf(const Family& family, const Node& node, std::size_t input) {
  const Node& parameter = *node.inputs.at(input).node;
  if (parameter.op != "null") {
    throw LeftAlone("'" + parameter.name + "' is computed, not a parameter");
  }
  if (parameter.tensor == nullptr)
    throw LeftAlone("no data were given for '" + parameter.name + "'");
  if (!family.isParameter(parameter)) {
    throw LeftAlone("'" + parameter.name + "' is an input, which may have other values");
  }
  if (!isDense(parameter.tensor) || !isReal(parameter.tensor->dtype)) {
    throw LeftAlone("'" + parameter.name + "' is no dense array of real numbers on the CPU");
  }
  return *parameter.tensor;
}

bool hasInput(const Node& node, std::size_t input) {
  return input < node.inputs.size() && !isAbsent(*node.inputs[input].node);
}

Layer::Layer(const Family& family, Node* layer, const LayerFacts& facts)
    : family_(family), node_(layer), facts_(facts) {
  const std::string* function =
      facts.activation == nullptr ? nullptr : findAttribute(*layer, facts.activation);
  if (function != nullptr && *function != "identity") {
    throw LeftAlone("'" + layer->name + "' applies " + *function + " to its result");
  }
  const std::string* kernel =
      facts.kernel == nullptr ? nullptr : findAttribute(*layer, facts.kernel);
  if (kernel != nullptr && *kernel != facts.usual) {
    throw LeftAlone("'" + layer->name + "' has weights in the order " + *kernel);
  }
  const bool matrix = facts.weight == WeightOrder::kMatrixByFlag;
  if (matrix && family.operatorSet() < 7) {
    throw LeftAlone("'" + layer->name + "' is of an operator set whose bias is not broadcast");
  }
  if (layer->inputs.size() < 2 || layer->inputs.size() > 3) {
    throw LeftAlone("'" + layer->name + "' has " + std::to_string(layer->inputs.size()) +
                    " inputs");
  }
  shape_ = parameterOf(family, *layer, 1).shape;
  const bool inputs_first = facts.weight == WeightOrder::kInputsFirst;
  const double groups = inputs_first ? numberAttribute(*layer, facts.groups, 1) : 1;
  const bool fits = shape_.size() >= 2 && (!matrix || shape_.size() == 2) &&
                    std::all_of(shape_.begin(), shape_.end(), [](int64_t n) { return n > 0; });
  if (!fits || !(groups >= 1 && groups <= static_cast<double>(shape_[0])) ||
      shape_[0] % static_cast<int64_t>(groups) != 0) {
    throw LeftAlone("the weight of '" + layer->name + "' has an unexpected shape");
  }
  groups_ = static_cast<std::size_t>(groups);
  const std::size_t axis = inputs_first || (matrix && !isTransposedMatrix()) ? 1 : 0;
  channels_ = static_cast<std::size_t>(shape_[axis]) * groups_;
  bias();  // throws if it is not known
}

void Layer::requireChannels(int axis) const {
  int rank = 2;
  int channels = 1;
  switch (facts_.channels) {
    case ChannelAxis::kSecond:
      break;
    case ChannelAxis::kLayout: {
      rank = static_cast<int>(shape_.size());
      const std::string* layout = findAttribute(*node_, "layout");
      if (layout == nullptr || *layout == "None" || family_.name() == "onnx") break;
      const std::size_t found = layout->find('C');
      const std::string* result = findAttribute(*node_, "out_layout");
      const bool other = result != nullptr && *result != *layout && *result != "__undef__";
      if (found == std::string::npos || layout->size() != shape_.size() || other) {
        throw LeftAlone("'" + node_->name + "' has layout " + (other ? *result : *layout));
      }
      channels = static_cast<int>(found);
      break;
    }
    case ChannelAxis::kFlatten:
      if (boolAttribute(*node_, "flatten", true)) break;
      [[fallthrough]];
    case ChannelAxis::kLast:
      rank = inferredRank();
      channels = rank < 0 ? -1 : rank - 1;
      break;
  }
  const int wanted = axis < 0 && rank >= 0 ? axis + rank : axis;
  const bool transposed = facts_.weight == WeightOrder::kInputsFirst;
  if (wanted != channels || (transposed && channels != 1)) {
    throw LeftAlone("axis " + std::to_string(axis) + " is not known to be that of the channels");
  }
}

/// The rank of the result as inferred by the host; -1 if unknown.
int Layer::inferredRank() const {
  const std::string* shapes = findAttribute(*node_, MX_STR_SHAPE);
  if (shapes == nullptr) return -1;
  const std::string shape = getShapeAt(*shapes, 0);
  if (shape.empty() || shape[0] != '[') return -1;
  if (shape == "[]") return 0;
  return 1 + static_cast<int>(std::count(shape.begin(), shape.end(), ','));
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
  const MXTensor& tensor = parameterOf(family_, *node_, 2);
  const bool matrix = facts_.weight == WeightOrder::kMatrixByFlag;
  const int64_t last = tensor.shape.empty() ? 1 : tensor.shape.back();
  const bool row = tensor.size() == last && tensor.shape.size() <= (matrix ? 2U : 1U);
  const bool whole = static_cast<std::size_t>(last) == channels_ && !tensor.shape.empty();
  if (!row || !(whole || (matrix && last == 1))) {
    throw LeftAlone("'" + node_->inputs[2].node->name + "' is not one number a channel");
  }
  const std::vector<double> given = valuesOf(tensor);
  const double factor = matrix ? numberAttribute(*node_, "beta", 1) : 1;
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
