/*
 * One fusion twice: FullyConnected without a bias, and the sum behind it, become FullyConnected
 * with a bias. By hand, and by a pattern.
 */
#include "lib_patterns.h"

using namespace mxnet::ext;

namespace {

bool isTrue(const Node& node, const char* key) {
  const auto found = node.attrs.find(key);
  return found != node.attrs.end() && (found->second == "True" || found->second == "1");
}

bool isVector(const Node& node) {
  return node.op == "null" && node.tensor != nullptr && node.tensor->shape.size() == 1;
}

/// The layer that a sum adds a bias to, and the number of the input that is the bias; or null.
Node* layerBefore(const Graph& graph, const Node& sum, int* bias) {
  if (sum.op != "broadcast_add" || sum.inputs.size() != 2) return nullptr;
  for (*bias = 0; *bias < 2; ++*bias) {
    Node* layer = sum.inputs[static_cast<std::size_t>(1 - *bias)].node;
    if (layer->op != "FullyConnected" || !isTrue(*layer, "no_bias")) continue;
    if (!isVector(*sum.inputs[static_cast<std::size_t>(*bias)].node)) continue;
    if (layer->inputs.size() != 2 || layer->inputs[1].node->tensor == nullptr) continue;
    if (layer->outputs.size() != 1 || !layer->control_deps.empty()) continue;
    const auto is_layer = [layer](const NodeEntry& head) { return head.node == layer; };
    if (std::none_of(graph.outputs.begin(), graph.outputs.end(), is_layer)) return layer;
  }
  return nullptr;
}

MXReturnValue fuseBiasByHand(Graph* graph, const options_map_t&) {
  std::vector<Node*> unwanted;
  for (Node* sum : graph->sorted()) {
    int bias = 0;
    Node* layer = layerBefore(*graph, *sum, &bias);
    if (layer == nullptr || !sum->control_deps.empty()) continue;
    Node* made = graph->addNode(sum->name, "FullyConnected");
    made->attrs = layer->attrs;
    made->attrs["no_bias"] = "False";
    const NodeEntry inputs[] = {layer->inputs[0], layer->inputs[1],
                                sum->inputs[static_cast<std::size_t>(bias)]};
    for (int i = 0; i < 3; ++i) graph->connect(inputs[i].node, inputs[i].entry, made, i);
    graph->replace(NodeEntry(sum, 0), NodeEntry(made, 0));
    unwanted.push_back(sum);
    unwanted.push_back(layer);
  }
  graph->removeNodes(unwanted);
  return MX_SUCCESS;
}

REGISTER_PASS(fuseBiasByHand).setBody(fuseBiasByHand);

}  // namespace

PATTERN_PASS(fuseBias, "A sum behind FullyConnected becomes its bias", "mxnet") {
  Pattern p(
      "c = FullyConnected[no_bias=True](x, w:param)\n"
      "y = broadcast_add(c, b:param[rank=1])");
  p.replace("y = FullyConnected[*c, no_bias=False](x, w, b)");
}

MXReturnValue initialize(int) { return MX_SUCCESS; }
