// A pass that reads attributes of all operators and changes some, as the smallest useful ones do.
#include "lib_api.h"

using mxnet::ext::Node;

mxnet::ext::MXReturnValue kernels(mxnet::ext::Graph* graph,
                                  const std::unordered_map<std::string, std::string>&) {
  for (std::size_t i = 0; i < graph->size(); ++i) {
    Node* const node = graph->getNode(i);
    if (node->op == "null") continue;
    const auto kernel = node->attrs.find("kernel");
    if (kernel == node->attrs.end()) continue;
    node->attrs["window"] = kernel->second == "(1, 1)" ? "point" : "area";
  }
  return mxnet::ext::MX_SUCCESS;
}

REGISTER_PASS(kernels).setBody(kernels);

mxnet::ext::MXReturnValue initialize(int) { return mxnet::ext::MX_SUCCESS; }
