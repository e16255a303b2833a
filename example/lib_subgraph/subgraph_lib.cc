// Two partitioners, the operator that runs their subgraphs, and a pass that adds an input to it.
// All of them support elementwise operators on float32 tensors of equal shape.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>

#include "lib_api.h"

using namespace mxnet::ext;

namespace {

typedef std::unordered_map<std::string, std::string> Options;

const char kSubgraphOperator[] = "_custom_subgraph_op";

std::string attributeOf(const Node& node, const char* key) {
  const auto found = node.attrs.find(key);
  return found == node.attrs.end() ? std::string() : found->second;
}

struct Kernel {
  std::size_t num_inputs;
  float (*compute)(float, float);
};

float exponential(float x, float) { return std::exp(x); }
float logarithm(float x, float) { return std::log(x); }
float rectified(float x, float) { return x > 0 ? x : 0; }

// By MXNet's names, and by ONNX's.
const Kernel* findKernel(const Node& node) {
  static const std::map<std::string, Kernel> kernels = {
      {"exp", {1, exponential}},
      {"Exp", {1, exponential}},
      {"log", {1, logarithm}},
      {"Log", {1, logarithm}},
      {"relu", {1, rectified}},
      {"Relu", {1, rectified}},
      {"elemwise_add", {2, [](float x, float y) { return x + y; }}},
      {"elemwise_mul", {2, [](float x, float y) { return x * y; }}},
  };
  const auto found =
      kernels.find(node.op == "Activation" ? attributeOf(node, "act_type") : node.op);
  return found == kernels.end() ? nullptr : &found->second;
}

bool isSupported(const Node& node) {
  if (findKernel(node) == nullptr) return false;
  // Types are known if the caller gave arrays or shapes. Otherwise the operator checks them.
  const std::string types = attributeOf(node, MX_STR_DTYPE);
  return types.empty() || getDtypeAt(types, 0) == std::to_string(int(kFloat32));
}

// ---- the operator ------------------------------------------------------------------------------

class SubgraphOperator : public CustomStatefulOp {
 public:
  SubgraphOperator(Graph* subgraph, bool verbose)
      : graph_(subgraph), order_(subgraph->sorted()), verbose_(verbose) {}

  MXReturnValue Forward(std::vector<MXTensor>* inputs, std::vector<MXTensor>* outputs,
                        const OpResource&) override {
    // Inputs beyond those of the subgraph come from passes (see addInput) and are not used.
    if (inputs->size() < graph_->inputs.size()) {
      MX_ERROR_MSG << "the subgraph has " << graph_->inputs.size() << " inputs, not "
                   << inputs->size();
      return MX_FAIL;
    }
    std::unordered_map<const Node*, std::vector<float>> values;
    for (std::size_t i = 0; i < graph_->inputs.size(); ++i) {
      const MXTensor& tensor = inputs->at(i);
      if (tensor.dtype != kFloat32) {
        MX_ERROR_MSG << "input " << i << " has dtype " << tensor.dtype << ", not float32";
        return MX_FAIL;
      }
      const float* data = tensor.data<float>();
      values[graph_->inputs[i]].assign(data, data + tensor.size());
    }
    for (const Node* node : order_) {
      if (node->op == "null") continue;
      const Kernel* kernel = findKernel(*node);
      if (kernel == nullptr || node->inputs.size() != kernel->num_inputs) {
        MX_ERROR_MSG << "cannot compute node '" << node->name << "' (" << node->op << ")";
        return MX_FAIL;
      }
      if (verbose_) std::cout << kSubgraphOperator << ": " << node->name << std::endl;
      const std::vector<float>& x = values.at(node->inputs.front().node);
      const std::vector<float>& y = values.at(node->inputs.back().node);
      if (x.size() != y.size()) {
        MX_ERROR_MSG << "inputs of node '" << node->name << "' have different shapes";
        return MX_FAIL;
      }
      std::vector<float> result(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) result[i] = kernel->compute(x[i], y[i]);
      values[node] = std::move(result);
    }
    for (std::size_t i = 0; i < outputs->size(); ++i) {
      const std::vector<float>& value = values.at(graph_->outputs.at(i).node);
      std::copy(value.begin(), value.end(), outputs->at(i).data<float>());
    }
    return MX_SUCCESS;
  }

 private:
  std::unique_ptr<Graph> graph_;
  std::vector<Node*> order_;
  bool verbose_;
};

MXReturnValue createState(const Options& attributes, const MXContext&,
                          const std::vector<std::vector<unsigned int>>&, const std::vector<int>,
                          CustomStatefulOp** state) {
  const auto text = attributes.find(MX_STR_SUBGRAPH_SYM_JSON);
  if (text == attributes.end()) {
    MX_ERROR_MSG << kSubgraphOperator << " runs a subgraph, and was given none";
    return MX_FAIL;
  }
  const bool verbose = attributes.count("verbose") != 0 && attributes.at("verbose") == "True";
  *state = CustomStatefulOp::create<SubgraphOperator>(Graph::fromString(text->second), verbose);
  return MX_SUCCESS;
}

// ---- partitioning by a list --------------------------------------------------------------------

MXReturnValue supportedOps(const Graph* graph, std::vector<int>* ids, const Options&) {
  for (std::size_t i = 0; i < graph->size(); ++i) {
    if (isSupported(*graph->getNode(i))) (*ids)[i] = -1;  // in any subgraph
  }
  return MX_SUCCESS;
}

bool isOn(const Options& options, const char* key) {
  const auto found = options.find(key);
  return found != options.end() && found->second == "True";
}

MXReturnValue reviewSubgraph(const Graph* subgraph, int subgraph_id, bool* accept,
                             const Options& options, Options* attributes) {
  std::cout << "subgraph " << subgraph_id << ":";
  for (const Node* node : subgraph->nodes) {
    if (node->op == "null") continue;
    std::cout << " " << node->name;
  }
  for (const Node* input : subgraph->inputs) {
    if (input->tensor == nullptr) continue;
    std::cout << "; " << attributeOf(*input, "argName") << " has " << input->tensor->size()
              << " elements";
  }
  *accept = !isOn(options, "reject");
  std::cout << (*accept ? ", accepted" : ", rejected") << std::endl;
  if (isOn(options, "verbose")) (*attributes)["verbose"] = "True";
  return MX_SUCCESS;
}

// ---- partitioning node by node -----------------------------------------------------------------

// Cuts out chains: each node has one consumer, the next.
class ChainSelector : public CustomOpSelector {
 public:
  ChainSelector(const Graph* graph, std::size_t min_length)
      : graph_(graph), min_length_(min_length) {}

  bool Select(int nodeID) override { return isSupported(at(nodeID)); }
  bool SelectInput(int, int input_nodeID) override {
    return isSupported(at(input_nodeID)) && at(input_nodeID).outputs.size() == 1;
  }
  bool SelectOutput(int nodeID, int output_nodeID) override {
    return isSupported(at(output_nodeID)) && at(nodeID).outputs.size() == 1;
  }
  void Filter(const std::vector<int>& candidates, std::vector<int>* keep) override {
    if (candidates.size() >= min_length_) *keep = candidates;
  }

 private:
  const Node& at(int nodeID) const { return *graph_->getNode(static_cast<std::size_t>(nodeID)); }

  const Graph* graph_;
  std::size_t min_length_;
};

MXReturnValue createSelector(const Graph* graph, CustomOpSelector** selector,
                             const Options& options) {
  const auto found = options.find("min_length");
  const unsigned long length = found == options.end() ? 2 : std::stoul(found->second);
  *selector = new ChainSelector(graph, length);
  return MX_SUCCESS;
}

// ---- a pass after the partitioner --------------------------------------------------------------

MXReturnValue addInput(Graph* graph, const Options&) {
  const std::vector<Node*> nodes = graph->nodes;  // the graph grows meanwhile
  for (Node* node : nodes) {
    if (node->op != kSubgraphOperator) continue;
    Node* input = graph->addNode(node->name + "_extra_input", "null");
    graph->inputs.push_back(input);
    graph->connect(input, 0, node, static_cast<int>(node->inputs.size()));
    // The number of inputs beyond those of the subgraph.
    const std::string extra = attributeOf(*node, MX_STR_EXTRA_INPUTS);
    node->attrs[MX_STR_EXTRA_INPUTS] = std::to_string(extra.empty() ? 1 : std::stoi(extra) + 1);
    MXTensor* tensor = input->alloc_arg({1}, MXContext::CPU(0), kFloat32);
    tensor->data<float>()[0] = 0;
  }
  return MX_SUCCESS;
}

}  // namespace

REGISTER_OP(_custom_subgraph_op).setIsSubgraphOp().setCreateOpState(createState, "cpu");

REGISTER_PARTITIONER(myProp)
    .addStrategy("elementwise", "_custom_subgraph_op")
    .setSupportedOps("elementwise", supportedOps)
    .setReviewSubgraph("elementwise", reviewSubgraph);

REGISTER_PARTITIONER(mySelect)
    .addStrategy("chains", "_custom_subgraph_op")
    .setCreateSelector("chains", createSelector)
    .setReviewSubgraph("chains", reviewSubgraph);

REGISTER_PASS(addInputPass).setBody(addInput);

MXReturnValue initialize(int version) {
  if (version >= 10700) return MX_SUCCESS;
  MX_ERROR_MSG << "this library needs MXNet 1.7 or later, or passlib; not version " << version;
  return MX_FAIL;
}
