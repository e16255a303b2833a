// Rewrites for ONNX, one of each kind of binding; rewrite_rules.py has them in Python.
#include "lib_patterns.h"

using namespace mxnet::ext;

PATTERN_PASS(endlessInC, "What replaces a match matches again", "onnx") {
  Pattern("y = Relu(x)").replace("y = Relu(x)");
}

PATTERN_PASS(growingInC, "Every replacement leaves one match more", "onnx") {
  Pattern("y = Relu(x)").replace("y = Abs(Relu(Relu(x)))");
}

PATTERN_PASS(idempotentInC, "Two equal functions in a row become one", "onnx") {
  Pattern p("y = Relu|Abs|Ceil(a)");
  p.where([](const Match& m) { return m.node("a")->op == m.node("y")->op; }, "both are equal");
  p.rewrite([](Match& m) { m.replace(m["a"]); });
}

PATTERN_PASS(invertedInC, "Tanh or Sigmoid behind Neg lose it", "onnx") {
  Pattern p("y = Tanh|Sigmoid(Neg(x))");
  p.rewrite([](Match& m) { m.replace(m.op("my::Inverted" + m.node("y")->op, {m["x"]})); });
}

PATTERN_PASS(flattenConcatInC, "Concat inside of Concat", "onnx") {
  Pattern p("y = Concat[axis=$a](*before, Concat[axis=$a](*inner))");
  p.replace("y = Concat[axis=$a](*before, *inner)");
}

PATTERN_PASS(convReluInC, "Relu behind Conv, which may have a bias", "onnx") {
  Pattern p("c = Conv(x, w, b?)\n y = Relu(c)");
  p.replace("y = my::ConvRelu[*c, relu=1](x, w, b)");
}

PATTERN_PASS(clipBelowInC, "Clip without a lower bound gets none", "onnx") {
  Pattern p("y = Clip(Neg(x), low?, high?)");
  p.where([](const Match& m) { return !m.has("low"); }, "no lower bound");
  p.replace("y = my::ClipNeg(x, low, high)");
}

PATTERN_PASS(pairProductsInC, "Two products of a value become one operation", "onnx") {
  Pattern p("a = MatMul(x, v:param)\n b = MatMul(x, w:param)");
  p.replace("a, b = my::Pair(x, v, w)");
}

PATTERN_PASS(swapHalvesInC, "Both outputs of Split are replaced", "onnx") {
  Pattern p("a, b = Split[num_outputs=2](x)");
  p.replace("p, q = my::Halves(x)\n a = Neg(p)\n b = Neg(q)");
}

PATTERN_PASS(scaleInC, "A factor becomes an attribute", "onnx") {
  Pattern("y = Mul(x, s:param[rank=0])").replace("y = my::Scale[by=$s](x)");
}

PATTERN_PASS(foldFactorInC, "A factor goes into the weight of a product", "onnx") {
  pass.option("below", 10.0, "Only factors below this.", 0.0, 100.0);
  pass.option("by", "scaled", "The end of new names.");
  Pattern p("y = MatMul(Mul(x, s:param[rank=0]), w:param)");
  p.where(
      [](const Match& m) {
        double factor = 0;
        return m.number("s", &factor) && factor < m.options().real("below");
      },
      "the factor is small enough");
  p.rewrite([](Match& m) {
    std::vector<int64_t> shape;
    std::vector<double> values = m.numbers("w");
    for (double& value : values) value *= m.numbers("s")[0];
    m.shape("w", &shape);
    const NodeEntry weight = m.parameter(m.options().text("by"), shape, m.type("w"), values);
    m.replace(m.op("MatMul", {m["x"], weight}));
  });
}

MXReturnValue initialize(int) { return MX_SUCCESS; }
