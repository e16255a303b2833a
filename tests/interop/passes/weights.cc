// Passes that see, change, add and drop weights.
#include <sstream>

#include "edges.h"

using mxnet::ext::Graph;
using mxnet::ext::kFloat32;
using mxnet::ext::MX_FAIL;
using mxnet::ext::MX_SUCCESS;
using mxnet::ext::MXContext;
using mxnet::ext::MXReturnValue;
using mxnet::ext::MXTensor;
using mxnet::ext::Node;

/// Prints which nodes have a tensor, and what it is like.
static MXReturnValue printTensors(Graph* graph, const Options&) {
  for (const Node* node : nodesOf(graph)) {
    const MXTensor* tensor = node->tensor;
    if (tensor == nullptr) continue;
    std::cout << node->name << " dtype " << tensor->dtype << " storage " << tensor->stype << " on "
              << tensor->ctx.dev_type << tensor->ctx.dev_id << " shape";
    for (int64_t extent : tensor->shape) std::cout << " " << extent;
    if (tensor->dtype == kFloat32 && tensor->size() > 0) {
      const float* values = static_cast<const float*>(tensor->data_ptr);
      std::cout << " from " << values[0] << " to " << values[tensor->size() - 1];
    }
    std::cout << "\n";
  }
  return MX_SUCCESS;
}

/// Multiplies all weights by option `factor`, in place.
static MXReturnValue scaleWeights(Graph* graph, const Options& options) {
  const float factor = std::stof(option(options, "factor", "0.5"));
  for (Node* node : nodesOf(graph)) {
    if (node->tensor == nullptr || node->tensor->dtype != kFloat32) continue;
    float* values = static_cast<float*>(node->tensor->data_ptr);
    for (int64_t i = 0; i < node->tensor->size(); ++i) values[i] *= factor;
  }
  return MX_SUCCESS;
}

/// Adds a weight (1, 2, ... halves) to each output; with option `state`, an auxiliary state that
/// nobody uses.
static MXReturnValue addWeights(Graph* graph, const Options& options) {
  const std::vector<mxnet::ext::NodeEntry> heads = graph->outputs;
  for (size_t i = 0; i < heads.size(); ++i) {
    Node* weight = graph->addNode("added" + std::to_string(i), "null");
    weight->alloc_arg({1}, MXContext::CPU(0), kFloat32);
    static_cast<float*>(weight->tensor->data_ptr)[0] = 0.5f * static_cast<float>(i + 1);
    graph->inputs.push_back(weight);
    Node* sum = graph->addNode("sum" + std::to_string(i), "broadcast_add");
    append(heads[i].node, heads[i].entry, sum);
    append(weight, 0, sum);
    graph->outputs[i].node = sum;
    graph->outputs[i].entry = 0;
  }
  if (option(options, "state", "False") == "True") {
    Node* state = graph->addNode("state", "null");
    state->alloc_aux({2, 3}, MXContext::CPU(0), mxnet::ext::kInt32);
    for (int i = 0; i < 6; ++i) static_cast<int32_t*>(state->tensor->data_ptr)[i] = i;
    graph->inputs.push_back(state);
  }
  return MX_SUCCESS;
}

/// Takes the bias from fully connected layers; their parameters have no user then.
static MXReturnValue dropBias(Graph* graph, const Options&) {
  for (Node* node : nodesOf(graph)) {
    if (node->op != "FullyConnected" || node->inputs.size() != 3) continue;
    Node* bias = node->inputs[2].node;
    node->inputs.pop_back();
    node->attrs["no_bias"] = "True";
    std::vector<mxnet::ext::NodeEntry> kept;
    for (const mxnet::ext::NodeEntry& use : bias->outputs) {
      if (use.node != node) kept.push_back(use);
    }
    bias->outputs = kept;
  }
  return MX_SUCCESS;
}

/// Allocates a weight, then fails.
static MXReturnValue addAndFail(Graph* graph, const Options&) {
  graph->addNode("added", "null")->alloc_arg({4}, MXContext::CPU(0), kFloat32);
  MX_ERROR_MSG << "changed its mind";
  return MX_FAIL;
}

REGISTER_PASS(interop_printTensors).setBody(printTensors);
REGISTER_PASS(interop_scaleWeights).setBody(scaleWeights);
REGISTER_PASS(interop_addWeights).setBody(addWeights);
REGISTER_PASS(interop_dropBias).setBody(dropBias);
REGISTER_PASS(interop_addAndFail).setBody(addAndFail);
