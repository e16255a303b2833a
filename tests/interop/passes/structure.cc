// Passes that change which nodes there are and how they hang together.
#include <set>
#include <sstream>

#include "edges.h"

using mxnet::ext::Graph;
using mxnet::ext::MX_SUCCESS;
using mxnet::ext::MXReturnValue;
using mxnet::ext::Node;
using mxnet::ext::NodeEntry;

static MXReturnValue identity(Graph*, const Options&) { return MX_SUCCESS; }

/// Takes nodes with one input out of the way. Option `ops`: operators, separated by commas.
static MXReturnValue remove(Graph* graph, const Options& options) {
  std::stringstream list(option(options, "ops", "Dropout,_copy,identity,BlockGrad"));
  std::set<std::string> unwanted;
  for (std::string op; std::getline(list, op, ',');) unwanted.insert(op);
  for (Node* node : nodesOf(graph)) {
    if (unwanted.count(node->op) == 0 || node->inputs.size() != 1) continue;
    const NodeEntry source = node->inputs[0];
    redirect(graph, node, 0, source.node, source.entry);
  }
  return MX_SUCCESS;
}

/// Puts a clip behind every relu. Its bounds are attributes with a sign and a point.
static MXReturnValue insertAfterRelu(Graph* graph, const Options& options) {
  for (Node* node : nodesOf(graph)) {
    const bool relu = node->op == "relu" || attribute(node, "act_type") == "relu";
    if (!relu || node->op == "null") continue;
    Node* clip = graph->addNode(node->name + "_clipped", "clip");
    clip->attrs["a_min"] = "-0.5";
    clip->attrs["a_max"] = option(options, "a_max", "6");
    append(node, 0, clip);
    redirect(graph, node, 0, clip, 0);
  }
  return MX_SUCCESS;
}

/// Replaces an Activation that follows an operator by the operator named after the function.
static MXReturnValue replacePattern(Graph* graph, const Options&) {
  for (Node* node : nodesOf(graph)) {
    const std::string kind = attribute(node, "act_type");
    if (node->op != "Activation" || (kind != "relu" && kind != "sigmoid" && kind != "tanh"))
      continue;
    const NodeEntry source = node->inputs[0];
    if (source.node->op == "null") continue;
    Node* plain = graph->addNode(node->name + "_plain", kind);
    append(source.node, source.entry, plain);
    redirect(graph, node, 0, plain, 0);
  }
  return MX_SUCCESS;
}

/// Multiplies every output of the model by a new variable.
static MXReturnValue addVariables(Graph* graph, const Options&) {
  const std::vector<NodeEntry> heads = graph->outputs;
  for (size_t i = 0; i < heads.size(); ++i) {
    const std::string number = std::to_string(i);
    Node* scale = graph->addNode("scale" + number, "null");
    scale->attrs["__shape__"] = "(1,)";
    graph->inputs.push_back(scale);
    Node* product = graph->addNode("scaled" + number, "broadcast_mul");
    append(heads[i].node, heads[i].entry, product);
    append(scale, 0, product);
    graph->outputs[i].node = product;
    graph->outputs[i].entry = 0;
  }
  return MX_SUCCESS;
}

/// Swaps the operands of additions, which changes the order of nodes in the file.
static MXReturnValue swapOperands(Graph* graph, const Options&) {
  for (Node* node : nodesOf(graph)) {
    if (node->inputs.size() != 2 || node->op.find("dd") == std::string::npos) continue;
    std::swap(node->inputs[0], node->inputs[1]);
    for (size_t i = 0; i < 2; ++i) {
      for (NodeEntry& use : node->inputs[i].node->outputs) {
        // Where both operands are the same output, either number is right.
        if (use.node == node) use.entry = static_cast<int>(i);
      }
    }
  }
  return MX_SUCCESS;
}

/// Makes an output of the model of every `step`-th operator.
static MXReturnValue addHeads(Graph* graph, const Options& options) {
  const int step = std::stoi(option(options, "step", "7"));
  int count = 0;
  for (Node* node : nodesOf(graph)) {
    if (node->op == "null" || ++count % step != 0) continue;
    NodeEntry head;
    head.node = node;
    head.entry = 0;
    graph->outputs.push_back(head);
  }
  return MX_SUCCESS;
}

/// Leaves one output, and of that what is `depth` operators further up; the rest is not needed.
static MXReturnValue removeHeads(Graph* graph, const Options& options) {
  graph->outputs.resize(1);
  for (int depth = std::stoi(option(options, "depth", "3")); depth > 0; --depth) {
    const Node* last = graph->outputs[0].node;
    if (last->inputs.empty() || last->inputs[0].node->op == "null") break;
    graph->outputs[0] = last->inputs[0];
  }
  return MX_SUCCESS;
}

REGISTER_PASS(interop_identity).setBody(identity);
REGISTER_PASS(interop_remove).setBody(remove);
REGISTER_PASS(interop_insertAfterRelu).setBody(insertAfterRelu);
REGISTER_PASS(interop_replacePattern).setBody(replacePattern);
REGISTER_PASS(interop_addVariables).setBody(addVariables);
REGISTER_PASS(interop_swapOperands).setBody(swapOperands);
REGISTER_PASS(interop_addHeads).setBody(addHeads);
REGISTER_PASS(interop_removeHeads).setBody(removeHeads);
