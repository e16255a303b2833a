// A pass that joins named pipelines; with UNKNOWN, one that is not there.

#include "lib_api.h"

namespace {

using namespace mxnet::ext;  // NOLINT: as in MXNet's examples

#ifdef UNKNOWN
const char* const kPipeline = "tidy";
#else
const char* const kPipeline = "simplify";
#endif

MXReturnValue dropSigmoid(Graph* graph, const OptionValues& options) {
  if (options.integer("level") != 2) return MX_FAIL;
  for (Node* node : graph->sorted()) {
    if (node->op == "sigmoid") graph->replace(NodeEntry(node, 0), node->inputs[0]);
  }
  return MX_SUCCESS;
}

REGISTER_PASS(dropSigmoidInC)
    .setBody(dropSigmoid)
    .option("level", 1, "How far it goes.", 1, 3)
    .option("more", false, "Whether it goes on.")
    .needsWeights(false)
    .needsShapes(false)
    .exact()
    .triggers({"sigmoid"})
    .cost("weights")
    .joins(kPipeline, "removeNoOps")
    .joins("clean", "removeNoOps")
    .inPipelines("level", 2)
    .whenRounding("more", true);

}  // namespace

MXReturnValue initialize(int /*version*/) { return MX_SUCCESS; }
