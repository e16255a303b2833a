// Passes that read, write, add and remove weights, for the tests of models and blocks.
#include <algorithm>

#include "lib_api.h"

using namespace mxnet::ext;

typedef std::unordered_map<std::string, std::string> Options;

namespace {

Node* find(Graph* graph, const std::string& name) {
  for (Node* node : graph->nodes) {
    if (node->name == name) return node;
  }
  throw std::runtime_error("there is no node " + name);
}

Node* addVariable(Graph* graph, const std::string& name) {
  Node* variable = graph->addNode(name, "null");
  graph->inputs.push_back(variable);
  return variable;
}

void fill(MXTensor* tensor, float value) {
  std::fill_n(tensor->data<float>(), tensor->size(), value);
}

}  // namespace

/// Multiplies the weight `name` by `factor`, in place.
MXReturnValue scaleInPlace(Graph* graph, const Options& options) {
  Node* weight = find(graph, options.at("name"));
  if (weight->tensor == nullptr) {
    MX_ERROR_MSG << "no values for " << weight->name;
    return MX_FAIL;
  }
  const float factor = std::stof(options.at("factor"));
  float* values = weight->tensor->data<float>();
  for (int64_t i = 0; i < weight->tensor->size(); ++i) values[i] *= factor;
  return MX_SUCCESS;
}
REGISTER_PASS(scaleInPlace).setBody(scaleInPlace);

/// The same, and then fails.
MXReturnValue scaleAndFail(Graph* graph, const Options& options) {
  scaleInPlace(graph, options);
  MX_ERROR_MSG << "failed on purpose";
  return MX_FAIL;
}
REGISTER_PASS(scaleAndFail).setBody(scaleAndFail);

/// Multiplies the first output by a new argument `name` of one element, `value`.
MXReturnValue appendScale(Graph* graph, const Options& options) {
  Node* scale = addVariable(graph, options.at("name"));
  fill(scale->alloc_arg({1}, MXContext::CPU(0), kFloat32), std::stof(options.at("value")));
  Node* product = graph->addNode(options.at("name") + "_product", "broadcast_mul");
  graph->connect(graph->outputs[0].node, graph->outputs[0].entry, product, 0);
  graph->connect(scale, 0, product, 1);
  graph->outputs[0] = NodeEntry(product, 0);
  return MX_SUCCESS;
}
REGISTER_PASS(appendScale).setBody(appendScale);

/// Inserts a BatchNorm after the first output, of `channels`: mean 1, variance 4, gamma 1, beta 0.
MXReturnValue appendBatchNorm(Graph* graph, const Options& options) {
  Node* norm = graph->addNode("added_bn", "BatchNorm");
  norm->attrs["fix_gamma"] = "False";
  norm->attrs["eps"] = "0";
  const std::vector<int64_t> shape{std::stoll(options.at("channels"))};
  graph->connect(graph->outputs[0].node, graph->outputs[0].entry, norm, 0);
  const std::vector<std::pair<std::string, float>> parameters{
      {"gamma", 1}, {"beta", 0}, {"moving_mean", 1}, {"moving_var", 4}};
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    Node* variable = addVariable(graph, "added_bn_" + parameters[i].first);
    const MXContext cpu = MXContext::CPU(0);
    fill(i < 2 ? variable->alloc_arg(shape, cpu, kFloat32)
               : variable->alloc_aux(shape, cpu, kFloat32),
         parameters[i].second);
    graph->connect(variable, 0, norm, static_cast<int>(i) + 1);
  }
  graph->outputs[0] = NodeEntry(norm, 0);
  return MX_SUCCESS;
}
REGISTER_PASS(appendBatchNorm).setBody(appendBatchNorm);

/// Removes the bias of the FullyConnected `name`.
MXReturnValue dropBias(Graph* graph, const Options& options) {
  Node* layer = find(graph, options.at("name"));
  layer->attrs["no_bias"] = "True";
  graph->removeNode(layer->inputs.at(2).node);
  return MX_SUCCESS;
}
REGISTER_PASS(dropBias).setBody(dropBias);

/// Adds a variable and no array for it.
MXReturnValue addOrphan(Graph* graph, const Options&) {
  Node* orphan = addVariable(graph, "orphan");
  Node* sum = graph->addNode("orphan_sum", "broadcast_add");
  graph->connect(graph->outputs[0].node, graph->outputs[0].entry, sum, 0);
  graph->connect(orphan, 0, sum, 1);
  graph->outputs[0] = NodeEntry(sum, 0);
  return MX_SUCCESS;
}
REGISTER_PASS(addOrphan).setBody(addOrphan);

/// Writes down on the node of the first output what the pass was given.
MXReturnValue tellWhatISee(Graph* graph, const Options& options) {
  std::map<std::string, std::string> sorted(options.begin(), options.end());
  std::string text;
  for (const auto& option : sorted) text += option.first + "=" + option.second + ";";
  Node* head = graph->outputs[0].node;
  head->attrs["__options__"] = text;
  std::string values;
  std::string shapes;
  for (Node* node : graph->nodes) {
    if (node->op != "null") continue;
    if (node->tensor != nullptr) values += node->name + ";";
    const auto shape = node->attrs.find("__ext_shape__");
    if (shape != node->attrs.end()) shapes += node->name + shape->second + ";";
  }
  head->attrs["__values__"] = values;
  head->attrs["__shapes__"] = shapes;
  return MX_SUCCESS;
}
REGISTER_PASS(tellWhatISee).setBody(tellWhatISee);

/// Allocates an array for a new variable, and removes the variable again.
MXReturnValue allocateAndRemove(Graph* graph, const Options& options) {
  Node* variable = addVariable(graph, options.at("name"));
  fill(variable->alloc_arg({2}, MXContext::CPU(0), kFloat32), 1);
  graph->removeNode(variable);
  return MX_SUCCESS;
}
REGISTER_PASS(allocateAndRemove).setBody(allocateAndRemove);

/// Computes each `_mul_scalar` of an array in advance, and removes it with its variable.
MXReturnValue foldScalars(Graph* graph, const Options&) {
  const std::vector<Node*> nodes = graph->nodes;
  for (Node* node : nodes) {
    if (node->op != "_mul_scalar" || node->inputs[0].node->tensor == nullptr) continue;
    Node* old = node->inputs[0].node;
    Node* made = addVariable(graph, node->name + "_folded");
    MXTensor* values = made->alloc_arg(old->tensor->shape, MXContext::CPU(0), kFloat32);
    const float factor = std::stof(node->attrs.at("scalar"));
    for (int64_t i = 0; i < values->size(); ++i) {
      values->data<float>()[i] = old->tensor->data<float>()[i] * factor;
    }
    graph->replace(NodeEntry(node, 0), NodeEntry(made, 0));
    graph->removeNode(node);
    graph->removeNode(old);
  }
  return MX_SUCCESS;
}
REGISTER_PASS(foldScalars).setBody(foldScalars);

MXReturnValue initialize(int) { return MX_SUCCESS; }
