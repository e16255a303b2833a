// Operators for graphs that mix them with built-in ones: all ways in which a node can need its
// library, each with arithmetic that a test can check by hand. Written with MXNet's names alone.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "mxnet/lib_api.h"

using namespace mxnet::ext;

using Attributes = std::unordered_map<std::string, std::string>;
using Shapes = std::vector<std::vector<unsigned int>>;

namespace {

float number(const Attributes& attributes, const std::string& key, float otherwise) {
  auto found = attributes.find(key);
  return found == attributes.end() ? otherwise : std::strtof(found->second.c_str(), nullptr);
}

template <int inputs, int outputs>
MXReturnValue arity(const Attributes&, int* num_inputs, int* num_outputs) {
  *num_inputs = inputs;
  *num_outputs = outputs;
  return MX_SUCCESS;
}

// All inputs and outputs have the type of whichever is known.
MXReturnValue sameTypes(const Attributes&, std::vector<int>* in, std::vector<int>* out) {
  int known = -1;
  for (int type : *in) known = type >= 0 ? type : known;
  for (int& type : *in) type = known;
  for (int& type : *out) type = known;
  return MX_SUCCESS;
}

// All inputs and outputs have the shape of the first known one.
MXReturnValue sameShapes(const Attributes&, Shapes* in, Shapes* out) {
  std::vector<unsigned int> known;
  for (const auto& shape : *in) {
    if (known.empty()) known = shape;
  }
  for (auto& shape : *in) {
    if (shape.empty()) shape = known;
    if (shape != known) {
      MX_ERROR_MSG << "the inputs have different shapes";
      return MX_FAIL;
    }
  }
  for (auto& shape : *out) shape = known;
  return MX_SUCCESS;
}

}  // namespace

// y = factor * x
MXReturnValue scaleForward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                           std::vector<MXTensor>* outputs, const OpResource&) {
  const float factor = number(attributes, "factor", 2);
  const float* x = (*inputs)[0].data<float>();
  float* y = (*outputs)[0].data<float>();
  for (int64_t i = 0; i < (*inputs)[0].size(); i++) y[i] = factor * x[i];
  return MX_SUCCESS;
}

MXReturnValue scaleBackward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                            std::vector<MXTensor>* outputs, const OpResource& resource) {
  return scaleForward(attributes, inputs, outputs, resource);
}

REGISTER_OP(tp_scale)
    .setForward(scaleForward, "cpu")
    .setBackward(scaleBackward, "cpu")
    .setParseAttrs(arity<1, 1>)
    .setInferType(sameTypes)
    .setInferShape(sameShapes);

// y = a * b
MXReturnValue productForward(const Attributes&, std::vector<MXTensor>* inputs,
                             std::vector<MXTensor>* outputs, const OpResource&) {
  const float* a = (*inputs)[0].data<float>();
  const float* b = (*inputs)[1].data<float>();
  float* y = (*outputs)[0].data<float>();
  for (int64_t i = 0; i < (*outputs)[0].size(); i++) y[i] = a[i] * b[i];
  return MX_SUCCESS;
}

// Given the gradient of y, then a, b and y.
MXReturnValue productBackward(const Attributes&, std::vector<MXTensor>* inputs,
                              std::vector<MXTensor>* outputs, const OpResource&) {
  const float* gradient = (*inputs)[0].data<float>();
  const float* a = (*inputs)[1].data<float>();
  const float* b = (*inputs)[2].data<float>();
  for (int64_t i = 0; i < (*inputs)[0].size(); i++) {
    (*outputs)[0].data<float>()[i] = gradient[i] * b[i];
    (*outputs)[1].data<float>()[i] = gradient[i] * a[i];
  }
  return MX_SUCCESS;
}

REGISTER_OP(tp_product)
    .setForward(productForward, "cpu")
    .setBackward(productBackward, "cpu")
    .setParseAttrs(arity<2, 1>)
    .setInferType(sameTypes)
    .setInferShape(sameShapes);

// Two outputs: max(x, 0) and min(x, 0).
MXReturnValue halvesForward(const Attributes&, std::vector<MXTensor>* inputs,
                            std::vector<MXTensor>* outputs, const OpResource&) {
  const float* x = (*inputs)[0].data<float>();
  for (int64_t i = 0; i < (*inputs)[0].size(); i++) {
    (*outputs)[0].data<float>()[i] = x[i] > 0 ? x[i] : 0;
    (*outputs)[1].data<float>()[i] = x[i] > 0 ? 0 : x[i];
  }
  return MX_SUCCESS;
}

MXReturnValue halvesBackward(const Attributes&, std::vector<MXTensor>* inputs,
                             std::vector<MXTensor>* outputs, const OpResource&) {
  const float* above = (*inputs)[0].data<float>();
  const float* below = (*inputs)[1].data<float>();
  const float* x = (*inputs)[2].data<float>();
  float* gradient = (*outputs)[0].data<float>();
  for (int64_t i = 0; i < (*outputs)[0].size(); i++) gradient[i] = x[i] > 0 ? above[i] : below[i];
  return MX_SUCCESS;
}

REGISTER_OP(tp_halves)
    .setForward(halvesForward, "cpu")
    .setBackward(halvesBackward, "cpu")
    .setParseAttrs(arity<1, 2>)
    .setInferType(sameTypes)
    .setInferShape(sameShapes);

// y = x W': the shape of W follows from that of x and the attribute num_hidden. No backward.
MXReturnValue linearShapes(const Attributes& attributes, Shapes* in, Shapes* out) {
  const unsigned int hidden = static_cast<unsigned int>(number(attributes, "num_hidden", 1));
  if ((*in)[0].size() != 2) {
    MX_ERROR_MSG << "data must be a matrix";
    return MX_FAIL;
  }
  (*in)[1] = {hidden, (*in)[0][1]};
  (*out)[0] = {(*in)[0][0], hidden};
  return MX_SUCCESS;
}

MXReturnValue linearForward(const Attributes&, std::vector<MXTensor>* inputs,
                            std::vector<MXTensor>* outputs, const OpResource&) {
  const float* x = (*inputs)[0].data<float>();
  const float* w = (*inputs)[1].data<float>();
  const int64_t rows = (*inputs)[0].shape[0];
  const int64_t width = (*inputs)[0].shape[1];
  const int64_t hidden = (*inputs)[1].shape[0];
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t h = 0; h < hidden; h++) {
      float sum = 0;
      for (int64_t k = 0; k < width; k++) sum += x[r * width + k] * w[h * width + k];
      (*outputs)[0].data<float>()[r * hidden + h] = sum;
    }
  }
  return MX_SUCCESS;
}

REGISTER_OP(tp_linear)
    .setForward(linearForward, "cpu")
    .setParseAttrs(arity<2, 1>)
    .setInferType(sameTypes)
    .setInferShape(linearShapes);

// A vector of ones for two vectors of N and M elements, with |first * N + second * M + least * the
// smaller number| elements.
MXReturnValue onesShapes(const Attributes& attributes, Shapes* in, Shapes* out) {
  const float n = static_cast<float>((*in)[0].at(0));
  const float m = static_cast<float>((*in)[1].at(0));
  const float size = number(attributes, "first", 0) * n + number(attributes, "second", 0) * m +
                     number(attributes, "least", 0) * std::min(n, m);
  (*out)[0] = {static_cast<unsigned int>(std::fabs(size))};
  return MX_SUCCESS;
}

MXReturnValue onesForward(const Attributes&, std::vector<MXTensor>*, std::vector<MXTensor>* outputs,
                          const OpResource&) {
  float* y = (*outputs)[0].data<float>();
  for (int64_t i = 0; i < (*outputs)[0].size(); i++) y[i] = 1;
  return MX_SUCCESS;
}

REGISTER_OP(tp_ones)
    .setForward(onesForward, "cpu")
    .setParseAttrs(arity<2, 1>)
    .setInferType(sameTypes)
    .setInferShape(onesShapes);

// total += x; y = total. The second input is an auxiliary state. With the attribute fail it
// changes the state and then fails.
MXReturnValue mutatesSecond(const Attributes&, std::vector<int>* indices) {
  indices->push_back(1);
  return MX_SUCCESS;
}

MXReturnValue accumulateForward(const Attributes& attributes, std::vector<MXTensor>* inputs,
                                std::vector<MXTensor>* outputs, const OpResource&) {
  const float* x = (*inputs)[0].data<float>();
  float* total = (*inputs)[1].data<float>();
  for (int64_t i = 0; i < (*inputs)[0].size(); i++) {
    total[i] += x[i];
    (*outputs)[0].data<float>()[i] = total[i];
  }
  if (number(attributes, "fail", 0) != 0) {
    MX_ERROR_MSG << "told to fail";
    return MX_FAIL;
  }
  return MX_SUCCESS;
}

REGISTER_OP(tp_accumulate)
    .setForward(accumulateForward, "cpu")
    .setParseAttrs(arity<2, 1>)
    .setInferType(sameTypes)
    .setInferShape(sameShapes)
    .setMutateInputs(mutatesSecond);

namespace {

int living_states = 0;

// y = x + how often this state ran forward; its backward gives the gradient times that number.
class Counter : public CustomStatefulOp {
 public:
  Counter() { living_states++; }
  ~Counter() override { living_states--; }

  MXReturnValue Forward(std::vector<MXTensor>* inputs, std::vector<MXTensor>* outputs,
                        const OpResource&) override {
    calls_++;
    const float* x = (*inputs)[0].data<float>();
    float* y = (*outputs)[0].data<float>();
    for (int64_t i = 0; i < (*inputs)[0].size(); i++) y[i] = x[i] + static_cast<float>(calls_);
    return MX_SUCCESS;
  }

  MXReturnValue Backward(std::vector<MXTensor>* inputs, std::vector<MXTensor>* outputs,
                         const OpResource&) override {
    const float* gradient = (*inputs)[0].data<float>();
    for (int64_t i = 0; i < (*outputs)[0].size(); i++) {
      (*outputs)[0].data<float>()[i] = gradient[i] * static_cast<float>(calls_);
    }
    return MX_SUCCESS;
  }

 private:
  int calls_ = 0;
};

}  // namespace

MXReturnValue createCounter(const Attributes&, const MXContext&, const Shapes&,
                            const std::vector<int>, CustomStatefulOp** state) {
  *state = CustomStatefulOp::create<Counter>();
  return MX_SUCCESS;
}

REGISTER_OP(tp_counter)
    .setParseAttrs(arity<1, 1>)
    .setInferType(sameTypes)
    .setInferShape(sameShapes)
    .setCreateOpState(createCounter, "cpu");

// y = x + how many states of tp_counter there are
MXReturnValue livingForward(const Attributes&, std::vector<MXTensor>* inputs,
                            std::vector<MXTensor>* outputs, const OpResource&) {
  for (int64_t i = 0; i < (*inputs)[0].size(); i++) {
    (*outputs)[0].data<float>()[i] =
        (*inputs)[0].data<float>()[i] + static_cast<float>(living_states);
  }
  return MX_SUCCESS;
}

REGISTER_OP(tp_living)
    .setForward(livingForward, "cpu")
    .setParseAttrs(arity<1, 1>)
    .setInferType(sameTypes)
    .setInferShape(sameShapes);

// y = -x for arrays of rows: the rows that are there stay where they are. Dense arrays too.
MXReturnValue sameStorage(const Attributes&, std::vector<int>* in, std::vector<int>* out) {
  (*out)[0] = (*in)[0];
  return MX_SUCCESS;
}

MXReturnValue negateForward(const Attributes&, std::vector<MXTensor>* inputs,
                            std::vector<MXTensor>* outputs, const OpResource& resource) {
  MXTensor& in = (*inputs)[0];
  MXTensor& out = (*outputs)[0];
  if (in.stype == kDefaultStorage) {
    for (int64_t i = 0; i < in.size(); i++) out.data<float>()[i] = -in.data<float>()[i];
    return MX_SUCCESS;
  }
  MXSparse* from = in.data<MXSparse>();
  MXSparse* to = out.data<MXSparse>();
  const int rows = static_cast<int>(from->indices_len);
  resource.alloc_sparse(to, 0, rows, 0);
  const int64_t width = in.shape[1];
  for (int64_t r = 0; r < rows; r++) {
    to->indices[r] = from->indices[r];
    for (int64_t k = 0; k < width; k++) {
      static_cast<float*>(to->data)[r * width + k] =
          -static_cast<float*>(from->data)[r * width + k];
    }
  }
  return MX_SUCCESS;
}

REGISTER_OP(tp_negate)
    .setForward(negateForward, "cpu")
    .setParseAttrs(arity<1, 1>)
    .setInferType(sameTypes)
    .setInferSType(sameStorage)
    .setInferShape(sameShapes);

namespace {

// Runs a subgraph of exp, log and elemwise_add. Inputs beyond those of the subgraph hold one
// number each, which is added to every output.
class Interpreter : public CustomStatefulOp {
 public:
  explicit Interpreter(const std::string& json) : graph_(JsonVal::parse(json)) {}

  MXReturnValue Forward(std::vector<MXTensor>* inputs, std::vector<MXTensor>* outputs,
                        const OpResource&) override {
    std::vector<std::vector<float>> values;
    size_t next = 0;
    for (const JsonVal& node : member(graph_, "nodes").list) {
      const std::string& op = member(node, "op").str;
      if (op == "null") {
        MXTensor& input = (*inputs)[next++];
        values.emplace_back(input.data<float>(), input.data<float>() + input.size());
        continue;
      }
      const std::vector<JsonVal>& edges = member(node, "inputs").list;
      std::vector<float> result = values[source(edges[0])];
      for (size_t i = 0; i < result.size(); i++) {
        if (op == "exp") {
          result[i] = std::exp(result[i]);
        } else if (op == "log") {
          result[i] = std::log(result[i]);
        } else if (op == "elemwise_add") {
          result[i] += values[source(edges[1])][i];
        } else {
          MX_ERROR_MSG << "no such operator: " << op;
          return MX_FAIL;
        }
      }
      values.push_back(result);
    }
    float extra = 0;
    while (next < inputs->size()) extra += (*inputs)[next++].data<float>()[0];
    const std::vector<JsonVal>& heads = member(graph_, "heads").list;
    for (size_t h = 0; h < heads.size(); h++) {
      const std::vector<float>& value = values[source(heads[h])];
      for (size_t i = 0; i < value.size(); i++) (*outputs)[h].data<float>()[i] = value[i] + extra;
    }
    return MX_SUCCESS;
  }

 private:
  static const JsonVal& member(const JsonVal& object, const std::string& key) {
    return object.map.at(JsonVal(key));
  }

  static size_t source(const JsonVal& edge) { return static_cast<size_t>(edge.list[0].num); }

  JsonVal graph_;
};

}  // namespace

MXReturnValue createInterpreter(const Attributes& attributes, const MXContext&, const Shapes&,
                                const std::vector<int>, CustomStatefulOp** state) {
  auto json = attributes.find(MX_STR_SUBGRAPH_SYM_JSON);
  if (json == attributes.end()) {
    MX_ERROR_MSG << "there is no subgraph";
    return MX_FAIL;
  }
  *state = CustomStatefulOp::create<Interpreter>(json->second);
  return MX_SUCCESS;
}

REGISTER_OP(tp_subgraph).setIsSubgraphOp().setCreateOpState(createInterpreter, "cpu");

MXReturnValue initialize(int) { return MX_SUCCESS; }
