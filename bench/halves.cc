// A partitioner that takes every second operator of the benchmark's chain.
#include "lib_api.h"

using namespace mxnet::ext;

using Attributes = std::unordered_map<std::string, std::string>;

namespace {

MXReturnValue supported(const Graph* graph, std::vector<int>* ids, const Attributes&) {
  for (std::size_t i = 0; i < ids->size(); ++i) {
    if (graph->getNode(i)->op == "Activation") (*ids)[i] = -1;
  }
  return MX_SUCCESS;
}

class Nothing : public CustomStatefulOp {
 public:
  MXReturnValue Forward(std::vector<MXTensor>*, std::vector<MXTensor>*,
                        const OpResource&) override {
    return MX_FAIL;
  }
};

MXReturnValue createState(const Attributes&, const MXContext&,
                          const std::vector<std::vector<unsigned int>>&, const std::vector<int>,
                          CustomStatefulOp** state) {
  *state = CustomStatefulOp::create<Nothing>();
  return MX_SUCCESS;
}

}  // namespace

REGISTER_OP(_half).setIsSubgraphOp().setCreateOpState(createState, "cpu");

REGISTER_PARTITIONER(halves).addStrategy("halves", "_half").setSupportedOps("halves", supported);

MXReturnValue initialize(int) { return MX_SUCCESS; }
