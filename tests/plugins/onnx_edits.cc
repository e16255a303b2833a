// Passes over graphs with nested graphs and captured values, as ONNX has them.
#include <algorithm>

#include "lib_api.h"

using namespace mxnet::ext;

typedef std::unordered_map<std::string, std::string> Options;

namespace {

/// All graphs, the nested ones included, each after the one around it.
std::vector<Graph*> everyGraph(Graph* graph) {
  std::vector<Graph*> graphs(1, graph);
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    for (Node* node : graphs[i]->nodes) {
      graphs.insert(graphs.end(), node->subgraphs.begin(), node->subgraphs.end());
    }
  }
  return graphs;
}

Node* find(Graph* graph, const std::string& name) {
  for (Node* node : graph->nodes) {
    if (node->name == name) return node;
  }
  throw std::runtime_error("there is no node " + name);
}

}  // namespace

/// Makes all operators new ones, as if the pass had built the whole graph itself; and parameters.
MXReturnValue rebuildOperators(Graph* graph, const Options& options) {
  const bool parameters = options.count("parameters") != 0;
  for (Graph* level : everyGraph(graph)) {
    for (Node* node : level->nodes) {
      if (node->op != "null" || (parameters && node->tensor != nullptr))
        node->attrs.erase("__id__");
    }
  }
  return MX_SUCCESS;
}
REGISTER_PASS(rebuildOperators).setBody(rebuildOperators);

/// Inserts an Identity after every output of every operator, in all graphs.
MXReturnValue interpose(Graph* graph, const Options&) {
  for (Graph* level : everyGraph(graph)) {
    const std::vector<Node*> nodes = level->nodes;
    for (Node* node : nodes) {
      if (node->op == "null") continue;
      for (int i = 0; i < node->num_outputs; ++i) {
        Node* copy = level->addNode(node->name + "_then_" + std::to_string(i), "Identity");
        level->connect(node, i, copy, 0);
        if (level->replace(NodeEntry(node, i), NodeEntry(copy, 0)) == 0) level->removeNode(copy);
      }
    }
  }
  return MX_SUCCESS;
}
REGISTER_PASS(interpose).setBody(interpose);

/// Removes every Identity, in all graphs.
MXReturnValue dropIdentities(Graph* graph, const Options&) {
  for (Graph* level : everyGraph(graph)) {
    const std::vector<Node*> nodes = level->nodes;
    for (Node* node : nodes) {
      if (node->op != "Identity") continue;
      level->replace(NodeEntry(node, 0), node->inputs.at(0));
      level->removeNode(node);
    }
  }
  return MX_SUCCESS;
}
REGISTER_PASS(dropIdentities).setBody(dropIdentities);

/// Sets attribute `key` of node `name` to `value`.
MXReturnValue setAttribute(Graph* graph, const Options& options) {
  for (Graph* level : everyGraph(graph)) {
    for (Node* node : level->nodes) {
      if (node->name == options.at("node")) node->attrs[options.at("key")] = options.at("value");
    }
  }
  return MX_SUCCESS;
}
REGISTER_PASS(setAttribute).setBody(setAttribute);

/// Inserts a new operator `op` of domain `domain` after the first output.
MXReturnValue appendOperator(Graph* graph, const Options& options) {
  Node* node = graph->addNode("appended", options.at("op"));
  if (options.count("domain")) node->attrs["__domain__"] = options.at("domain");
  if (options.count("key")) node->attrs[options.at("key")] = options.at("value");
  graph->connect(graph->outputs[0].node, graph->outputs[0].entry, node, 0);
  graph->outputs[0] = NodeEntry(node, 0);
  return MX_SUCCESS;
}
REGISTER_PASS(appendOperator).setBody(appendOperator);

/// Puts a new operator `op` before the first input of node `node`.
MXReturnValue putBefore(Graph* graph, const Options& options) {
  Node* user = find(graph, options.at("node"));
  Node* node = graph->addNode("put_before", options.at("op"));
  const NodeEntry value = user->inputs.at(0);
  graph->connect(value.node, value.entry, node, 0);
  graph->connect(node, 0, user, 0);
  return MX_SUCCESS;
}
REGISTER_PASS(putBefore).setBody(putBefore);

/// Adds a new constant of `size` ones, by a new operator, to the first output.
MXReturnValue addConstant(Graph* graph, const Options& options) {
  Node* constant = graph->addNode("added_constant", "null");
  graph->inputs.push_back(constant);
  MXTensor* tensor =
      constant->alloc_arg({std::stoll(options.at("size"))}, MXContext::CPU(0), kFloat32);
  std::fill_n(tensor->data<float>(), tensor->size(), 1.0F);
  Node* sum = graph->addNode("added_sum", "Add");
  graph->connect(graph->outputs[0].node, graph->outputs[0].entry, sum, 0);
  graph->connect(constant, 0, sum, 1);
  graph->outputs[0] = NodeEntry(sum, 0);
  return MX_SUCCESS;
}
REGISTER_PASS(addConstant).setBody(addConstant);

/// Writes `value` to all elements of the parameter `name`.
MXReturnValue fillParameter(Graph* graph, const Options& options) {
  MXTensor* tensor = find(graph, options.at("name"))->tensor;
  if (tensor == nullptr) {
    MX_ERROR_MSG << "no values for " << options.at("name");
    return MX_FAIL;
  }
  std::fill_n(tensor->data<float>(), tensor->size(), std::stof(options.at("value")));
  return MX_SUCCESS;
}
REGISTER_PASS(fillParameter).setBody(fillParameter);

/// Gives parameter `name` an axis of size 1 more, in front, by a new array.
MXReturnValue addAxis(Graph* graph, const Options& options) {
  Node* node = find(graph, options.at("name"));
  const std::vector<float> values(node->tensor->data<float>(),
                                  node->tensor->data<float>() + node->tensor->size());
  std::vector<int64_t> shape = node->tensor->shape;
  shape.insert(shape.begin(), 1);
  MXTensor* tensor = node->alloc_arg(shape, MXContext::CPU(0), kFloat32);
  std::copy(values.begin(), values.end(), tensor->data<float>());
  return MX_SUCCESS;
}
REGISTER_PASS(addAxis).setBody(addAxis);

/// Lets node `name` run a copy of itself behind it: two nodes of one origin.
MXReturnValue copyNode(Graph* graph, const Options& options) {
  Node* node = find(graph, options.at("node"));
  Node* copy = graph->addNode(node->name + "_again", node->op);
  copy->attrs = node->attrs;
  for (std::size_t i = 0; i < node->inputs.size(); ++i) {
    graph->connect(node->inputs[i].node, node->inputs[i].entry, copy, static_cast<int>(i));
  }
  for (Graph* nested : node->subgraphs) {
    copy->subgraphs.push_back(Graph::fromString(nested->toString()));
  }
  graph->outputs.push_back(NodeEntry(copy, 0));
  return MX_SUCCESS;
}
REGISTER_PASS(copyNode).setBody(copyNode);

/// Makes the outputs of the graph stand in the opposite order, and the nodes too.
MXReturnValue reverseOutputs(Graph* graph, const Options&) {
  std::reverse(graph->outputs.begin(), graph->outputs.end());
  std::reverse(graph->nodes.begin(), graph->nodes.end());
  return MX_SUCCESS;
}
REGISTER_PASS(reverseOutputs).setBody(reverseOutputs);

/// Removes a node with all its edges, outputs of the graph included.
MXReturnValue removeNamed(Graph* graph, const Options& options) {
  graph->removeNode(find(graph, options.at("node")));
  return MX_SUCCESS;
}
REGISTER_PASS(removeNamed).setBody(removeNamed);

/// Takes output `number` away; its node stays.
MXReturnValue dropOutput(Graph* graph, const Options& options) {
  graph->outputs.erase(graph->outputs.begin() + std::stol(options.at("number")));
  return MX_SUCCESS;
}
REGISTER_PASS(dropOutput).setBody(dropOutput);

/// Adds an output: a new operator `op` of the first one.
MXReturnValue addOutput(Graph* graph, const Options& options) {
  Node* node = graph->addNode("added_" + options.at("op"), options.at("op"));
  graph->connect(graph->outputs[0].node, graph->outputs[0].entry, node, 0);
  graph->outputs.push_back(NodeEntry(node, 0));
  return MX_SUCCESS;
}
REGISTER_PASS(addOutput).setBody(addOutput);

MXReturnValue initialize(int) { return MX_SUCCESS; }
