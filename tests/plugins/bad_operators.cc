// Operators that misbehave in the way that their attribute `how` names.
#include <cstring>
#include <stdexcept>

#include "lib_api.h"

using namespace mxnet::ext;

namespace {

typedef std::unordered_map<std::string, std::string> Attributes;
typedef std::vector<unsigned int> Shape;

bool is(const Attributes& attributes, const char* how) {
  return attributes.count("how") != 0 && attributes.at("how") == how;
}

// The faults that every function may have.
MXReturnValue end(const Attributes& attributes, const std::string& function) {
  if (is(attributes, (function + " fails").c_str())) {
    MX_ERROR_MSG << function << " does not want to";
    return MX_FAIL;
  }
  if (is(attributes, (function + " is silent").c_str())) return MX_FAIL;
  if (is(attributes, (function + " throws").c_str())) {
    throw std::runtime_error(function + " has thrown");
  }
  if (is(attributes, (function + " throws int").c_str())) throw 7;
  return MX_SUCCESS;
}

MXReturnValue parse(const Attributes& attributes, int* num_inputs, int* num_outputs) {
  *num_inputs = 2;
  *num_outputs = 1;
  if (is(attributes, "negative inputs")) *num_inputs = -1;
  if (is(attributes, "huge inputs")) *num_inputs = 2000000000;
  if (is(attributes, "negative outputs")) *num_outputs = -5;
  if (is(attributes, "no outputs")) *num_outputs = 0;
  if (is(attributes, "huge outputs")) *num_outputs = 2000000000;
  return end(attributes, "parse");
}

MXReturnValue inferType(const Attributes& attributes, std::vector<int>* in, std::vector<int>* out) {
  out->at(0) = in->at(0);
  if (is(attributes, "type contradicts")) in->at(1) = kInt8;
  if (is(attributes, "type of input is nonsense")) in->at(0) = 77;
  if (is(attributes, "type is nonsense")) out->at(0) = 99;
  if (is(attributes, "type is unknown")) out->at(0) = -1;
  return end(attributes, "type");
}

MXReturnValue inferShape(const Attributes& attributes, std::vector<Shape>* in,
                         std::vector<Shape>* out) {
  out->at(0) = in->at(0);
  if (is(attributes, "shape contradicts")) in->at(0) = {9, 9};
  if (is(attributes, "rank contradicts")) in->at(1) = {2};
  if (is(attributes, "huge rank")) out->at(0).assign(100000, 1);
  if (is(attributes, "shape is unknown")) out->at(0) = {4294967295U, 3};
  if (is(attributes, "shape is huge")) out->at(0).assign(6, 4000000000U);
  if (is(attributes, "csr of one dimension")) out->at(0) = {4};
  return end(attributes, "shape");
}

MXReturnValue inferStorage(const Attributes& attributes, std::vector<int>* in,
                           std::vector<int>* out) {
  out->at(0) = kDefaultStorage;
  if (is(attributes, "storage is nonsense")) out->at(0) = 7;
  if (is(attributes, "storage is unknown")) out->at(0) = -1;
  if (is(attributes, "storage contradicts")) in->at(1) = kCSRStorage;
  for (const char* how : {"too many rows", "negative rows", "indptr of rows", "row out of range"}) {
    if (is(attributes, how)) out->at(0) = kRowSparseStorage;
  }
  for (const char* how : {"wrong indptr", "indptr falls", "csr of one dimension"}) {
    if (is(attributes, how)) out->at(0) = kCSRStorage;
  }
  return end(attributes, "storage");
}

MXReturnValue mutate(const Attributes& attributes, std::vector<int>* indices) {
  if (is(attributes, "mutates twice")) indices->assign({1, 0, 1});
  if (is(attributes, "mutates input 5")) indices->push_back(5);
  if (is(attributes, "mutates input -1")) indices->push_back(-1);
  if (is(attributes, "changes a state and fails")) indices->push_back(1);
  return end(attributes, "mutate");
}

// Asks for memory of its sparse output, or of one that it does not have.
void askSparse(const Attributes& attributes, std::vector<MXTensor>* out, const OpResource& res) {
  MXSparse other;
  MXSparse* sparse = out->at(0).stype == kDefaultStorage ? &other : out->at(0).data<MXSparse>();
  const int rows = static_cast<int>(out->at(0).shape.at(0));
  if (is(attributes, "sparse memory of dense")) res.alloc_sparse(sparse, 0, 1);
  if (is(attributes, "sparse memory of output 3")) res.alloc_sparse(sparse, 3, 1);
  if (is(attributes, "sparse memory of output -1")) res.alloc_sparse(sparse, -1, 1);
  if (is(attributes, "too many rows")) res.alloc_sparse(sparse, 0, rows + 1);
  if (is(attributes, "negative rows")) res.alloc_sparse(sparse, 0, -1);
  if (is(attributes, "indptr of rows")) res.alloc_sparse(sparse, 0, 1, 2);
  if (is(attributes, "wrong indptr")) res.alloc_sparse(sparse, 0, 1, rows);
  if (is(attributes, "row out of range")) {
    res.alloc_sparse(sparse, 0, 1);
    sparse->indices[0] = rows;
  }
  if (is(attributes, "indptr falls")) {
    res.alloc_sparse(sparse, 0, 2, rows + 1);
    sparse->indptr[0] = 2;
  }
}

MXReturnValue forward(const Attributes& attributes, std::vector<MXTensor>* in,
                      std::vector<MXTensor>* out, const OpResource& res) {
  if (out->at(0).stype == kDefaultStorage && out->at(0).dtype == kFloat32) {
    float* data = out->at(0).data<float>();
    const int64_t size = out->at(0).size();
    std::memset(data, 0, static_cast<std::size_t>(size) * sizeof(float));
    if (is(attributes, "past the end")) data[size + 1] = 1;
    if (is(attributes, "before the beginning")) data[-3] = 1;
  }
  if (is(attributes, "past the end of memory")) {
    static_cast<char*>(res.alloc_cpu(10))[10] = 1;
  }
  if (is(attributes, "writes to an input")) in->at(0).data<float>()[1] += 1;
  if (is(attributes, "changes a state and fails")) {
    in->at(1).data<float>()[0] += 1;
    MX_ERROR_MSG << "too late";
    return MX_FAIL;
  }
  if (is(attributes, "negative memory")) res.alloc_cpu(-8);
  if (is(attributes, "swallows a refusal")) {
    try {
      res.alloc_cpu(-8);
    } catch (...) {
    }
  }
  askSparse(attributes, out, res);
  return end(attributes, "forward");
}

MXReturnValue backward(const Attributes& attributes, std::vector<MXTensor>*, std::vector<MXTensor>*,
                       const OpResource&) {
  return end(attributes, "backward");
}

class State : public CustomStatefulOp {
 public:
  explicit State(const Attributes& attributes) : attributes_(attributes) {}
  MXReturnValue Forward(std::vector<MXTensor>* in, std::vector<MXTensor>* out,
                        const OpResource& res) override {
    return forward(attributes_, in, out, res);
  }

 private:
  Attributes attributes_;
};

MXReturnValue create(const Attributes& attributes, const MXContext&, const std::vector<Shape>&,
                     const std::vector<int>, CustomStatefulOp** state) {
  const MXReturnValue result = end(attributes, "create");
  if (result != MX_SUCCESS || is(attributes, "no state")) return result;
  if (is(attributes, "made by new") || is(attributes, "made by new, and says so")) {
    *state = new State(attributes);
    (*state)->ignore_warn = is(attributes, "made by new, and says so");
  } else {
    *state = CustomStatefulOp::create<State>(attributes);
  }
  return MX_SUCCESS;
}

}  // namespace

REGISTER_OP(bad_operator)
    .setForward(forward, "cpu")
    .setBackward(backward, "cpu")
    .setParseAttrs(parse)
    .setInferType(inferType)
    .setInferShape(inferShape)
    .setInferSType(inferStorage)
    .setMutateInputs(mutate);
REGISTER_OP(bad_state)
    .setCreateOpState(create, "cpu")
    .setParseAttrs(parse)
    .setInferType(inferType)
    .setInferShape(inferShape);
REGISTER_OP(only_on_gpu)
    .setForward(forward, "gpu")
    .setParseAttrs(parse)
    .setInferType(inferType)
    .setInferShape(inferShape);

MXReturnValue initialize(int) { return MX_SUCCESS; }
