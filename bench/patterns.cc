// Ten patterns in one pass, which prints the number of its replacements and its processor time in
// seconds.
#include <ctime>

#include "lib_patterns.h"

using namespace mxnet::ext;

namespace {

void declarePatterns() {
  Pattern("y = Add(MatMul(x, w:param[rank=2]), b:param[rank=1])").replace("y = Gemm(x, w, b)");
  Pattern("y = Mul(Mul(x, Add(Erf(Div(x, 1.4142135)), 1)), 0.5)").replace("y = Gelu(x)");
  Pattern(
      "inner = Mul(Add(x, Mul(Pow(x, 3), 0.044715)), 0.7978845)\n"
      "y = Mul(Mul(x, Add(Tanh(inner), 1)), 0.5)")
      .replace("y = Gelu[approximate=tanh](x)");
  Pattern(
      "d = Sub(x, ReduceMean[axes=[-1], keepdims?=1](x))\n"
      "v = ReduceMean[axes=[-1], keepdims?=1](Pow(d, 2))\n"
      "y = Add(Mul(Div(d, Sqrt(Add(v, e:param))), s:param[rank=1]), b:param[rank=1])")
      .replace("y = LayerNormalization[axis=-1, epsilon=$e](x, s, b)");
  Pattern("y = Transpose[perm=[0, 2, 1, 3]](Transpose[perm=[0, 2, 1, 3]](x))").replace("y = x");
  Pattern("y = Reshape[allowzero?=0](Reshape(x, _), s:param)").replace("y = Reshape(x, s)");
  Pattern("y = Mul(x, Sigmoid(x))").replace("y = com.microsoft::QuickGelu[alpha=1.0](x)");
  Pattern("c = Conv(x, w:param)\n y = Add(c, b:param[rank=1])").replace("y = Conv[*c](x, w, b)");
  Pattern("y = Relu(Relu(x))").replace("y = Relu(x)");
  Pattern("y = Squeeze(Unsqueeze(x, axes:param), axes)").replace("y = x");
}

MXReturnValue tenPatterns(Graph* graph, const options_map_t&) {
  static const PatternSet& patterns = *new PatternSet(&declarePatterns);
  const std::clock_t start = std::clock();
  const std::size_t count = patterns.apply(graph);
  std::cout << count << " " << static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC
            << std::endl;
  return MX_SUCCESS;
}

}  // namespace

REGISTER_PASS(tenPatterns)
    .setBody(tenPatterns)
    .describe("Fuses what exporters of transformers and convolutions write out.")
    .dialects({"onnx"})
    .needsShapes(false);

MXReturnValue initialize(int) { return MX_SUCCESS; }
