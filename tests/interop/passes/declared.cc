// A pass that declares itself with passlib's header, and reads its options by their types.
#include "mxnet/lib_api.h"

using mxnet::ext::AttributeError;
using mxnet::ext::Graph;
using mxnet::ext::MX_SUCCESS;
using mxnet::ext::MXReturnValue;
using mxnet::ext::Node;
using mxnet::ext::NodeEntry;
using mxnet::ext::OptionValues;

/// Writes the options, and what the header's helpers know, into the nodes of one operator.
static MXReturnValue declared(Graph* graph, const OptionValues& options) {
  for (Node* node : graph->nodes) {
    if (node->op != options.text("op")) continue;
    std::string note = options.boolean("users") ? "users " : "";
    if (options.boolean("users")) {
      note += std::to_string(mxnet::ext::users(NodeEntry(node, 0)).size()) + " ";
    }
    for (int64_t extent : mxnet::ext::intsAttr(node, "kernel", options.integers("kernel"))) {
      note += std::to_string(extent) + "x";
    }
    node->attrs["__note__"] = note + std::to_string(options.integer("level"));
  }
  return MX_SUCCESS;
}

REGISTER_PASS(interop_declared)
    .setBody(declared)
    .describe("Writes notes.")
    .dialects({"mxnet"})
    .option("op", "Convolution", "The operator.")
    .option("users", false, "Whether to count users.")
    .option("kernel", {0, 0}, "The kernel of operators without one.")
    .option("level", 1, "A number.", 1, 3)
    .needsWeights(false)
    .needsShapes(false);
