// A partitioner that cuts out the operators of ONNX that an option names, and an operator that runs
// subgraphs of Relu, and of Concat along the first axis. A pass that gives nodes an operator of its
// own.
#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib_api.h"

using namespace mxnet::ext;

namespace {

typedef std::unordered_map<std::string, std::string> Options;

class Runner : public CustomStatefulOp {
 public:
  explicit Runner(Graph* graph) : graph_(graph), order_(graph->sorted()) {}

  MXReturnValue Forward(std::vector<MXTensor>* inputs, std::vector<MXTensor>* outputs,
                        const OpResource&) override {
    std::unordered_map<const Node*, std::vector<float>> values;
    for (std::size_t i = 0; i < graph_->inputs.size(); ++i) {
      const MXTensor& tensor = inputs->at(i);
      const float* data = tensor.data<float>();
      values[graph_->inputs[i]].assign(data, data + tensor.size());
    }
    for (const Node* node : order_) {
      if (node->op == "null") continue;
      std::vector<float> made;
      for (const NodeEntry& input : node->inputs) {
        const std::vector<float>& value = values.at(input.node);
        made.insert(made.end(), value.begin(), value.end());
      }
      if (node->op == "Relu") {
        for (float& each : made) each = std::max(each, 0.0F);
      } else if (node->op != "Concat") {
        MX_ERROR_MSG << "there is no kernel of " << node->op;
        return MX_FAIL;
      }
      values[node] = made;
    }
    for (std::size_t i = 0; i < outputs->size(); ++i) {
      const std::vector<float>& value = values.at(graph_->outputs.at(i).node);
      if (static_cast<int64_t>(value.size()) != outputs->at(i).size()) {
        MX_ERROR_MSG << "output " << i << " has another size";
        return MX_FAIL;
      }
      std::copy(value.begin(), value.end(), outputs->at(i).data<float>());
    }
    return MX_SUCCESS;
  }

 private:
  std::unique_ptr<Graph> graph_;
  std::vector<Node*> order_;
};

MXReturnValue createState(const Options& attributes, const MXContext&,
                          const std::vector<std::vector<unsigned int>>&, const std::vector<int>,
                          CustomStatefulOp** state) {
  *state =
      CustomStatefulOp::create<Runner>(Graph::fromString(attributes.at(MX_STR_SUBGRAPH_SYM_JSON)));
  return MX_SUCCESS;
}

MXReturnValue supportedOps(const Graph* graph, std::vector<int>* ids, const Options& options) {
  const std::string wanted = "," + options.at("ops") + ",";
  for (std::size_t i = 0; i < graph->size(); ++i) {
    if (wanted.find("," + graph->getNode(i)->op + ",") != std::string::npos) (*ids)[i] = -1;
  }
  return MX_SUCCESS;
}

MXReturnValue oneToOne(const Options&, int* inputs, int* outputs) {
  *inputs = *outputs = 1;
  return MX_SUCCESS;
}

MXReturnValue sameType(const Options&, std::vector<int>* in, std::vector<int>* out) {
  out->at(0) = in->at(0);
  return MX_SUCCESS;
}

MXReturnValue sameShape(const Options&, std::vector<std::vector<unsigned int>>* in,
                        std::vector<std::vector<unsigned int>>* out) {
  out->at(0) = in->at(0);
  return MX_SUCCESS;
}

MXReturnValue doubled(const Options&, std::vector<MXTensor>* inputs, std::vector<MXTensor>* outputs,
                      const OpResource&) {
  const float* x = inputs->at(0).data<float>();
  for (int64_t i = 0; i < inputs->at(0).size(); ++i) outputs->at(0).data<float>()[i] = 2 * x[i];
  return MX_SUCCESS;
}

MXReturnValue useDoubled(Graph* graph, const Options& options) {
  graph->forEachNode([&](Graph*, Node* node) {
    if (node->op != options.at("of")) return;
    node->op = "doubled";
    node->attrs["note"] = "\"a\"";
  });
  return MX_SUCCESS;
}

}  // namespace

REGISTER_OP(doubled)
    .setForward(doubled, "cpu")
    .setParseAttrs(oneToOne)
    .setInferType(sameType)
    .setInferShape(sameShape);

REGISTER_PASS(useDoubled).setBody(useDoubled);

REGISTER_OP(_cut_out).setIsSubgraphOp().setCreateOpState(createState, "cpu");

REGISTER_PARTITIONER(cutOut).addStrategy("only", "_cut_out").setSupportedOps("only", supportedOps);

MXReturnValue initialize(int) { return MX_SUCCESS; }
