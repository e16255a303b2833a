// The entry points of operators, called as a host calls them.
#include <initializer_list>
#include <memory>

#include "check.h"
#include "lib_api.h"
#include "messages.h"

using namespace mxnet::ext;

namespace {

int destroyed = 0;

MXReturnValue parse(const options_map_t& attributes, int* num_inputs, int* num_outputs) {
  *num_inputs = std::stoi(attributes.at("inputs"));
  *num_outputs = 1;
  return MX_SUCCESS;
}

MXReturnValue inferType(const options_map_t&, std::vector<int>* in, std::vector<int>* out) {
  CHECK_EQUAL(out->at(0), -1);
  in->at(0) = kFloat32;
  out->at(0) = kInt64;
  return MX_SUCCESS;
}

MXReturnValue inferShape(const options_map_t& attributes,
                         std::vector<std::vector<unsigned int>>* in,
                         std::vector<std::vector<unsigned int>>* out) {
  if (attributes.count("forget") != 0) out->clear();
  if (attributes.count("fail") != 0) return MX_FAIL;
  if (out->empty()) return MX_SUCCESS;
  out->at(0) = in->at(0);
  out->at(0).push_back(7);
  in->at(1).clear();
  return MX_SUCCESS;
}

MXReturnValue forward(const options_map_t&, std::vector<MXTensor>* in, std::vector<MXTensor>* out,
                      const OpResource& resource) {
  int* scratch = static_cast<int*>(resource.alloc_cpu(sizeof(int)));
  *scratch = static_cast<int>(in->at(0).data<float>()[1]);
  CHECK_EQUAL(in->at(1).stype, kCSRStorage);
  const MXSparse& matrix = *in->at(1).data<MXSparse>();
  CHECK(matrix.indices_len == 1 && matrix.indptr_len == 3 && matrix.data_len == 1);
  CHECK_EQUAL(out->at(0).stype, kRowSparseStorage);
  MXSparse& rows = *out->at(0).data<MXSparse>();
  resource.alloc_sparse(&rows, 0, 1);
  CHECK_EQUAL(rows.indices_len, 1);
  rows.indices[0] =
      static_cast<int64_t>(resource.get_cpu_rand_states()[MX_NUM_CPU_RANDOM_STATES - 1]());
  static_cast<float*>(rows.data)[0] = static_cast<float>(*scratch);
  CHECK(resource.get_gpu_rand_states() == nullptr && resource.get_cuda_stream() == nullptr);
  return MX_SUCCESS;
}

MXReturnValue throwInt(const options_map_t&, std::vector<MXTensor>*, std::vector<MXTensor>*,
                       const OpResource&) {
  throw 5;
}

MXReturnValue mutate(const options_map_t&, std::vector<int>* indices) {
  *indices = {1, 0};
  return MX_SUCCESS;
}

class Counter : public CustomStatefulOp {
 public:
  explicit Counter(int start) : count_(start) {}
  ~Counter() override { ++destroyed; }
  MXReturnValue Forward(std::vector<MXTensor>*, std::vector<MXTensor>* out,
                        const OpResource&) override {
    out->at(0).data<int>()[0] = ++count_;
    return MX_SUCCESS;
  }

 private:
  int count_;
};

MXReturnValue createState(const options_map_t& attributes, const MXContext& context,
                          const std::vector<std::vector<unsigned int>>& shapes,
                          const std::vector<int> types, CustomStatefulOp** state) {
  CHECK(context.dev_type == "cpu" && context.dev_id == 0);
  if (attributes.count("nothing") != 0) return MX_SUCCESS;
  CHECK(shapes.size() == 1 && shapes[0].size() == 2 && types.at(0) == kInt8);
  *state = CustomStatefulOp::create<Counter>(static_cast<int>(shapes[0][1]));
  return MX_SUCCESS;
}

REGISTER_OP(full)
    .setForward(forward, "cpu")
    .setForward(throwInt, "gpu")
    .setBackward(throwInt, "cpu")
    .setParseAttrs(parse)
    .setInferType(inferType)
    .setInferShape(inferShape)
    .setMutateInputs(mutate);
REGISTER_OP(runs_subgraphs).setIsSubgraphOp().setCreateOpState(createState, "cpu");
REGISTER_OP(registered_twice)
    .setParseAttrs(parse)
    .setForward(forward, "cpu")
    .setForward(forward, "cpu");

/// The answer of _opRegGet about one operator.
struct Listed {
  explicit Listed(int index) {
    _opRegGet(index, &name, &is_subgraph, &forward_ctx, &forward_fp, &forward_count, &backward_ctx,
              &backward_fp, &backward_count, &create_ctx, &create_fp, &create_count, &parse_fp,
              &type_fp, &stype_fp, &shape_fp, &mutate_fp);
  }
  const char* name;
  int is_subgraph;
  const char **forward_ctx, **backward_ctx, **create_ctx;
  fcomp_t *forward_fp, *backward_fp;
  createOpState_t* create_fp;
  int forward_count, backward_count, create_count;
  parseAttrs_t parse_fp;
  inferType_t type_fp;
  inferSType_t stype_fp;
  inferShape_t shape_fp;
  mutateInputs_t mutate_fp;
};

}  // namespace

TEST(operators_are_listed) {
  CHECK_EQUAL(_opRegSize(), 3);
  for (int round = 0; round < 2; ++round) {  // a host may ask again
    const Listed full(0);
    CHECK_EQUAL(std::string(full.name), "full");
    CHECK(full.is_subgraph == 0 && full.forward_count == 2 && full.backward_count == 1);
    CHECK_EQUAL(std::string(full.forward_ctx[1]), "gpu");
    CHECK(full.forward_fp[0] == forward && full.backward_fp[0] == throwInt);
    CHECK(full.create_count == 0 && full.stype_fp == nullptr && full.mutate_fp == mutate);
  }
  const Listed stateful(1);
  CHECK(stateful.is_subgraph == 1 && stateful.create_count == 1 && stateful.parse_fp == nullptr);
}

TEST(two_functions_for_one_context_are_refused) {
  const Listed twice(2);
  CHECK(twice.parse_fp == nullptr && twice.forward_count == 0);
  const char* text = nullptr;
  _msgGet(0, &text);
  CHECK(contains(text, "'registered_twice' has two forward functions for the context 'cpu'"));
}

TEST(arity) {
  const char* keys[] = {"inputs"};
  const char* vals[] = {"3"};
  int inputs = 0;
  int outputs = 0;
  CHECK_EQUAL(_opCallParseAttrs(parse, keys, vals, 1, &inputs, &outputs), 1);
  CHECK(inputs == 3 && outputs == 1);
  CHECK_EQUAL(_opCallParseAttrs(parse, nullptr, nullptr, 0, &inputs, &outputs), 0);
  CHECK(contains(lastMessage(), "parseAttrs: "));
  CHECK_EQUAL(_opCallParseAttrs(nullptr, keys, vals, 1, &inputs, &outputs), 0);
  CHECK(contains(lastMessage(), "call setParseAttrs"));
}

TEST(types) {
  int in[] = {-1, 4};
  int out[] = {99};
  CHECK_EQUAL(_opCallInferType(inferType, nullptr, nullptr, 0, in, 2, out, 1), 1);
  CHECK(in[0] == kFloat32 && in[1] == 4 && out[0] == kInt64);
}

TEST(shapes) {
  unsigned first[] = {2, 3};
  unsigned second[] = {4};
  unsigned* shapes[] = {first, second};
  int dims[] = {2, 1};
  unsigned** mod = nullptr;
  unsigned** out = nullptr;
  int* mod_dims = nullptr;
  int* out_dims = nullptr;
  CHECK_EQUAL(_opCallInferShape(inferShape, nullptr, nullptr, 0, shapes, dims, 2, &mod, &mod_dims,
                                &out, &out_dims, 1),
              1);
  CHECK(mod_dims[0] == 2 && mod[0][1] == 3 && mod_dims[1] == 0);
  CHECK(out_dims[0] == 3 && out[0][2] == 7);
  for (void* memory :
       {static_cast<void*>(mod[0]), static_cast<void*>(mod[1]), static_cast<void*>(mod),
        static_cast<void*>(mod_dims), static_cast<void*>(out[0]), static_cast<void*>(out),
        static_cast<void*>(out_dims)}) {
    _opCallFree(memory);
  }
  for (const char* key : {"fail", "forget"}) {
    const char* val = "";
    mod = nullptr;
    CHECK_EQUAL(_opCallInferShape(inferShape, &key, &val, 1, shapes, dims, 2, &mod, &mod_dims, &out,
                                  &out_dims, 1),
                0);
    CHECK(mod == nullptr);
  }
  CHECK(contains(lastMessage(), "inferShape: there must be 1 output shapes, the function left 0"));
}

TEST(mutated_inputs) {
  int* indices = nullptr;
  int count = 0;
  CHECK_EQUAL(_opCallMutateInputs(mutate, nullptr, nullptr, 0, &indices, &count), 1);
  CHECK(count == 2 && indices[0] == 1 && indices[1] == 0);
  _opCallFree(indices);
}

namespace {

/// The host's side of one call, with room for one sparse output of one row.
struct Call {
  Call() {
    states[MX_NUM_CPU_RANDOM_STATES - 1].seed(1);
    outdata[0] = nullptr;
  }
  static void* allocate(void* self, int size) {
    Call* call = static_cast<Call*>(self);
    call->scratch.resize(static_cast<std::size_t>(size));
    return call->scratch.data();
  }
  static void allocateSparse(void* self, int index, int rows, int indptr, void** data,
                             int64_t** indices, int64_t** starts) {
    CHECK(index == 0 && rows == 1 && indptr == 0);
    Call* call = static_cast<Call*>(self);
    *data = call->row;
    *indices = &call->row_number;
    *starts = nullptr;
  }

  float dense[2] = {8, 9};
  float values[1] = {1};
  int64_t columns[1] = {1};
  int64_t starts[3] = {0, 0, 1};
  int64_t shape[2] = {2, 2};
  const int64_t* inshapes[2] = {shape, shape};
  int indims[2] = {1, 2};
  void* indata[2] = {dense, values};
  int types[2] = {kFloat32, kFloat32};
  size_t ids[2] = {0, 0};
  const char* devices[2] = {"cpu", "cpu"};
  int device_ids[2] = {0, 0};
  void* outdata[1];
  int instypes[2] = {kDefaultStorage, kCSRStorage};
  int outstypes[1] = {kRowSparseStorage};
  void* in_indices[2] = {nullptr, columns};
  void* in_indptr[2] = {nullptr, starts};
  int64_t in_indices_counts[2] = {0, 1};
  int64_t in_indptr_counts[2] = {0, 3};
  void* out_indices[1] = {nullptr};
  void* out_indptr[1] = {nullptr};
  int64_t out_counts[1] = {0};
  std::vector<char> scratch;
  float row[2] = {0, 0};
  int64_t row_number = 0;
  std::vector<std::mt19937> states = std::vector<std::mt19937>(MX_NUM_CPU_RANDOM_STATES);

  int compute(fcomp_t fp) {
    return _opCallFCompute(fp, nullptr, nullptr, 0, inshapes, indims, indata, types, ids, devices,
                           device_ids, 2, inshapes, indims + 1, outdata, types, ids, devices,
                           device_ids, 1, allocate, this, allocate, this, nullptr, allocateSparse,
                           this, instypes, outstypes, in_indices, out_indices, in_indptr,
                           out_indptr, in_indices_counts, out_counts, in_indptr_counts, out_counts,
                           states.data(), nullptr);
  }
};

}  // namespace

TEST(forward_with_sparse_tensors_and_resources) {
  Call call;
  CHECK_EQUAL(call.compute(forward), 1);
  CHECK_EQUAL(call.row[0], 9.0F);
  CHECK_EQUAL(call.row_number, static_cast<int64_t>(std::mt19937(1)()));
}

TEST(what_is_thrown_becomes_a_message) {
  Call call;
  CHECK_EQUAL(call.compute(throwInt), 0);
  CHECK(contains(lastMessage(), "compute: something was thrown that is not a std::exception"));
}

TEST(states) {
  unsigned shape[] = {2, 40};
  unsigned* shapes[] = {shape};
  int dims[] = {2};
  const int types[] = {kInt8};
  void* state = nullptr;
  CHECK_EQUAL(_opCallCreateOpState(createState, nullptr, nullptr, 0, "cpu", 0, shapes, dims, 1,
                                   types, &state),
              1);
  // Hosts read these two flags where MXNet has them.
  CHECK_EQUAL(sizeof(CustomStatefulOp), 2 * sizeof(void*));
  CHECK(!static_cast<const bool*>(state)[sizeof(void*)]);
  CHECK(static_cast<const bool*>(state)[sizeof(void*) + 1]);
  int result = 0;
  void* outdata[] = {&result};
  const int64_t one[] = {1};
  const int64_t* outshapes[] = {one};
  int outdims[] = {1};
  int outtypes[] = {kInt32};
  size_t ids[] = {0};
  const char* devices[] = {"cpu"};
  int stypes[] = {kDefaultStorage};
  const auto run = [&](int is_forward) {
    return _opCallFStatefulCompute(is_forward, state, nullptr, nullptr, nullptr, nullptr, nullptr,
                                   nullptr, nullptr, 0, outshapes, outdims, outdata, outtypes, ids,
                                   devices, dims, 1, nullptr, nullptr, nullptr, nullptr, nullptr,
                                   nullptr, nullptr, nullptr, stypes, nullptr, nullptr, nullptr,
                                   nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
  };
  CHECK(run(1) == 1 && run(1) == 1);
  CHECK_EQUAL(result, 42);
  CHECK_EQUAL(run(0), 0);
  CHECK(contains(lastMessage(), "this operator has no Backward"));
  _opCallDestroyOpState(state);
  CHECK_EQUAL(destroyed, 1);
  _opCallDestroyOpState(nullptr);

  const char* key = "nothing";
  const char* val = "";
  CHECK_EQUAL(
      _opCallCreateOpState(createState, &key, &val, 1, "cpu", 0, shapes, dims, 1, types, &state),
      0);
  CHECK(contains(lastMessage(), "createOpState: the function made no state"));
}

MXReturnValue initialize(int) { return MX_SUCCESS; }
