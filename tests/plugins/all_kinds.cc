// A pass, a partitioner and operators in one library, whose names end with NUMBER: compiled several
// times for tests that need several libraries. Every function says that it runs.
#include <cmath>

#include "lib_api.h"

using namespace mxnet::ext;

#define NAME_(base, number) base##number
#define NAME(base, number) NAME_(base, number)

namespace {

void say(const char* what) { std::cout << what << NUMBER << std::endl; }

// A pass that renames operators and counts how often it ran, in a variable of the library.
MXReturnValue count(Graph* graph, const options_map_t&) {
  say("pass");
  static int runs = 0;
  ++runs;
  for (Node* node : graph->nodes) {
    if (node->op != "null") node->attrs["runs"] = std::to_string(runs);
  }
  return MX_SUCCESS;
}

MXReturnValue parse(const options_map_t&, int* num_inputs, int* num_outputs) {
  say("parse");
  *num_inputs = 1;
  *num_outputs = 1;
  return MX_SUCCESS;
}

MXReturnValue inferType(const options_map_t&, std::vector<int>* in, std::vector<int>* out) {
  say("type");
  out->at(0) = in->at(0);
  return MX_SUCCESS;
}

MXReturnValue inferShape(const options_map_t&, std::vector<std::vector<unsigned int>>* in,
                         std::vector<std::vector<unsigned int>>* out) {
  say("shape");
  out->at(0) = in->at(0);
  return MX_SUCCESS;
}

void addNumber(const MXTensor& in, MXTensor* out, float number) {
  for (int64_t i = 0; i < in.size(); ++i) {
    out->data<float>()[i] = in.data<float>()[i] + number;
  }
}

MXReturnValue forward(const options_map_t&, std::vector<MXTensor>* in, std::vector<MXTensor>* out,
                      const OpResource&) {
  say("forward");
  addNumber(in->at(0), &out->at(0), NUMBER);
  return MX_SUCCESS;
}

/// Adds the number of its call. As an operator for subgraphs it takes exp of its input.
class Counter : public CustomStatefulOp {
 public:
  explicit Counter(bool is_subgraph) : is_subgraph_(is_subgraph) { say("create"); }
  ~Counter() override { say("destroy"); }
  MXReturnValue Forward(std::vector<MXTensor>* in, std::vector<MXTensor>* out,
                        const OpResource&) override {
    say("compute");
    ++calls_;
    if (!is_subgraph_) {
      addNumber(in->at(0), &out->at(0), static_cast<float>(calls_));
      return MX_SUCCESS;
    }
    for (int64_t i = 0; i < in->at(0).size(); ++i) {
      out->at(0).data<float>()[i] = std::exp(in->at(0).data<float>()[i]);
    }
    return MX_SUCCESS;
  }

 private:
  bool is_subgraph_;
  int calls_ = 0;
};

MXReturnValue create(const options_map_t& attributes, const MXContext&,
                     const std::vector<std::vector<unsigned int>>&, const std::vector<int>,
                     CustomStatefulOp** state) {
  *state = CustomStatefulOp::create<Counter>(attributes.count(MX_STR_SUBGRAPH_SYM_JSON) != 0);
  return MX_SUCCESS;
}

MXReturnValue supportExp(const Graph* graph, std::vector<int>* ids, const options_map_t&) {
  say("support");
  for (std::size_t i = 0; i < graph->size(); ++i) {
    if (graph->getNode(i)->op == "exp") ids->at(i) = static_cast<int>(i);
  }
  return MX_SUCCESS;
}

}  // namespace

#define REGISTER_ALL(number)                                                            \
  REGISTER_PASS(NAME(countRuns, number)).setBody(count);                                \
  REGISTER_OP(NAME(add_number, number))                                                 \
      .setForward(forward, "cpu")                                                       \
      .setParseAttrs(parse)                                                             \
      .setInferType(inferType)                                                          \
      .setInferShape(inferShape);                                                       \
  REGISTER_OP(NAME(add_calls, number))                                                  \
      .setCreateOpState(create, "cpu")                                                  \
      .setParseAttrs(parse)                                                             \
      .setInferType(inferType)                                                          \
      .setInferShape(inferShape);                                                       \
  REGISTER_OP(NAME(run_exp, number)).setIsSubgraphOp().setCreateOpState(create, "cpu"); \
  REGISTER_PARTITIONER(NAME(expTo, number))                                             \
      .addStrategy("exp", MX_TOSTRING(NAME(run_exp, number)))                           \
      .setSupportedOps("exp", supportExp)

REGISTER_ALL(NUMBER);

MXReturnValue initialize(int) {
  say("initialize");
  return MX_SUCCESS;
}
