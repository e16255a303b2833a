// Passes that ask for the weights that they read.
#include "lib_api.h"

using namespace mxnet::ext;

namespace {

Node* nodeNamed(const Graph& graph, const std::string& name) {
  for (Node* node : graph.nodes) {
    if (node->name == name) return node;
  }
  throw std::runtime_error("the graph has no node " + name);
}

/// Writes into every parameter what the pass sees of it, before it asked and afterwards.
MXReturnValue look(Graph* graph, const OptionValues& options) {
  for (Node* node : graph->nodes) {
    if (node->op != "null") continue;
    if (node->tensor == nullptr) {
      node->attrs["__seen__"] = node->readTensor() == nullptr ? "nothing" : "something";
      continue;
    }
    std::string seen = node->tensor->data_ptr == nullptr ? "asked" : "given";
    seen += isParameter(node) ? " parameter" : " value";
    if (options.boolean("read")) {
      const MXTensor* tensor = node->readTensor();
      const auto place = reinterpret_cast<uintptr_t>(tensor->data_ptr);
      seen += place % 4 == 0 ? " aligned" : " unaligned";
      if (tensor->dltensor.data != tensor->data_ptr) seen += " elsewhere";
      if (tensor->dtype == kFloat32 && tensor->size() != 0) {
        seen += " " + std::to_string(tensor->data<float>()[tensor->size() - 1]);
      }
      if (node->readTensor() != tensor) seen += " twice";
    }
    node->attrs["__seen__"] = seen;
  }
  return MX_SUCCESS;
}

/// Multiplies a weight by the host, or says why that is not possible.
MXReturnValue scale(Graph* graph, const OptionValues& options) {
  Node* node = nodeNamed(*graph, options.text("weight"));
  Node* target = options.text("into").empty() ? node : nodeNamed(*graph, options.text("into"));
  const std::vector<double> factors = options.reals("factors");
  const MXTensor source = options.boolean("read") ? *node->readTensor() : *node->tensor;
  const int found = runningPass()->_scale(source, factors, nullptr);
  if (found == PassResource::kFinite && scaleParameter(target, source, factors)) {
    const bool like =
        target->tensor->shape == source.shape && target->tensor->dtype == source.dtype;
    target->attrs["__found__"] = like ? "scaled" : "scaled to another form";
  } else {
    target->attrs["__found__"] = found == PassResource::kNotFinite ? "not finite" : "not on demand";
  }
  return MX_SUCCESS;
}

REGISTER_PASS(onDemandLook)
    .setBody(look)
    .option("read", true, "Whether to ask for the elements.")
    .weightsOnDemand()
    .needsShapes(false);
REGISTER_PASS(onDemandScale)
    .setBody(scale)
    .option("weight", "w", "The weight to scale.")
    .option("into", "", "The weight that becomes the result; by default the same one.")
    .option("factors", {2.0}, "One for each run of elements.")
    .option("read", false, "Whether to ask for the elements first.")
    .weightsOnDemand()
    .needsShapes(false);

}  // namespace

MXReturnValue initialize(int) { return MX_SUCCESS; }
