// Passes that leave a list of nodes, names or nested graphs which cannot be.
#include "lib_api.h"

using namespace mxnet::ext;

typedef std::unordered_map<std::string, std::string> Options;

MXReturnValue twoVariables(Graph* graph, const Options&) {
  Node* twin = graph->addNode(graph->inputs.at(0)->name, "null");
  graph->inputs.push_back(twin);
  Node* sum = graph->addNode("sum_of_twins", "broadcast_add");
  const NodeEntry head = graph->outputs[0];
  graph->connect(head.node, head.entry, sum, 0);
  graph->connect(twin, 0, sum, 1);
  graph->outputs[0] = NodeEntry(sum, 0);
  return MX_SUCCESS;
}
REGISTER_PASS(twoVariables).setBody(twoVariables);

MXReturnValue nullNode(Graph* graph, const Options&) {
  graph->nodes.insert(graph->nodes.begin() + 1, nullptr);
  return MX_SUCCESS;
}
REGISTER_PASS(nullNode).setBody(nullNode);

MXReturnValue listedTwice(Graph* graph, const Options&) {
  graph->nodes.push_back(graph->nodes.at(0));
  return MX_SUCCESS;
}
REGISTER_PASS(listedTwice).setBody(listedTwice);

static Graph* smallGraph() {
  return Graph::fromString(
      "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []}], \"arg_nodes\": [0], "
      "\"heads\": [[0, 0, 0]]}");
}

MXReturnValue sharedSubgraph(Graph* graph, const Options&) {
  Graph* nested = smallGraph();
  for (int i = 0; i < 2; ++i) {
    Node* node = graph->addNode("holder" + std::to_string(i), "_holder");
    node->subgraphs.push_back(nested);
    const NodeEntry head = graph->outputs[0];
    graph->connect(head.node, head.entry, node, 0);
    graph->outputs[0] = NodeEntry(node, 0);
  }
  return MX_SUCCESS;
}
REGISTER_PASS(sharedSubgraph).setBody(sharedSubgraph);

/// A variable of the outer graph is also listed in a nested one.
MXReturnValue nodeOfTwoGraphs(Graph* graph, const Options&) {
  Graph* nested = smallGraph();
  nested->nodes.push_back(graph->inputs[0]);
  graph->outputs[0].node->subgraphs.push_back(nested);
  return MX_SUCCESS;
}
REGISTER_PASS(nodeOfTwoGraphs).setBody(nodeOfTwoGraphs);

MXReturnValue nestedTooDeep(Graph* graph, const Options&) {
  Node* holder = graph->outputs[0].node;
  for (int i = 0; i < 101; ++i) {
    holder->subgraphs.push_back(smallGraph());
    holder = holder->subgraphs.back()->nodes[0];
  }
  return MX_SUCCESS;
}
REGISTER_PASS(nestedTooDeep).setBody(nestedTooDeep);

MXReturnValue nullSubgraph(Graph* graph, const Options&) {
  graph->outputs[0].node->subgraphs.push_back(nullptr);
  return MX_SUCCESS;
}
REGISTER_PASS(nullSubgraph).setBody(nullSubgraph);

/// A graph that holds itself.
MXReturnValue ownSubgraph(Graph* graph, const Options&) {
  graph->outputs[0].node->subgraphs.push_back(graph);
  return MX_SUCCESS;
}
REGISTER_PASS(ownSubgraph).setBody(ownSubgraph);

/// The fault sits in a nested graph.
MXReturnValue badSubgraph(Graph* graph, const Options&) {
  Graph* nested = smallGraph();
  nested->outputs[0].entry = -1;
  graph->outputs[0].node->subgraphs.push_back(nested);
  return MX_SUCCESS;
}
REGISTER_PASS(badSubgraph).setBody(badSubgraph);

MXReturnValue emptyOperator(Graph* graph, const Options&) {
  graph->outputs[0].node->op.clear();
  return MX_SUCCESS;
}
REGISTER_PASS(emptyOperator).setBody(emptyOperator);

MXReturnValue nameNotUtf8(Graph* graph, const Options&) {
  graph->outputs[0].node->name = "caf\xE9";
  return MX_SUCCESS;
}
REGISTER_PASS(nameNotUtf8).setBody(nameNotUtf8);

MXReturnValue attributeNotUtf8(Graph* graph, const Options&) {
  graph->outputs[0].node->attrs["note"] = "\xFF\xFE";
  return MX_SUCCESS;
}
REGISTER_PASS(attributeNotUtf8).setBody(attributeNotUtf8);

/// The list of variables has nodes that are none of the graph's, and lacks one that is.
MXReturnValue foreignVariables(Graph* graph, const Options&) {
  static Node elsewhere;
  graph->inputs.erase(graph->inputs.begin());
  graph->inputs.insert(graph->inputs.end(), {nullptr, &elsewhere, graph->outputs[0].node});
  return MX_SUCCESS;
}
REGISTER_PASS(foreignVariables).setBody(foreignVariables);

MXReturnValue initialize(int) { return MX_SUCCESS; }
