/*
 * Three graph passes: one that prints, one that removes, one that replaces. README.md explains them
 * line by line.
 */
#include <set>

#include "lib_api.h"

using namespace mxnet::ext;

typedef std::unordered_map<std::string, std::string> Options;

/// Prints the graph. Changes nothing.
MXReturnValue myPass(Graph* graph, const Options& options) {
  for (const auto& option : options) {
    std::cout << "option " << option.first << " = " << option.second << "\n";
  }
  graph->print();
  return MX_SUCCESS;
}

REGISTER_PASS(myPass).setBody(myPass);

/// Splits "a,b,c" at its commas.
static std::set<std::string> splitNames(const std::string& text) {
  std::set<std::string> names;
  std::istringstream stream(text);
  std::string name;
  while (std::getline(stream, name, ',')) names.insert(name);
  return names;
}

/// Whether an operator returns its input unchanged at inference.
static bool isNoOp(const Node& node) {
  if (node.inputs.size() != 1) return false;
  if (node.op == "_copy" || node.op == "identity" || node.op == "BlockGrad" ||
      node.op == "stop_gradient") {
    return true;
  }
  if (node.op != "Dropout") return false;
  const auto mode = node.attrs.find("mode");
  return mode == node.attrs.end() || mode->second != "always";  // "always" also drops at inference
}

/// Removes operators that do nothing at inference: Dropout, identity, BlockGrad.
///
/// Options: keep="name1,name2" keeps the nodes with these names.
MXReturnValue dropNoOps(Graph* graph, const Options& options) {
  const auto keep = options.find("keep");
  const std::set<std::string> kept =
      keep == options.end() ? std::set<std::string>() : splitNames(keep->second);
  std::vector<Node*> unwanted;
  for (Node* node : graph->sorted()) {
    if (!isNoOp(*node) || kept.count(node->name) != 0) continue;
    graph->replace(NodeEntry(node, 0), node->inputs[0]);
    unwanted.push_back(node);
  }
  graph->removeNodes(unwanted);
  std::cout << "dropNoOps: " << unwanted.size() << " nodes removed\n";
  return MX_SUCCESS;
}

REGISTER_PASS(dropNoOps).setBody(dropNoOps);

/// The only user of a node's outputs; null if there are several, or an output of the graph.
static Node* onlyUser(const Graph& graph, const Node& node) {
  for (const NodeEntry& head : graph.outputs) {
    if (head.node == &node) return nullptr;
  }
  return node.outputs.size() == 1 ? node.outputs[0].node : nullptr;
}

static bool isRelu(const Node& node) {
  if (node.op == "relu") return true;
  const auto type = node.attrs.find("act_type");
  return node.op == "Activation" && type != node.attrs.end() && type->second == "relu";
}

/// Replaces each BatchNorm whose only use is a relu by one _contrib_BatchNormWithReLU.
MXReturnValue fuseBatchNormRelu(Graph* graph, const Options&) {
  std::vector<Node*> unwanted;
  for (Node* norm : graph->sorted()) {
    if (norm->op != "BatchNorm") continue;
    Node* relu = onlyUser(*graph, *norm);
    if (relu == nullptr || !isRelu(*relu) || norm->outputs[0].entry != 0) continue;
    if (!(relu->inputs[0] == NodeEntry(norm, 0))) continue;  // relu of the mean or the variance

    Node* fused = graph->addNode(relu->name, "_contrib_BatchNormWithReLU");
    fused->attrs = norm->attrs;
    for (std::size_t i = 0; i < norm->inputs.size(); ++i) {
      const NodeEntry& input = norm->inputs[i];
      graph->connect(input.node, input.entry, fused, static_cast<int>(i));
      fused->inputs[i].version = input.version;
    }
    graph->replace(NodeEntry(relu, 0), NodeEntry(fused, 0));
    unwanted.push_back(norm);
    unwanted.push_back(relu);
  }
  graph->removeNodes(unwanted);
  std::cout << "fuseBatchNormRelu: " << unwanted.size() / 2 << " pairs fused\n";
  return MX_SUCCESS;
}

REGISTER_PASS(fuseBatchNormRelu).setBody(fuseBatchNormRelu);

/// Called once, when the library is loaded.
MXReturnValue initialize(int version) {
  if (version >= 10700) return MX_SUCCESS;
  MX_ERROR_MSG << "this library needs the graph passes of MXNet 1.7 or later, not version "
               << version;
  return MX_FAIL;
}
