// Passes that enter the bodies of local functions, those that do not, and those that break bodies.
#include <string>
#include <vector>

#include "lib_patterns.h"

using namespace mxnet::ext;

namespace {

MXReturnValue dropTanh(Graph* graph, const OptionValues& /*options*/) {
  for (Node* node : graph->sorted()) {
    if (node->op != "Tanh") continue;
    graph->replace(NodeEntry(node, 0), node->inputs[0]);
    graph->removeNode(node);
  }
  return MX_SUCCESS;
}

bool isBody(const Graph& graph) {
  for (const Node* node : graph.nodes) {
    if (node->op == "Result0") return true;
  }
  return false;
}

MXReturnValue breakBody(Graph* graph, const OptionValues& options) {
  if (!isBody(*graph)) return MX_SUCCESS;
  const std::string how = options.text("how");
  Node* const output = graph->outputs[0].node;
  if (how == "fail") {
    MX_ERROR_MSG << "it always fails";
    return MX_FAIL;
  }
  if (how == "behind") {
    Node* const added = graph->addNode("added", "Neg");
    graph->connect(output, 0, added, 0);
    graph->outputs[0] = NodeEntry(added, 0);
  }
  if (how == "more") graph->outputs.push_back(output->inputs[0]);
  if (how == "output") {
    output->op = "Neg";
    output->attrs.clear();
  }
  if (how == "input") {
    Node* const added = graph->addNode("added", "null");
    added->attrs["__dtype__"] = "0";
    added->attrs["__shape__"] = "(1,)";
    Node* const sum = graph->addNode("sum", "Add");
    const NodeEntry source = output->inputs[0];
    graph->connect(source.node, source.entry, sum, 0);
    graph->connect(added, 0, sum, 1);
    output->inputs[0] = NodeEntry(sum, 0);
    sum->outputs.push_back(NodeEntry(output, 0));
  }
  if (how == "Result9" || how == "ResultFoo" || how == "Referring9") {
    for (Node* node : graph->nodes) {
      if (node->op != "Tanh") continue;
      node->op = how;
      node->attrs["__domain__"] = "referring";
    }
  }
  if (how == "set") {
    for (Node* node : graph->nodes) {
      if (node->op == "Tanh") node->op = "Neg";
    }
    unsigned int place = 0;
    graph->attrs["opset_import"] =
        JsonVal::parse("{\"\": 18, \"local\": 1, \"referring\": 1}", &place);
  }
  return MX_SUCCESS;
}

}  // namespace

PATTERN_PASS(swishInFunctions, "x times its sigmoid becomes an operator of ONNX Runtime", "onnx") {
  Pattern p("y = Mul(x, Sigmoid(x))");
  p.rewrite([](Match& m) {
    m.replace(m.op("QuickGelu", {m["x"]}, {{"__domain__", "com.microsoft"}, {"alpha", "1.0"}}));
  });
}

REGISTER_PASS(dropTanhInFunctions)
    .setBody(dropTanh)
    .dialects({"onnx"})
    .needsWeights(false)
    .needsShapes(false)
    .entersFunctions();
REGISTER_PASS(dropTanhOutside).setBody(dropTanh).dialects({"onnx"});

REGISTER_PASS(breakBody)
    .setBody(breakBody)
    .option("how", "fail", "What it does.",
            {"fail", "behind", "output", "input", "set", "Result9", "Referring9", "ResultFoo",
             "more"})
    .entersFunctions();

MXReturnValue initialize(int /*version*/) { return MX_SUCCESS; }
