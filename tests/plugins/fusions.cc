// Eight fusions for ONNX, each a pattern; tests/passes/test_fusions.py has them in Python.
#define PASSLIB_PATTERNS
#include "lib_api.h"

using namespace mxnet::ext;

namespace {

/// Whether a parameter has one number for each output channel of a convolution with weight `w`.
bool isPerChannel(const Match& m, const char* name) {
  const std::vector<int64_t>& shape = m.tensor(name).shape;
  const std::size_t axes = m.tensor("w").shape.size() - 1;  // the channels and those after them
  return shape.size() >= axes && m.tensor(name).size() == m.tensor("w").shape[0] &&
         shape[shape.size() - axes] == m.tensor("w").shape[0];
}

}  // namespace

PATTERN_PASS(fuseConvAdd, "Conv and Add become Conv with a bias", "onnx") {
  Pattern p("c = Conv(x, w:param)\n y = Add(c, b:param)");
  p.where([](const Match& m) { return isPerChannel(m, "b"); }, "b has one number a channel");
  p.rewrite([](Match& m) {
    const MXTensor& b = m.tensor("b");
    m.replace(m.op("Conv",
                   {m["x"], m["w"], m.parameter("bias", {b.size()}, b.dtype, m.numbers("b"))},
                   m.attributes("c")));
  });
}

PATTERN_PASS(fuseConvMul, "Mul behind Conv goes into its weight", "onnx") {
  Pattern p("c = Conv(x, w:param)\n y = Mul(c, s:param)");
  p.where([](const Match& m) { return isPerChannel(m, "s"); }, "s has one number a channel");
  p.rewrite([](Match& m) {
    std::vector<double> w = m.numbers("w");
    const std::vector<double> s = m.numbers("s");
    for (std::size_t i = 0; i < w.size(); ++i) w[i] *= s[i / (w.size() / s.size())];
    const MXTensor& old = m.tensor("w");
    m.replace(
        m.op("Conv", {m["x"], m.parameter("weight", old.shape, old.dtype, w)}, m.attributes("c")));
  });
}

PATTERN_PASS(fuseMatMulAdd, "MatMul and Add become Gemm", "onnx") {
  Pattern p("y = Add(MatMul(x, w:param[rank=2]), b:param)");
  p.where([](const Match& m) { return m.rank("x") == 2 && m.broadcasts("b", "y"); });
  p.replace("y = Gemm(x, w, b)");
}

PATTERN_PASS(fuseGelu, "Five nodes with Erf, or eight with Tanh, become Gelu", "onnx") {
  const auto has_gelu = [](const Match& m) { return m.operatorSet() >= 20; };
  Pattern erf("y = Mul(Mul(x, Add(Erf(Div(x, 1.4142135)), 1)), 0.5)");
  erf.where(has_gelu, "Gelu is an operator of set 20").replace("y = Gelu(x)");
  Pattern tanh(
      "inner = Mul(Add(x, Mul(Pow(x, 3), 0.044715)), 0.7978845)\n"
      "y = Mul(Mul(x, Add(Tanh(inner), 1)), 0.5)");
  tanh.where(has_gelu, "Gelu is an operator of set 20").replace("y = Gelu[approximate=tanh](x)");
}

PATTERN_PASS(fuseLayerNorm, "Nine nodes become LayerNormalization", "onnx") {
  Pattern p(
      "d = Sub(x, ReduceMean[axes=[-1], keepdims?=1](x))\n"
      "v = ReduceMean[axes=[-1], keepdims?=1](Pow(d, 2))\n"
      "y = Add(Mul(Div(d, Sqrt(Add(v, e:param))), s:param[rank=1]), b:param[rank=1])");
  p.where([](const Match& m) { return m.operatorSet() >= 17 && m.broadcasts("s", "x"); });
  p.replace("y = LayerNormalization[axis=-1, epsilon=$e](x, s, b)");
}

PATTERN_PASS(mergeTransposes, "Two Transpose become one, or none", "onnx") {
  Pattern p("y = Transpose[perm=$second](Transpose[perm=$first](x))");
  p.rewrite([](Match& m) {
    std::vector<int64_t> order = m.integers("second");
    for (int64_t& axis : order) axis = m.integers("first").at(static_cast<std::size_t>(axis));
    const bool none = std::is_sorted(order.begin(), order.end());
    m.replace(none ? m["x"] : m.op("Transpose", {m["x"]}, {{"perm", listText(order)}}));
  });
}

PATTERN_PASS(mergeReshapes, "Two Reshape become one", "onnx") {
  Pattern p("y = Reshape[allowzero?=0](Reshape(x, _), s:param)");
  p.where(
      [](const Match& m) {
        const std::vector<double> s = m.numbers("s");
        return std::find(s.begin(), s.end(), 0.0) == s.end();
      },
      "no size is that of the first result");
  p.replace("y = Reshape(x, s)");
}

PATTERN_PASS(fuseSilu, "x * Sigmoid(x) becomes QuickGelu", "onnx") {
  Pattern("y = Mul(x, Sigmoid(x))").replace("y = com.microsoft::QuickGelu[alpha=1.0](x)");
}

MXReturnValue initialize(int) { return MX_SUCCESS; }
