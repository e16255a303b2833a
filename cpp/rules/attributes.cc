#include "rules/attributes.h"

#include <array>

namespace passlib::rules {
namespace {

// Source: the operator schemas of onnx 1.23.
constexpr std::array<Moved, 31> kMoved = {{
    {"Clip", "min", 1, 11, Moved::kScalar},
    {"Clip", "max", 2, 11, Moved::kScalar},
    {"DFT", "axis", 2, 20, Moved::kInteger},
    {"Dropout", "ratio", 1, 12, Moved::kFloat},
    {"Expand", "shape", 1, 1, Moved::kIntegers},
    {"Pad", "pads", 1, 11, Moved::kIntegers},
    {"Pad", "value", 2, 11, Moved::kScalar},
    {"ReduceL1", "axes", 1, 18, Moved::kIntegers},
    {"ReduceL2", "axes", 1, 18, Moved::kIntegers},
    {"ReduceLogSum", "axes", 1, 18, Moved::kIntegers},
    {"ReduceLogSumExp", "axes", 1, 18, Moved::kIntegers},
    {"ReduceMax", "axes", 1, 18, Moved::kIntegers},
    {"ReduceMean", "axes", 1, 18, Moved::kIntegers},
    {"ReduceMin", "axes", 1, 18, Moved::kIntegers},
    {"ReduceProd", "axes", 1, 18, Moved::kIntegers},
    {"ReduceSum", "axes", 1, 13, Moved::kIntegers},
    {"ReduceSumSquare", "axes", 1, 18, Moved::kIntegers},
    {"Reshape", "shape", 1, 5, Moved::kIntegers},
    {"Slice", "starts", 1, 10, Moved::kIntegers},
    {"Slice", "ends", 2, 10, Moved::kIntegers},
    {"Slice", "axes", 3, 10, Moved::kIntegers},
    {"Slice", "steps", 4, 10, Moved::kIntegers},
    {"Split", "split", 1, 13, Moved::kIntegers},
    {"Squeeze", "axes", 1, 13, Moved::kIntegers},
    {"Tile", "repeats", 1, 6, Moved::kIntegers},
    {"TopK", "k", 1, 10, Moved::kIntegers},
    {"Unsqueeze", "axes", 1, 13, Moved::kIntegers},
    {"Upsample", "scales", 1, 9, Moved::kFloats},
    {"Trilu", "k", 1, 14, Moved::kInteger},
    {"CumSum", "axis", 1, 11, Moved::kInteger},
    {"OneHot", "depth", 1, 9, Moved::kInteger},
}};

struct Default {
  std::string_view op;  ///< ends in *: all operators that begin so
  std::string_view attribute;
  const char* text;
  int64_t since;
};

// The last line of an attribute whose set is not newer than the model's applies.
constexpr std::array<Default, 98> kDefaults = {{
    {"ArgMax", "keepdims", "1", 1},
    {"ArgMax", "axis", "0", 1},
    {"ArgMax", "select_last_index", "0", 1},
    {"ArgMin", "keepdims", "1", 1},
    {"ArgMin", "axis", "0", 1},
    {"ArgMin", "select_last_index", "0", 1},
    {"AveragePool", "auto_pad", "NOTSET", 1},
    {"AveragePool", "count_include_pad", "0", 1},
    {"AveragePool", "ceil_mode", "0", 1},
    {"BatchNormalization", "epsilon", "1e-05", 1},
    {"BatchNormalization", "momentum", "0.9", 1},
    {"BatchNormalization", "training_mode", "0", 1},
    {"Cast", "saturate", "1", 1},
    {"Celu", "alpha", "1.0", 1},
    {"ConcatFromSequence", "new_axis", "0", 1},
    {"Conv", "group", "1", 1},
    {"Conv", "auto_pad", "NOTSET", 1},
    {"ConvInteger", "group", "1", 1},
    {"ConvInteger", "auto_pad", "NOTSET", 1},
    {"ConvTranspose", "group", "1", 1},
    {"ConvTranspose", "auto_pad", "NOTSET", 1},
    {"CumSum", "reverse", "0", 1},
    {"CumSum", "exclusive", "0", 1},
    {"DepthToSpace", "mode", "DCR", 1},
    {"DequantizeLinear", "axis", "1", 1},
    {"DequantizeLinear", "block_size", "0", 1},
    {"DequantizeLinear", "output_dtype", "0", 1},
    {"Dropout", "ratio", "0.5", 1},
    {"Elu", "alpha", "1.0", 1},
    {"Flatten", "axis", "1", 1},
    {"GRU", "direction", "forward", 3},
    {"GRU", "layout", "0", 1},
    {"GRU", "linear_before_reset", "0", 1},
    {"Gather", "axis", "0", 1},
    {"GatherElements", "axis", "0", 1},
    {"GatherND", "batch_dims", "0", 1},
    {"Gelu", "approximate", "none", 1},
    {"Gemm", "alpha", "1.0", 1},
    {"Gemm", "beta", "1.0", 1},
    {"Gemm", "transA", "0", 1},
    {"Gemm", "transB", "0", 1},
    {"GroupNormalization", "epsilon", "1e-05", 1},
    {"GroupNormalization", "stash_type", "1", 21},
    {"HardSigmoid", "alpha", "0.2", 1},
    {"HardSigmoid", "beta", "0.5", 1},
    {"Hardmax", "axis", "1", 1},
    {"Hardmax", "axis", "-1", 13},
    {"InstanceNormalization", "epsilon", "1e-05", 1},
    {"LSTM", "direction", "forward", 1},
    {"LSTM", "input_forget", "0", 1},
    {"LSTM", "layout", "0", 1},
    {"LayerNormalization", "axis", "-1", 1},
    {"LayerNormalization", "epsilon", "1e-05", 1},
    {"LayerNormalization", "stash_type", "1", 1},
    {"LeakyRelu", "alpha", "0.01", 1},
    {"LogSoftmax", "axis", "1", 1},
    {"LogSoftmax", "axis", "-1", 13},
    {"LpNormalization", "axis", "-1", 1},
    {"LpNormalization", "p", "2", 1},
    {"MaxPool", "auto_pad", "NOTSET", 1},
    {"MaxPool", "ceil_mode", "0", 1},
    {"MaxPool", "storage_order", "0", 1},
    {"Mod", "fmod", "0", 1},
    {"OneHot", "axis", "-1", 1},
    {"Pad", "mode", "constant", 1},
    {"Pad", "value", "0.0", 1},
    {"QuantizeLinear", "axis", "1", 1},
    {"QuantizeLinear", "block_size", "0", 1},
    {"QuantizeLinear", "output_dtype", "0", 1},
    {"QuantizeLinear", "saturate", "1", 1},
    {"RMSNormalization", "axis", "-1", 1},
    {"RMSNormalization", "epsilon", "1e-05", 1},
    {"RMSNormalization", "stash_type", "1", 1},
    {"RNN", "direction", "forward", 1},
    {"RNN", "layout", "0", 1},
    {"Reduce*", "keepdims", "1", 1},
    {"Reduce*", "noop_with_empty_axes", "0", 1},
    {"Reduce*", "axes", "axes", 1},
    {"Reshape", "allowzero", "0", 1},
    {"Resize", "mode", "nearest", 1},
    {"Resize", "coordinate_transformation_mode", "half_pixel", 11},
    {"Resize", "nearest_mode", "round_prefer_floor", 11},
    {"Resize", "antialias", "0", 1},
    {"ScatterElements", "axis", "0", 1},
    {"ScatterElements", "reduction", "none", 1},
    {"ScatterND", "reduction", "none", 1},
    {"Softmax", "axis", "1", 1},
    {"Softmax", "axis", "-1", 13},
    {"SpaceToDepth", "mode", "DCR", 1},
    {"Split", "axis", "0", 2},
    {"SplitToSequence", "axis", "0", 1},
    {"SplitToSequence", "keepdims", "1", 1},
    {"ThresholdedRelu", "alpha", "1.0", 1},
    {"TopK", "axis", "-1", 1},
    {"TopK", "largest", "1", 1},
    {"TopK", "sorted", "1", 1},
    {"Transpose", "perm", "reversed", 1},
    {"Trilu", "upper", "1", 1},
}};

bool isNamed(std::string_view wanted, const std::string& op) {
  if (wanted.back() != '*') return op == wanted;
  wanted.remove_suffix(1);
  return op.compare(0, wanted.size(), wanted) == 0;
}

}  // namespace

const char* defaultOf(const std::string& op, const std::string& attribute, int64_t opset) {
  const char* found = nullptr;
  for (const Default& each : kDefaults) {
    if (attribute == each.attribute && isNamed(each.op, op) && each.since <= opset)
      found = each.text;
  }
  return found;
}

const Moved* movedInput(const std::string& op, const std::string& attribute, int64_t opset) {
  for (const Moved& each : kMoved) {
    if (op == each.op && attribute == each.attribute && each.since <= opset) return &each;
  }
  return nullptr;
}

const Moved* nextMoved(const std::string& op, const Moved* next) {
  next = next == nullptr ? kMoved.data() : next + 1;
  for (; next != kMoved.data() + kMoved.size(); ++next) {
    if (op == next->op) return next;
  }
  return nullptr;
}

}  // namespace passlib::rules
