// Passes that leave edges which lead nowhere, or round in circles.
#include <limits>

#include "lib_api.h"

using namespace mxnet::ext;

typedef std::unordered_map<std::string, std::string> Options;

static Node* last(Graph* graph) { return graph->outputs.at(0).node; }

MXReturnValue makesCycle(Graph* graph, const Options&) {
  Node* node = last(graph);
  Node* before = node->inputs.at(0).node;
  while (before->op == "null") before = node->inputs.at(1).node;
  graph->connect(node, 0, before, 0);
  return MX_SUCCESS;
}
REGISTER_PASS(makesCycle).setBody(makesCycle);

MXReturnValue feedsItself(Graph* graph, const Options&) {
  graph->connect(last(graph), 0, last(graph), 0);
  return MX_SUCCESS;
}
REGISTER_PASS(feedsItself).setBody(feedsItself);

MXReturnValue controlCycle(Graph* graph, const Options&) {
  last(graph)->inputs.at(0).node->control_deps.push_back(last(graph));
  return MX_SUCCESS;
}
REGISTER_PASS(controlCycle).setBody(controlCycle);

/// Removes a node by hand and forgets the input that came from it.
MXReturnValue edgeToRemoved(Graph* graph, const Options&) {
  Node* removed = last(graph)->inputs.at(0).node;
  graph->removeNode(removed);
  last(graph)->inputs.insert(last(graph)->inputs.begin(), NodeEntry(removed, 0));
  return MX_SUCCESS;
}
REGISTER_PASS(edgeToRemoved).setBody(edgeToRemoved);

MXReturnValue edgeToDeleted(Graph* graph, const Options&) {
  Node* stranger = new Node();
  last(graph)->inputs[0].node = stranger;
  delete stranger;
  return MX_SUCCESS;
}
REGISTER_PASS(edgeToDeleted).setBody(edgeToDeleted);

MXReturnValue edgeToNull(Graph* graph, const Options&) {
  last(graph)->inputs[0].node = nullptr;
  return MX_SUCCESS;
}
REGISTER_PASS(edgeToNull).setBody(edgeToNull);

MXReturnValue controlToDeleted(Graph* graph, const Options&) {
  Node* stranger = new Node();
  last(graph)->control_deps.push_back(stranger);
  delete stranger;
  return MX_SUCCESS;
}
REGISTER_PASS(controlToDeleted).setBody(controlToDeleted);

MXReturnValue outputTooLarge(Graph* graph, const Options&) {
  last(graph)->inputs[0].entry = 7;
  return MX_SUCCESS;
}
REGISTER_PASS(outputTooLarge).setBody(outputTooLarge);

MXReturnValue outputNegative(Graph* graph, const Options&) {
  last(graph)->inputs[0].entry = -1;
  return MX_SUCCESS;
}
REGISTER_PASS(outputNegative).setBody(outputNegative);

MXReturnValue versionNegative(Graph* graph, const Options&) {
  last(graph)->inputs[0].version = -1;
  return MX_SUCCESS;
}
REGISTER_PASS(versionNegative).setBody(versionNegative);

/// The producer may have any number of outputs, but not this one: its count would not be an int.
MXReturnValue outputLargest(Graph* graph, const Options&) {
  NodeEntry& input = last(graph)->inputs[0];
  input.node->op = "unheard_of";
  input.entry = std::numeric_limits<int>::max();
  return MX_SUCCESS;
}
REGISTER_PASS(outputLargest).setBody(outputLargest);

MXReturnValue headToRemoved(Graph* graph, const Options&) {
  Node* node = last(graph);
  graph->removeNode(node);
  graph->outputs.push_back(NodeEntry(node, 0));
  return MX_SUCCESS;
}
REGISTER_PASS(headToRemoved).setBody(headToRemoved);

MXReturnValue headNegative(Graph* graph, const Options&) {
  graph->outputs[0].entry = -3;
  return MX_SUCCESS;
}
REGISTER_PASS(headNegative).setBody(headNegative);

MXReturnValue headTooLarge(Graph* graph, const Options&) {
  graph->outputs[0].entry = 5;
  return MX_SUCCESS;
}
REGISTER_PASS(headTooLarge).setBody(headTooLarge);

MXReturnValue noHeads(Graph* graph, const Options&) {
  graph->outputs.clear();
  return MX_SUCCESS;
}
REGISTER_PASS(noHeads).setBody(noHeads);

MXReturnValue noNodes(Graph* graph, const Options&) {
  graph->removeNodes(graph->nodes);
  return MX_SUCCESS;
}
REGISTER_PASS(noNodes).setBody(noNodes);

MXReturnValue initialize(int) { return MX_SUCCESS; }
