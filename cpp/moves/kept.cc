#include "moves/kept.h"

#include <stdexcept>
#include <vector>

#include "lib_patterns.h"
#include "moves/model.h"

namespace passlib::moves {
namespace {

using mxnet::ext::FoundMatch;
using mxnet::ext::Pattern;
using mxnet::ext::PatternSet;

/// Gelu, FastGelu, SimplifiedLayerNormalization, LayerNormalization and Attention. Others of ONNX
/// Runtime's fusions lose nothing by what goes into the weights of a layer.
std::vector<std::string> fusions() {
  const std::string erf = "Add(Erf(Div(x, 1.41421356)), 1)";
  std::vector<std::string> made = {
      "Mul(Mul(x, " + erf + "), 0.5)", "Mul(Mul(x, 0.5), " + erf + ")",
      "Mul(Mul(x, 0.5), Add(Tanh(Mul(Add(x, Mul(Pow(x, 3), 0.044715)), 0.79788456)), 1))",
      "Mul(Mul(x, 0.5), Add(Tanh(Mul(Mul(x, 0.79788456), Add(Mul(Mul(x, 0.044715), x), 1))), 1))"};
  const std::string root = "Sqrt(Add(ReduceMean(_, *_), _))";
  for (const std::string& normal : {"Div(_, " + root + ")", "Mul(_, Div(1, " + root + "))"}) {
    for (const std::string& each : {normal, "Cast(" + normal + ")"}) {
      const std::string scaled = "Mul(" + each + ", _:param[rank=1])";
      made.push_back(scaled);
      made.push_back("Add(" + scaled + ", _:param[rank=1])");
    }
  }
  const std::string wide = "Unsqueeze(Unsqueeze(m, *_), *_)";
  const std::string heads = "Transpose(Reshape(Add(MatMul(x, _:param), _:param), *_))";
  for (const std::string& mask : {wide, "Cast(" + wide + ")"}) {
    made.push_back("MatMul(Softmax(Add(Div(MatMul(" + heads + ", " + heads +
                   "), _), shared Mul(Sub(1, " + mask + "), _))), " + heads + ")");
  }
  return made;
}

std::unordered_set<std::string> fused(Graph* graph) {
  PatternSet patterns;
  for (const std::string& text : fusions()) patterns.add(Pattern(text));
  std::unordered_set<std::string> names;
  for (const FoundMatch& found : patterns.find(graph))
    for (const Node* node : found.nodes) names.insert(node->name);
  return names;
}

}  // namespace

std::unordered_set<std::string> keptNames(std::string_view what, Graph* graph) {
  std::unordered_set<std::string> names;
  if (what == "scaledWeights") {
    for (const Node* node : graph->nodes) {
      const bool is_product = isOperator(*node, "MatMul") || isOperator(*node, "Gemm");
      if (is_product && node->inputs.size() > 1 && node->inputs[1].node->op == "Mul")
        names.insert(node->inputs[1].node->name);
    }
  } else if (what == "fused" || what == "fusedButLayers") {
    names = fused(graph);
    if (what == "fused" || names.empty()) return names;
    static const std::unordered_set<std::string_view> kLayers = {"Conv", "ConvTranspose", "Gemm",
                                                                 "MatMul"};
    for (const Node* node : graph->nodes) {
      if (isOneOf(*node, kLayers)) names.erase(node->name);
    }
  } else {
    throw std::invalid_argument("there is nothing to keep of the name " + std::string(what));
  }
  return names;
}

}  // namespace passlib::moves
