// Eight fusions for ONNX, each a pattern; tests/passes/test_fusions.py has them in Python.
#include "lib_patterns.h"

using namespace mxnet::ext;

namespace {

/// Whether a parameter has one number, or one for each output channel of a convolution with weight
/// `w`, and adds no axes.
bool isPerChannel(const Match& m, const char* name) {
  const std::vector<int64_t>& shape = m.tensor(name).shape;
  const std::size_t rank = m.tensor("w").shape.size();
  const int64_t channels = m.tensor("w").shape[0];
  if (shape.size() > rank) return false;
  return m.tensor(name).size() == 1 ||
         (m.tensor(name).size() == channels && shape.size() + 1 >= rank &&
          shape[shape.size() + 1 - rank] == channels);
}

/// Adds the sum, or the product, of a weight or bias and of the numbers of `by`, for each channel.
NodeEntry combine(Match& m, const char* name, const char* by, bool sum) {  // NOLINT: changes it
  std::vector<double> numbers = m.numbers(name);
  const std::vector<double> others = m.numbers(by);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double other = others[i * others.size() / numbers.size()];
    numbers[i] = sum ? numbers[i] + other : numbers[i] * other;
  }
  return m.parameter(name, m.tensor(name).shape, m.tensor(name).dtype, numbers);
}

}  // namespace

PATTERN_PASS(fuseConvAdd, "Conv and Add become Conv with a bias", "onnx") {
  Pattern p("c = Conv(x, w:param, b?:param)\n y = Add(c, a:param)");
  p.where([](const Match& m) { return isPerChannel(m, "a"); }, "a has one number a channel");
  p.rewrite([](Match& m) {
    const int64_t channels = m.tensor("w").shape[0];
    if (!m.has("b") && m.tensor("a").size() != channels) return;
    const NodeEntry bias = m.has("b") ? combine(m, "b", "a", true)
                                      : m.parameter("b", {channels}, m.type("a"), m.numbers("a"));
    m.replace(m.op("Conv", {m["x"], m["w"], bias}, m.attributes("c")));
  });
}

PATTERN_PASS(fuseConvMul, "Mul behind Conv goes into its weight and bias", "onnx") {
  Pattern p("c = Conv(x, w:param, b?:param)\n y = Mul(c, s:param)");
  p.where([](const Match& m) { return isPerChannel(m, "s"); }, "s has one number a channel");
  p.rewrite([](Match& m) {
    std::vector<NodeEntry> inputs = {m["x"], combine(m, "w", "s", false)};
    if (m.has("b")) inputs.push_back(combine(m, "b", "s", false));
    m.replace(m.op("Conv", inputs, m.attributes("c")));
  });
}

PATTERN_PASS(fuseGemm, "MatMul and Add become Gemm", "onnx") {
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
  // Before operator set 18, and from then on.
  for (const std::string mean :
       {"ReduceMean[axes=[-1], keepdims?=1](", "ReduceMean[keepdims?=1]("}) {
    const std::string end = mean.find("axes") == std::string::npos ? ", -1)" : ")";
    Pattern p("d = Sub(x, " + mean + "x" + end + ")\n v = " + mean + "Pow(d, 2)" + end +
              "\n y = Add(Mul(Div(d, Sqrt(Add(v, e:param))), s:param[rank=1]), b:param[rank=1])");
    p.where([](const Match& m) { return m.operatorSet() >= 17 && m.broadcasts("s", "x"); });
    p.replace("y = LayerNormalization[axis=-1, epsilon=$e](x, s, b)");
  }
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

PATTERN_PASS(joinReshapes, "Two Reshape become one", "onnx") {
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
