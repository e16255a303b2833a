// Passes that change one thing each, chosen by options, for files of NNVM and TVM.
#include "lib_api.h"

using namespace mxnet::ext;

typedef std::unordered_map<std::string, std::string> Options;

static Node* named(Graph* graph, const std::string& name) {
  for (Node* node : graph->nodes) {
    if (node->name == name) return node;
  }
  throw std::runtime_error("no node " + name);
}

/// Sets attributes from text such as "a=1;b=2".
static void setAttributes(Node* node, const std::string& text) {
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ';');) {
    const std::size_t at = item.find('=');
    node->attrs[item.substr(0, at)] = item.substr(at + 1);
  }
}

static std::string option(const Options& options, const std::string& key) {
  const auto found = options.find(key);
  return found == options.end() ? "" : found->second;
}

/// Inserts a new operator after the first output of a node; it stands at the end of the list.
MXReturnValue insertBehind(Graph* graph, const Options& options) {
  Node* before = named(graph, options.at("node"));
  Node* added = graph->addNode(options.at("name"), options.at("op"));
  setAttributes(added, option(options, "attrs"));
  graph->connect(before, 0, added, 0);
  graph->replace(NodeEntry(before, 0), NodeEntry(added, 0));
  return MX_SUCCESS;
}
REGISTER_PASS(insertBehind).setBody(insertBehind);

/// Gives a node a new variable as last input, with an array of this many elements if asked for.
MXReturnValue addVariable(Graph* graph, const Options& options) {
  Node* user = named(graph, options.at("node"));
  Node* variable = graph->addNode(options.at("name"), "null");
  setAttributes(variable, option(options, "attrs"));
  graph->inputs.push_back(variable);
  graph->connect(variable, 0, user, static_cast<int>(user->inputs.size()));
  if (user->attrs.count("num_inputs") != 0) {
    user->attrs["num_inputs"] = std::to_string(user->inputs.size());
  }
  if (options.count("elements") != 0) {
    const int64_t count = std::stoi(options.at("elements"));
    variable->alloc_arg({count}, MXContext::CPU(), kFloat32);
    std::fill_n(variable->tensor->data<float>(), count, 2.0f);
  }
  return MX_SUCCESS;
}
REGISTER_PASS(addVariable).setBody(addVariable);

/// Removes a node; its first input stands in for it, and unused variables are removed too.
MXReturnValue bypass(Graph* graph, const Options& options) {
  Node* node = named(graph, options.at("node"));
  graph->replace(NodeEntry(node, 0), node->inputs[0]);
  std::vector<Node*> gone(1, node);
  for (const NodeEntry& input : node->inputs) {
    if (input.node->op == "null" && input.node->outputs.size() == 1) gone.push_back(input.node);
  }
  graph->removeNodes(gone);
  return MX_SUCCESS;
}
REGISTER_PASS(bypass).setBody(bypass);

/// Sets attributes of a node, or drops one.
MXReturnValue setNode(Graph* graph, const Options& options) {
  Node* node = named(graph, options.at("node"));
  setAttributes(node, option(options, "attrs"));
  node->attrs.erase(option(options, "drop"));
  if (options.count("op") != 0) node->op = options.at("op");
  if (options.count("name") != 0) node->name = options.at("name");
  return MX_SUCCESS;
}
REGISTER_PASS(setNode).setBody(setNode);

/// Sets, or with no value drops, an attribute of the graph.
MXReturnValue setGraph(Graph* graph, const Options& options) {
  if (options.count("json") == 0) {
    graph->attrs.erase(options.at("key"));
  } else {
    graph->attrs[options.at("key")] = JsonVal::parse(options.at("json"));
  }
  return MX_SUCCESS;
}
REGISTER_PASS(setGraph).setBody(setGraph);

/// Connects input number `slot` of a node to the first output of another one.
MXReturnValue rewire(Graph* graph, const Options& options) {
  graph->connect(named(graph, options.at("from")), 0, named(graph, options.at("node")),
                 std::stoi(options.at("slot")));
  return MX_SUCCESS;
}
REGISTER_PASS(rewire).setBody(rewire);

/// Copies a node with all its attributes, and uses the copy as a further output of the graph.
MXReturnValue duplicate(Graph* graph, const Options& options) {
  Node* node = named(graph, options.at("node"));
  Node* copy = graph->addNode(node->name + "_copy", node->op);
  copy->attrs = node->attrs;
  for (std::size_t i = 0; i < node->inputs.size(); ++i) {
    graph->connect(node->inputs[i].node, node->inputs[i].entry, copy, static_cast<int>(i));
  }
  graph->outputs.push_back(NodeEntry(copy, 0));
  return MX_SUCCESS;
}
REGISTER_PASS(duplicate).setBody(duplicate);

/// Sets attributes of a node in the first graph that is nested in another node.
MXReturnValue setNested(Graph* graph, const Options& options) {
  Graph* nested = named(graph, options.at("holder"))->subgraphs.at(0);
  setAttributes(named(nested, options.at("node")), option(options, "attrs"));
  return MX_SUCCESS;
}
REGISTER_PASS(setNested).setBody(setNested);

MXReturnValue initialize(int) { return MX_SUCCESS; }
