// Passes over networks of DLPrimitives, written as an author would write them.
#include "lib_api.h"

using namespace mxnet::ext;

typedef std::unordered_map<std::string, std::string> Options;

namespace {

MXTensor* allocate(Node* node, const MXTensor& like, bool aux = false) {
  MXTensor* made = aux ? node->alloc_aux(like.shape, like.ctx, like.dtype)
                       : node->alloc_arg(like.shape, like.ctx, like.dtype);
  return made;
}

/// Folds the BatchNorm into the convolution in front of it, which gets a bias if it has none.
void fold(Graph* graph, Node* convolution, Node* norm, double eps) {
  MXTensor* weight = convolution->inputs[1].node->tensor;
  const int64_t channels = weight->shape[0];
  const int64_t inner = weight->size() / channels;
  const bool biased = convolution->inputs.size() > 2;
  Node* folded = graph->addNode(norm->name + "_weight", "null");
  Node* bias = graph->addNode(norm->name + "_bias", "null");
  float* scaled = allocate(folded, *weight)->data<float>();
  MXTensor* mean = norm->inputs[1].node->tensor;
  float* shift = allocate(bias, *mean)->data<float>();
  for (int64_t c = 0; c < channels; ++c) {
    const double scale = norm->inputs[3].node->tensor->data<float>()[c] /
                         std::sqrt(norm->inputs[2].node->tensor->data<float>()[c] + eps);
    for (int64_t i = 0; i < inner; ++i) {
      scaled[c * inner + i] = static_cast<float>(weight->data<float>()[c * inner + i] * scale);
    }
    const double old = biased ? convolution->inputs[2].node->tensor->data<float>()[c] : 0.0;
    shift[c] = static_cast<float>((old - mean->data<float>()[c]) * scale +
                                  norm->inputs[4].node->tensor->data<float>()[c]);
  }
  graph->connect(folded, 0, convolution, 1);
  graph->connect(bias, 0, convolution, 2);
  convolution->attrs["bias"] = "true";
  graph->replace(NodeEntry(norm, 0), NodeEntry(convolution, 0));
}

}  // namespace

/// Removes nodes that nothing uses.
MXReturnValue dlprimSweep(Graph* graph, const Options&) {
  for (;;) {
    std::unordered_set<Node*> heads;
    for (const NodeEntry& head : graph->outputs) heads.insert(head.node);
    std::vector<Node*> dead;
    for (Node* node : graph->nodes) {
      if (node->outputs.empty() && heads.count(node) == 0) dead.push_back(node);
    }
    if (dead.empty()) return MX_SUCCESS;
    graph->removeNodes(dead);
  }
}
REGISTER_PASS(dlprimSweep).setBody(dlprimSweep);

/// Folds each BatchNorm into the Convolution2D that feeds nothing else.
MXReturnValue dlprimFold(Graph* graph, const Options& options) {
  std::vector<Node*> unwanted;
  const std::vector<Node*> nodes = graph->nodes;
  for (Node* node : nodes) {
    if (node->op != "BatchNorm" || node->inputs.size() != 5) continue;
    Node* producer = node->inputs[0].node;
    if (producer->op != "Convolution2D" || producer->outputs.size() != 1) continue;
    if (producer->attrs.count("activation") != 0) continue;
    const auto eps = node->attrs.find("eps");
    fold(graph, producer, node, eps == node->attrs.end() ? 1e-5 : std::stod(eps->second));
    unwanted.push_back(node);
  }
  graph->removeNodes(unwanted);
  return dlprimSweep(graph, options);
}
REGISTER_PASS(dlprimFold).setBody(dlprimFold);

/// Inserts an operator `op`, with the option `key` = `value`, after each output.
MXReturnValue dlprimAppend(Graph* graph, const Options& options) {
  const std::vector<NodeEntry> heads = graph->outputs;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    Node* node = graph->addNode("appended" + std::to_string(i), options.at("op"));
    if (options.count("key") != 0) node->attrs[options.at("key")] = options.at("value");
    graph->connect(heads[i].node, heads[i].entry, node, 0);
    graph->outputs[i] = NodeEntry(node, 0);
  }
  return MX_SUCCESS;
}
REGISTER_PASS(dlprimAppend).setBody(dlprimAppend);

/// Adds to the input of each operator `op` a constant that the pass makes.
MXReturnValue dlprimShift(Graph* graph, const Options& options) {
  const std::vector<Node*> nodes = graph->nodes;
  for (Node* node : nodes) {
    if (node->op != options.at("op")) continue;
    Node* constant = graph->addNode(node->name + "_shift", "null");
    constant->alloc_arg({1}, MXContext::CPU(0), kFloat32)->data<float>()[0] = 1.5f;
    Node* sum = graph->addNode(node->name + "_sum", "Elementwise");
    graph->connect(node->inputs[0].node, node->inputs[0].entry, sum, 0);
    graph->connect(constant, 0, sum, 1);
    graph->connect(sum, 0, node, 0);
  }
  return MX_SUCCESS;
}
REGISTER_PASS(dlprimShift).setBody(dlprimShift);

/// Merges operators of equal type, options and inputs.
MXReturnValue dlprimMerge(Graph* graph, const Options&) {
  std::map<std::string, Node*> known;
  std::vector<Node*> unwanted;
  const std::vector<Node*> nodes = graph->nodes;
  for (Node* node : nodes) {
    if (node->op == "null") continue;
    std::map<std::string, std::string> attrs;
    for (const auto& attribute : node->attrs) {
      if (attribute.first.compare(0, 2, "__") != 0) attrs.insert(attribute);
    }
    std::ostringstream key;
    key << node->op;
    for (const auto& attribute : attrs) key << '\n' << attribute.first << '=' << attribute.second;
    for (const NodeEntry& input : node->inputs) key << '\n' << input.node;
    Node*& first = known[key.str()];
    if (first == nullptr) {
      first = node;
      continue;
    }
    graph->replace(NodeEntry(node, 0), NodeEntry(first, 0));
    unwanted.push_back(node);
  }
  graph->removeNodes(unwanted);
  return MX_SUCCESS;
}
REGISTER_PASS(dlprimMerge).setBody(dlprimMerge);

/// Sets the attribute `key` of the node `name` to `value`, or removes it if there is none.
MXReturnValue dlprimSet(Graph* graph, const Options& options) {
  for (Node* node : graph->nodes) {
    if (node->name != options.at("name")) continue;
    if (options.count("value") != 0) {
      node->attrs[options.at("key")] = options.at("value");
    } else {
      node->attrs.erase(options.at("key"));
    }
  }
  return MX_SUCCESS;
}
REGISTER_PASS(dlprimSet).setBody(dlprimSet);

MXReturnValue initialize(int) { return MX_SUCCESS; }
