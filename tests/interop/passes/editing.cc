// Passes that use what passlib's header adds to MXNet's: they compile against it only, and run in
// both hosts.
#include "mxnet/lib_api.h"

using mxnet::ext::Graph;
using mxnet::ext::MX_SUCCESS;
using mxnet::ext::MXReturnValue;
using mxnet::ext::Node;
using mxnet::ext::NodeEntry;
using mxnet::ext::options_map_t;

/// Deletes activations.
static MXReturnValue deleteActivations(Graph* graph, const options_map_t&) {
  std::vector<Node*> unwanted;
  for (Node* node : graph->nodes) {
    if (node->op != "Activation" && node->op != "LeakyReLU") continue;
    graph->replace(NodeEntry(node, 0), node->inputs[0]);
    unwanted.push_back(node);
  }
  graph->removeNodes(unwanted);
  return MX_SUCCESS;
}

/// Puts a node behind every operator that feeds the model's outputs, and one before them.
static MXReturnValue wrapHeads(Graph* graph, const options_map_t&) {
  const std::vector<NodeEntry> heads = graph->outputs;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    Node* after = graph->addNode("after" + std::to_string(i), "negative");
    graph->connect(heads[i].node, heads[i].entry, after, 0);
    graph->replace(heads[i], NodeEntry(after, 0));
    if (heads[i].node->inputs.empty()) continue;
    const NodeEntry source = heads[i].node->inputs[0];
    Node* before = graph->addNode("before" + std::to_string(i), "negative");
    graph->connect(source.node, source.entry, before, 0);
    graph->connect(before, 0, heads[i].node, 0);
  }
  return MX_SUCCESS;
}

/// Lets every convolution wait for the one before it.
static MXReturnValue orderConvolutions(Graph* graph, const options_map_t&) {
  Node* last = nullptr;
  for (Node* node : graph->sorted()) {
    if (node->op != "Convolution") continue;
    if (last != nullptr) node->control_deps.push_back(last);
    last = node;
  }
  return MX_SUCCESS;
}

/// Writes a small graph of its own in place of the one it was given.
static MXReturnValue startOver(Graph* graph, const options_map_t&) {
  graph->removeNodes(graph->nodes);
  Node* x = graph->addNode("x", "null");
  Node* parts = graph->addNode("parts", "SliceChannel");
  parts->attrs["num_outputs"] = "3";
  parts->attrs["__note__"] = "\"quoted\"\\ \n\t\xc3\xa9";
  graph->connect(x, 0, parts, 0);
  Node* sum = graph->addNode("sum", "elemwise_add");
  graph->connect(parts, 2, sum, 0);
  graph->connect(parts, 0, sum, 1);
  graph->outputs = {NodeEntry(sum, 0), NodeEntry(parts, 1)};
  return MX_SUCCESS;
}

REGISTER_PASS(interop_deleteActivations).setBody(deleteActivations);
REGISTER_PASS(interop_wrapHeads).setBody(wrapHeads);
REGISTER_PASS(interop_orderConvolutions).setBody(orderConvolutions);
REGISTER_PASS(interop_startOver).setBody(startOver);
