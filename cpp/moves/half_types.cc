#include "moves/half_types.h"

#include <algorithm>
#include <string>
#include <vector>

#include "facts/fact.h"
#include "graph/text_table.h"
#include "onnx/types/operator_sets.h"

namespace passlib::moves {
namespace {

/// The letters of operators, and the operator sets from which on they hold for float16 and
/// bfloat16; 0 for none. Those of a later operator set replace earlier ones.
struct Row {
  std::string_view letters;
  int float16;
  int bfloat16;
  std::string_view ops;
};

/// A test compares them with the schemas of the package onnx.
// clang-format off
constexpr Row kRows[] = {
    {">a", 0, 15, "Bernoulli"},
    {">a", 1, 13, "Constant"},
    {">a", 1, 22, "RandomNormal RandomUniform"},
    {">a", 9, 20, "ConstantOfShape"},
    {">a", 11, 0, "ConcatFromSequence SequenceAt"},
    {">a", 15, 0, "OptionalGetElement"},
    {">a", 17, 17, "BlackmanWindow HammingWindow HannWindow"},
    {"a>", 1, 13, "ArgMax ArgMin Shape Size"},
    {"a>", 7, 22, "Multinomial"},
    {"a>", 9, 13, "IsNaN NonZero"},
    {"a>", 11, 24, "SplitToSequence"},
    {"a>", 15, 28, "Optional"},
    {"a>", 18, 28, "OptionalHasElement"},
    {"a>", 20, 20, "IsInf"},
    {".a>", 11, 0, "SequenceInsert"},
    {">a*", 1, 16, "If"},
    {"a*>", 11, 0, "SequenceConstruct"},
    {"a>a", 0, 13, "Pow"},
    {"a>a", 1, 0, "Clip Pad Upsample"},
    {"a>a", 1, 13,
     "Abs Ceil DepthToSpace Exp Flatten Floor Gather Hardmax Identity LRN Log LogSoftmax Neg "
     "Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean "
     "ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape Sigmoid Slice Softmax "
     "SpaceToDepth Sqrt Squeeze Tanh Transpose Unsqueeze"},
    {"a>a", 1, 16, "LeakyRelu"},
    {"a>a", 1, 22,
     "AveragePool Elu GlobalAveragePool GlobalLpPool GlobalMaxPool HardSigmoid "
     "LpNormalization LpPool MaxPool Selu Softplus Softsign"},
    {"a>a", 1, 24, "TopK"},
    {"a>a", 6, 13, "Tile"},
    {"a>a", 7, 22, "Acos Asin Atan Cos Sin Tan"},
    {"a>a", 8, 13, "Expand"},
    {"a>a", 9, 0, "Shrink"},
    {"a>a", 9, 13, "Erf MeanVarianceNormalization Sign"},
    {"a>a", 9, 22, "Acosh Asinh Atanh Cosh MaxUnpool Sinh"},
    {"a>a", 9, 28, "Compress"},
    {"a>a", 10, 13, "Dropout Resize"},
    {"a>a", 10, 22, "ThresholdedRelu"},
    {"a>a", 10, 28, "ReverseSequence"},
    {"a>a", 11, 13, "GatherElements GatherND"},
    {"a>a", 11, 22, "Det Round"},
    {"a>a", 11, 28, "Unique"},
    {"a>a", 14, 14, "CumSum Trilu"},
    {"a>a", 14, 22, "HardSwish"},
    {"a>a", 17, 17, "DFT"},
    {"a>a", 18, 18, "CenterCropPad Col2Im"},
    {"a>a", 18, 22, "Mish"},
    {"a>a", 20, 20, "AffineGrid Gelu"},
    {"a>a", 24, 24, "Swish"},
    {"a>a", 26, 26, "CumProd"},
    {"a>a", 28, 28, "Celu"},
    {"a>b", 1, 13, "Cast"},
    {"a>b", 1, 22, "RandomNormalLike RandomUniformLike"},
    {"a>b", 9, 22, "EyeLike"},
    {"a>b", 15, 22, "Bernoulli"},
    {"a>b", 18, 28, "OptionalGetElement"},
    {"a>b", 26, 26, "BitCast"},
    {"aa>", 1, 13, "Greater Less"},
    {"aa>", 11, 13, "Equal"},
    {"aa>", 12, 16, "GreaterOrEqual LessOrEqual"},
    {"aa>", 19, 19, "QuantizeLinear"},
    {"ab>", 23, 23, "QuantizeLinear"},
    {".a*>", 17, 0, "SequenceMap"},
    {".a>a", 19, 19, "DequantizeLinear"},
    {".a>b", 23, 23, "DequantizeLinear"},
    {"a*>a", 1, 13, "Concat Max Mean Min Sum"},
    {"a*>a", 12, 28, "Einsum"},
    {"a>a*", 2, 13, "Split"},
    {"a>aa", 1, 0, "Dropout"},
    {"aa>a", 1, 0, "Pow"},
    {"aa>a", 1, 13, "Add Div MatMul Mul Sub"},
    {"aa>a", 1, 16, "PRelu"},
    {"aa>a", 1, 22, "MaxRoiPool"},
    {"aa>a", 10, 13, "Mod"},
    {"aa>a", 10, 22, "RoiAlign"},
    {"aa>a", 24, 24, "TensorScatter"},
    {"aa>a", 28, 28, "SwiGLU"},
    {"ab>a", 11, 0, "Resize"},
    {"ab>a", 12, 15, "Pow"},
    {"ab>a", 12, 22, "Dropout"},
    {"ab>a", 16, 22, "GridSample"},
    {"ab>b", 15, 15, "CastLike"},
    {"ab>b", 23, 23, "RMSNormalization"},
    {"..a>a", 0, 28, "OneHot"},
    {".aa>a", 9, 16, "Where"},
    {"a*>a*", 9, 16, "Scan"},
    {"a.a>a", 9, 0, "Scatter"},
    {"a.a>a", 11, 13, "Pad ScatterElements ScatterND"},
    {"a.a>a", 12, 22, "NegativeLogLikelihoodLoss"},
    {"a.a>a", 17, 17, "STFT"},
    {"aa>a*", 1, 0, "Split"},
    {"aaa>a", 1, 0, "Tile"},
    {"aaa>a", 1, 13, "Gemm"},
    {"aaa>a", 1, 22, "Conv ConvTranspose InstanceNormalization"},
    {"aaa>a", 11, 13, "Clip"},
    {"aaa>a", 17, 0, "LayerNormalization"},
    {"aaa>a", 18, 18, "GroupNormalization"},
    {"aaa>a", 23, 23, "RotaryEmbedding"},
    {"aaa>a", 27, 27, "Range"},
    {"abc>c", 9, 0, "OneHot"},
    {".a*>a*", 8, 0, "Scan"},
    {"a.a>aa", 12, 13, "SoftmaxCrossEntropyLoss"},
    {"...aa>b", 17, 17, "MelWeightMatrix"},
    {"..a*>a*", 1, 16, "Loop"},
    {"aaa>abb", 0, 17, "LayerNormalization"},
    {"aaaa>aa", 27, 27, "CausalConvWithState"},
    {"aaaaa>a", 19, 22, "DeformConv"},
    {".a..a.a>", 21, 21, "QLinearMatMul"},
    {"aaaa.a>aa", 1, 22, "GRU RNN"},
    {"aaabaa>ab", 27, 27, "LinearAttention"},
    {"aaabb>abb", 14, 14, "BatchNormalization"},
    {"abbcc>acc", 15, 15, "BatchNormalization"},
    {"aaaaa>aaaaa", 1, 0, "BatchNormalization"},
    {"aabcab>aaba", 23, 23, "Attention"},
    {"aaaa.aaa>aaa", 1, 22, "LSTM"},
};
// clang-format on

using Table = TextViewMap<std::vector<const Row*>>;

Table readRows() {
  Table made;
  for (const Row& row : kRows) {
    std::string_view rest = row.ops;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      made[rest.substr(0, end)].push_back(&row);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return made;
}

}  // namespace

std::optional<std::string_view> halfTypes(std::string_view op, int64_t opset, int type) {
  static const Table table = readRows();
  const Row* found = nullptr;
  const auto first = [type](const Row& row) {
    return type == facts::kFloat16 ? row.float16 : row.bfloat16;
  };
  const auto rows = table.find(op);
  for (std::size_t i = 0; rows != table.end() && i < rows->second.size(); ++i) {
    const Row* const row = rows->second[i];
    if (first(*row) == 0 || first(*row) > opset) continue;
    if (found == nullptr || first(*row) > first(*found)) found = row;
  }
  if (found != nullptr) return found->letters;
  const int64_t known = std::min(opset, onnx::newestSet());
  if (onnx::sinceVersion(std::string(op), "", known) == 0) return std::nullopt;
  return "";
}

char letterAt(std::string_view side, std::size_t place) {
  if (side.empty()) return kNoLetter;
  const bool repeats = side.back() == '*';
  const std::size_t count = side.size() - (repeats ? 1 : 0);
  if (place < count) return side[place];
  return repeats ? side[count - 1] : kNoLetter;
}

}  // namespace passlib::moves
