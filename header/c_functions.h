// ================================================================================================
// The C functions that a host looks up
//
// All of them are cdecl and take plain C types. A returned int is 1 for success and 0 for failure,
// with the reasons in the message store. Arguments are borrowed for the call. Results are either
// static (names) or allocated with malloc, and the host releases them through _opCallFree of the
// same library. `function` arguments are pointers from the library's RegGet functions, opaque to
// the host. No C++ exception leaves these functions, except calls of a selector, which cannot
// report failure otherwise: what the selector throws reaches the host as a std::exception.
// Functions whose names begin with _passlib are not part of MXNet's ABI.
//
// Parameters of a call (arg_..., aux_...): num names, and for each the data, the shape (dims
// numbers), the dtype code, the version of the data, and the device. Arrays may be null if num is
// 0. A parameter whose data is null, though its shape has elements, is one that the host does not
// lend.
// ================================================================================================

/// Version of the extension ABI, which these functions implement.
#define MX_LIBRARY_VERSION 11
#define PRIVATE_SYMBOL __attribute__((visibility("hidden")))

#ifndef PASSLIB_NO_ENTRY_POINTS
#define PASSLIB_ENTRY inline __attribute__((used)) PASSLIB_EXPORT

extern "C" {

/// Returns the version of the extension ABI.
PASSLIB_ENTRY int _opVersion() { return MX_LIBRARY_VERSION; }

/// Returns the number of messages.
PASSLIB_ENTRY int _msgSize() { return mxnet::ext::MXerrorMsgs::get()->size(); }

/// *msg: message number idx, owned by the library; null if out of range.
PASSLIB_ENTRY void _msgGet(int idx, const char** msg) {
  *msg = nullptr;
  mxnet::ext::detail::guarded("_msgGet", [&]() -> int {
    const std::string* text = mxnet::ext::MXerrorMsgs::get()->get(idx);
    if (text != nullptr) *msg = text->c_str();
    return mxnet::ext::MX_SUCCESS;
  });
}

/// Releases memory that a call of this library returned, or null.
PASSLIB_ENTRY void _opCallFree(void* ptr) { free(ptr); }

// Passes.

/// Returns the number of passes.
PASSLIB_ENTRY int _passRegSize() {
  return mxnet::ext::Registry<mxnet::ext::CustomPass>::get()->size();
}

/// *function, *name: pass number idx; null if out of range.
PASSLIB_ENTRY void _passRegGet(int idx, mxnet::ext::graphPass_t* function, const char** name) {
  *function = nullptr;
  *name = nullptr;
  const auto* passes = mxnet::ext::Registry<mxnet::ext::CustomPass>::get();
  if (idx < 0 || idx >= passes->size()) return;
  *function = passes->get(idx).pass;
  *name = passes->get(idx).name;
}

/// *json: what the passes declare, as JSON text that lives until the process ends; null if none
/// declares anything. The text is
///
///     {"version": 1, "passes": [{"name": "fold", "description": "...", "dialects": ["onnx"],
///      "needs_weights": true, "weights_on_demand": true, "needs_shapes": false,
///      "any_options": false, "options":
///      [{"name": "level", "kind": "integer", "list": false, "default": 1, "description": "...",
///        "choices": [], "range": [1, 3]}],
///      "exact": true, "enters_functions": true, "triggers": ["Mul"],
///      "joins": {"pipelines": ["clean", "simplify"], "after": "", "cost": "weights",
///                "options": {"level": 3}, "rounding": {}}}]}
///
/// with the kinds boolean, integer, real and text. "weights_on_demand", and what follows "options",
/// may be absent, for false, [] and no pipeline.
PASSLIB_ENTRY int _passlibDeclarations(const char** json) {
  *json = nullptr;
  return mxnet::ext::detail::guarded("the declarations of the passes", [&]() -> int {
    const auto* declared = mxnet::ext::detail::DeclaredPasses::get();
    if (declared->describe != nullptr) *json = declared->describe();
    return mxnet::ext::MX_SUCCESS;
  });
}

/// Runs a pass on a graph in JSON. *out_graph: the result as malloc'd JSON, null on failure.
PASSLIB_ENTRY int _passCallGraphPass(
    mxnet::ext::graphPass_t function, const char* in_graph, char** out_graph,
    const char* const* opt_keys, const char* const* opt_vals, int num_opts, const char* pass_name,
    const char* const* arg_names, int num_arg, void* const* arg_data,
    const int64_t* const* arg_shapes, const int* arg_dims, const int* arg_types,
    const size_t* arg_IDs, const char* const* arg_dev_type, const int* arg_dev_id,
    const char* const* aux_names, int num_aux, void* const* aux_data,
    const int64_t* const* aux_shapes, const int* aux_dims, const int* aux_types,
    const size_t* aux_IDs, const char* const* aux_dev_type, const int* aux_dev_id,
    mxnet::ext::nd_malloc_t nd_malloc, const void* nd_alloc) {
  *out_graph = nullptr;
  const mxnet::ext::detail::PassCall call = {function,
                                             pass_name,
                                             {opt_keys, opt_vals, num_opts},
                                             {arg_names, num_arg, arg_data, arg_shapes, arg_dims,
                                              arg_types, arg_IDs, arg_dev_type, arg_dev_id},
                                             {aux_names, num_aux, aux_data, aux_shapes, aux_dims,
                                              aux_types, aux_IDs, aux_dev_type, aux_dev_id},
                                             nd_malloc,
                                             nd_alloc};
  return mxnet::ext::detail::callPass(call, in_graph, out_graph);
}

/// Returns the version of the flat form that the library takes and returns.
PASSLIB_ENTRY int _passlibFlatVersion() { return PASSLIB_FLAT_VERSION; }

/// Runs a pass on a graph in the flat form, which the host owns and keeps until the call returns.
/// *result: the result, null on failure. It belongs to the library, with all that it points to,
/// except for what FlatNode says; the host reads it and then calls _passlibFreeFlat.
PASSLIB_ENTRY int _passlibCallFlatPass(
    mxnet::ext::graphPass_t function, const mxnet::ext::FlatModel* shown,
    const mxnet::ext::FlatModel** result, const char* const* opt_keys, const char* const* opt_vals,
    int num_opts, const char* pass_name, const char* const* arg_names, int num_arg,
    void* const* arg_data, const int64_t* const* arg_shapes, const int* arg_dims,
    const int* arg_types, const size_t* arg_IDs, const char* const* arg_dev_type,
    const int* arg_dev_id, const char* const* aux_names, int num_aux, void* const* aux_data,
    const int64_t* const* aux_shapes, const int* aux_dims, const int* aux_types,
    const size_t* aux_IDs, const char* const* aux_dev_type, const int* aux_dev_id,
    mxnet::ext::nd_malloc_t nd_malloc, const void* nd_alloc) {
  *result = nullptr;
  const mxnet::ext::detail::PassCall call = {function,
                                             pass_name,
                                             {opt_keys, opt_vals, num_opts},
                                             {arg_names, num_arg, arg_data, arg_shapes, arg_dims,
                                              arg_types, arg_IDs, arg_dev_type, arg_dev_id},
                                             {aux_names, num_aux, aux_data, aux_shapes, aux_dims,
                                              aux_types, aux_IDs, aux_dev_type, aux_dev_id},
                                             nd_malloc,
                                             nd_alloc};
  return mxnet::ext::detail::callPass(call, shown, result);
}

/// Releases a result of _passlibCallFlatPass, or null.
PASSLIB_ENTRY void _passlibFreeFlat(const mxnet::ext::FlatModel* model) {
  if (model != nullptr) delete static_cast<mxnet::ext::detail::FlatStore*>(model->owner);
}

/// Sets what passInterrupted() asks: function(host), which returns 0 or 1, needs no lock, never
/// throws, and stays valid until the process ends. Called before initialize. Not part of MXNet's
/// ABI.
PASSLIB_ENTRY void _passlibSetInterrupted(mxnet::ext::interrupted_t function, const void* host) {
  mxnet::ext::detail::InterruptSource* const source = mxnet::ext::detail::InterruptSource::get();
  source->function = function;
  source->host = host;
}

/// Sets what Node::readTensor() asks, before initialize. In a call of a pass that takes weights on
/// demand, a parameter whose elements are asked for has null data and an ID that is not 0.
PASSLIB_ENTRY void _passlibSetWeights(mxnet::ext::readWeight_t read,
                                      mxnet::ext::scaleWeight_t scale) {
  mxnet::ext::detail::WeightSource* const source = mxnet::ext::detail::WeightSource::get();
  source->read = read;
  source->scale = scale;
}

/// Returns why the library cannot be used, such as a pattern that is not well-formed: a line for
/// each reason, or null. The host asks before initialize().
PASSLIB_ENTRY const char* _passlibLoadErrors() {
  const std::string& errors = mxnet::ext::detail::loadErrors();
  return errors.empty() ? nullptr : errors.c_str();
}

// Operators.

/// Returns the number of operators.
PASSLIB_ENTRY int _opRegSize() {
  const auto call = mxnet::ext::detail::OperatorCalls::table()->size;
  return call == nullptr ? 0 : call();
}

/// Gets operator number idx. The library owns the arrays, with one entry per context; functions
/// that were not set are null. Without such an operator, the name is null.
PASSLIB_ENTRY void _opRegGet(int idx, const char** name, int* isSGop, const char*** forward_ctx,
                             mxnet::ext::fcomp_t** forward_fp, int* forward_count,
                             const char*** backward_ctx, mxnet::ext::fcomp_t** backward_fp,
                             int* backward_count, const char*** create_op_ctx,
                             mxnet::ext::createOpState_t** create_op_fp, int* create_op_count,
                             mxnet::ext::parseAttrs_t* parse, mxnet::ext::inferType_t* type,
                             mxnet::ext::inferSType_t* stype, mxnet::ext::inferShape_t* shape,
                             mxnet::ext::mutateInputs_t* mutate) {
  *name = nullptr;
  *isSGop = *forward_count = *backward_count = *create_op_count = 0;
  *forward_ctx = *backward_ctx = *create_op_ctx = nullptr;
  *forward_fp = *backward_fp = nullptr;
  *create_op_fp = nullptr;
  *parse = nullptr;
  *type = nullptr;
  *stype = nullptr;
  *shape = nullptr;
  *mutate = nullptr;
  const auto call = mxnet::ext::detail::OperatorCalls::table()->get;
  mxnet::ext::CustomOp* const op = call == nullptr ? nullptr : call(idx);
  if (op == nullptr) return;
  *name = op->name;
  *isSGop = op->isSGop ? 1 : 0;
  *type = op->infer_type;
  *stype = op->infer_storage_type;
  *shape = op->infer_shape;
  *mutate = op->mutate_inputs;
  if (!op->valid) return;  // without functions, so that hosts reject it
  *parse = op->parse_attrs;
  *forward_ctx = op->forward_ctx_cstr.data();
  *forward_fp = op->forward_fp.data();
  *forward_count = static_cast<int>(op->forward_fp.size());
  *backward_ctx = op->backward_ctx_cstr.data();
  *backward_fp = op->backward_fp.data();
  *backward_count = static_cast<int>(op->backward_fp.size());
  *create_op_ctx = op->create_op_ctx_cstr.data();
  *create_op_fp = op->create_op_fp.data();
  *create_op_count = static_cast<int>(op->create_op_fp.size());
}

PASSLIB_ENTRY int _opCallParseAttrs(mxnet::ext::parseAttrs_t function, const char* const* keys,
                                    const char* const* vals, int num, int* num_in, int* num_out) {
  const auto call = mxnet::ext::detail::OperatorCalls::table()->parseAttrs;
  return call == nullptr ? mxnet::ext::MX_FAIL : call(function, {keys, vals, num}, num_in, num_out);
}

/// *mod_inshapes and *outshapes: malloc'd arrays of malloc'd shapes, those of the inputs possibly
/// changed; *mod_indims and *outdims: malloc'd arrays of their lengths. Nothing is set on failure.
PASSLIB_ENTRY int _opCallInferShape(mxnet::ext::inferShape_t function, const char* const* keys,
                                    const char* const* vals, int num, unsigned int** inshapes,
                                    int* indims, int num_in, unsigned int*** mod_inshapes,
                                    int** mod_indims, unsigned int*** outshapes, int** outdims,
                                    int num_out) {
  const auto call = mxnet::ext::detail::OperatorCalls::table()->inferShape;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, {keys, vals, num}, {inshapes, indims, num_in},
                                mod_inshapes, mod_indims, outshapes, outdims, num_out);
}

/// Types are changed in place.
PASSLIB_ENTRY int _opCallInferType(mxnet::ext::inferType_t function, const char* const* keys,
                                   const char* const* vals, int num, int* intypes, int num_in,
                                   int* outtypes, int num_out) {
  const auto call = mxnet::ext::detail::OperatorCalls::table()->inferType;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, {keys, vals, num}, intypes, num_in, outtypes, num_out);
}

PASSLIB_ENTRY int _opCallInferSType(mxnet::ext::inferSType_t function, const char* const* keys,
                                    const char* const* vals, int num, int* instypes, int num_in,
                                    int* outstypes, int num_out) {
  const auto call = mxnet::ext::detail::OperatorCalls::table()->inferSType;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, {keys, vals, num}, instypes, num_in, outstypes, num_out);
}

/// intypes, outtypes: dtype codes; instypes, outstypes: storage types.
PASSLIB_ENTRY int _opCallFCompute(
    mxnet::ext::fcomp_t function, const char* const* keys, const char* const* vals, int num,
    const int64_t** inshapes, int* indims, void** indata, int* intypes, size_t* inIDs,
    const char** indev_type, int* indev_id, int num_in, const int64_t** outshapes, int* outdims,
    void** outdata, int* outtypes, size_t* outIDs, const char** outdev_type, int* outdev_id,
    int num_out, mxnet::ext::xpu_malloc_t cpu_malloc, void* cpu_alloc,
    mxnet::ext::xpu_malloc_t gpu_malloc, void* gpu_alloc, void* stream,
    mxnet::ext::sparse_malloc_t sparse_malloc, void* sparse_alloc, int* instypes, int* outstypes,
    void** in_indices, void** out_indices, void** in_indptr, void** out_indptr,
    int64_t* in_indices_shapes, int64_t* out_indices_shapes, int64_t* in_indptr_shapes,
    int64_t* out_indptr_shapes, void* rng_cpu_states, void* rng_gpu_states) {
  const mxnet::ext::detail::GivenTensors inputs = {
      inshapes,        indims, indata,   intypes,    inIDs,     indev_type,
      indev_id,        num_in, instypes, in_indices, in_indptr, in_indices_shapes,
      in_indptr_shapes};
  const mxnet::ext::detail::GivenTensors outputs = {
      outshapes,        outdims, outdata,   outtypes,    outIDs,     outdev_type,
      outdev_id,        num_out, outstypes, out_indices, out_indptr, out_indices_shapes,
      out_indptr_shapes};
  const mxnet::ext::OpResource resource(cpu_malloc, cpu_alloc, gpu_malloc, gpu_alloc, stream,
                                        sparse_malloc, sparse_alloc, rng_cpu_states,
                                        rng_gpu_states);
  const auto call = mxnet::ext::detail::OperatorCalls::table()->compute;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, {keys, vals, num}, inputs, outputs, resource);
}

/// *mutate_indices is malloc'd.
PASSLIB_ENTRY int _opCallMutateInputs(mxnet::ext::mutateInputs_t function, const char* const* keys,
                                      const char* const* vals, int num, int** mutate_indices,
                                      int* indices_size) {
  const auto call = mxnet::ext::detail::OperatorCalls::table()->mutateInputs;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, {keys, vals, num}, mutate_indices, indices_size);
}

/// *state_op: a CustomStatefulOp, which _opCallDestroyOpState destroys.
PASSLIB_ENTRY int _opCallCreateOpState(mxnet::ext::createOpState_t function,
                                       const char* const* keys, const char* const* vals, int num,
                                       const char* dev_type, int dev_id, unsigned int** inshapes,
                                       int* indims, int num_in, const int* intypes,
                                       void** state_op) {
  const auto call = mxnet::ext::detail::OperatorCalls::table()->createState;
  return call == nullptr
             ? mxnet::ext::MX_FAIL
             : call(function, {keys, vals, num}, mxnet::ext::MXContext(dev_type, dev_id),
                    {inshapes, indims, num_in}, intypes, state_op);
}

PASSLIB_ENTRY void _opCallDestroyOpState(void* state_op) {
  const auto call = mxnet::ext::detail::OperatorCalls::table()->destroyState;
  if (call != nullptr) call(state_op);
}

PASSLIB_ENTRY int _opCallFStatefulCompute(
    int is_forward, void* state_op, const int64_t** inshapes, int* indims, void** indata,
    int* intypes, size_t* inIDs, const char** indev_type, int* indev_id, int num_in,
    const int64_t** outshapes, int* outdims, void** outdata, int* outtypes, size_t* outIDs,
    const char** outdev_type, int* outdev_id, int num_out, mxnet::ext::xpu_malloc_t cpu_malloc,
    void* cpu_alloc, mxnet::ext::xpu_malloc_t gpu_malloc, void* gpu_alloc, void* stream,
    mxnet::ext::sparse_malloc_t sparse_malloc, void* sparse_alloc, int* instypes, int* outstypes,
    void** in_indices, void** out_indices, void** in_indptr, void** out_indptr,
    int64_t* in_indices_shapes, int64_t* out_indices_shapes, int64_t* in_indptr_shapes,
    int64_t* out_indptr_shapes, void* rng_cpu_states, void* rng_gpu_states) {
  const mxnet::ext::detail::GivenTensors inputs = {
      inshapes,        indims, indata,   intypes,    inIDs,     indev_type,
      indev_id,        num_in, instypes, in_indices, in_indptr, in_indices_shapes,
      in_indptr_shapes};
  const mxnet::ext::detail::GivenTensors outputs = {
      outshapes,        outdims, outdata,   outtypes,    outIDs,     outdev_type,
      outdev_id,        num_out, outstypes, out_indices, out_indptr, out_indices_shapes,
      out_indptr_shapes};
  const mxnet::ext::OpResource resource(cpu_malloc, cpu_alloc, gpu_malloc, gpu_alloc, stream,
                                        sparse_malloc, sparse_alloc, rng_cpu_states,
                                        rng_gpu_states);
  const auto call = mxnet::ext::detail::OperatorCalls::table()->computeState;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(is_forward != 0, state_op, inputs, outputs, resource);
}

// Partitioners.

/// Returns the number of partitioners.
PASSLIB_ENTRY int _partRegSize() {
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->size;
  return call == nullptr ? 0 : call();
}

/// Returns the number of strategies of partitioner number idx; *name: its name.
PASSLIB_ENTRY int _partRegGetCount(int idx, const char** name) {
  *name = nullptr;
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->get;
  mxnet::ext::CustomPartitioner* const partitioner = call == nullptr ? nullptr : call(idx);
  if (partitioner == nullptr) return 0;
  *name = partitioner->name;
  return static_cast<int>(partitioner->strategies.size());
}

/// Gets strategy number stg_idx of partitioner number part_idx.
PASSLIB_ENTRY void _partRegGet(int part_idx, int stg_idx, const char** strategy,
                               mxnet::ext::supportedOps_t* supported_ops,
                               mxnet::ext::createSelector_t* create_selector,
                               mxnet::ext::reviewSubgraph_t* review_subgraph,
                               const char** op_name) {
  *strategy = *op_name = nullptr;
  *supported_ops = nullptr;
  *create_selector = nullptr;
  *review_subgraph = nullptr;
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->describe;
  if (call == nullptr) return;
  call(part_idx, stg_idx, strategy, supported_ops, create_selector, review_subgraph, op_name);
}

PASSLIB_ENTRY int _partCallSupportedOps(mxnet::ext::supportedOps_t function, const char* json,
                                        int num_ids, int* ids, const char* const* opt_keys,
                                        const char* const* opt_vals, int num_opts) {
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->supportedOps;
  return call == nullptr
             ? mxnet::ext::MX_FAIL
             : call(function, {json, nullptr}, num_ids, ids, {opt_keys, opt_vals, num_opts});
}

/// *selector: opaque, for the functions below.
PASSLIB_ENTRY int _partCallCreateSelector(mxnet::ext::createSelector_t function, const char* json,
                                          void** selector, const char* const* opt_keys,
                                          const char* const* opt_vals, int num_opts) {
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->createSelector;
  return call == nullptr
             ? mxnet::ext::MX_FAIL
             : call(function, {json, nullptr}, selector, {opt_keys, opt_vals, num_opts});
}

/// *attr_keys and *attr_vals: malloc'd arrays of malloc'd strings, null if there are none.
PASSLIB_ENTRY int _partCallReviewSubgraph(
    mxnet::ext::reviewSubgraph_t function, const char* json, int subgraph_id, int* accept,
    const char* const* opt_keys, const char* const* opt_vals, int num_opts, char*** attr_keys,
    char*** attr_vals, int* num_attrs, const char* const* arg_names, int num_arg,
    void* const* arg_data, const int64_t* const* arg_shapes, const int* arg_dims,
    const int* arg_types, const size_t* arg_IDs, const char* const* arg_dev_type,
    const int* arg_dev_id, const char* const* aux_names, int num_aux, void* const* aux_data,
    const int64_t* const* aux_shapes, const int* aux_dims, const int* aux_types,
    const size_t* aux_IDs, const char* const* aux_dev_type, const int* aux_dev_id) {
  *attr_keys = *attr_vals = nullptr;
  *num_attrs = 0;
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->reviewSubgraph;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, {json, nullptr}, subgraph_id, accept,
                                {opt_keys, opt_vals, num_opts}, attr_keys, attr_vals, num_attrs,
                                {arg_names, num_arg, arg_data, arg_shapes, arg_dims, arg_types,
                                 arg_IDs, arg_dev_type, arg_dev_id},
                                {aux_names, num_aux, aux_data, aux_shapes, aux_dims, aux_types,
                                 aux_IDs, aux_dev_type, aux_dev_id});
}

/// The same with the graph in the flat form. The library copies what it keeps.
PASSLIB_ENTRY int _passlibCallFlatSupportedOps(mxnet::ext::supportedOps_t function,
                                               const mxnet::ext::FlatModel* shown, int num_ids,
                                               int* ids, const char* const* opt_keys,
                                               const char* const* opt_vals, int num_opts) {
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->supportedOps;
  return call == nullptr
             ? mxnet::ext::MX_FAIL
             : call(function, {nullptr, shown}, num_ids, ids, {opt_keys, opt_vals, num_opts});
}

/// The same with the graph in the flat form. The library copies what it keeps.
/// *selector: opaque, for the functions below.
PASSLIB_ENTRY int _passlibCallFlatCreateSelector(mxnet::ext::createSelector_t function,
                                                 const mxnet::ext::FlatModel* shown,
                                                 void** selector, const char* const* opt_keys,
                                                 const char* const* opt_vals, int num_opts) {
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->createSelector;
  return call == nullptr
             ? mxnet::ext::MX_FAIL
             : call(function, {nullptr, shown}, selector, {opt_keys, opt_vals, num_opts});
}

/// The same with the graph in the flat form. The library copies what it keeps.
/// *attr_keys and *attr_vals: malloc'd arrays of malloc'd strings, null if there are none.
PASSLIB_ENTRY int _passlibCallFlatReviewSubgraph(
    mxnet::ext::reviewSubgraph_t function, const mxnet::ext::FlatModel* shown, int subgraph_id,
    int* accept, const char* const* opt_keys, const char* const* opt_vals, int num_opts,
    char*** attr_keys, char*** attr_vals, int* num_attrs, const char* const* arg_names, int num_arg,
    void* const* arg_data, const int64_t* const* arg_shapes, const int* arg_dims,
    const int* arg_types, const size_t* arg_IDs, const char* const* arg_dev_type,
    const int* arg_dev_id, const char* const* aux_names, int num_aux, void* const* aux_data,
    const int64_t* const* aux_shapes, const int* aux_dims, const int* aux_types,
    const size_t* aux_IDs, const char* const* aux_dev_type, const int* aux_dev_id) {
  *attr_keys = *attr_vals = nullptr;
  *num_attrs = 0;
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->reviewSubgraph;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, {nullptr, shown}, subgraph_id, accept,
                                {opt_keys, opt_vals, num_opts}, attr_keys, attr_vals, num_attrs,
                                {arg_names, num_arg, arg_data, arg_shapes, arg_dims, arg_types,
                                 arg_IDs, arg_dev_type, arg_dev_id},
                                {aux_names, num_aux, aux_data, aux_shapes, aux_dims, aux_types,
                                 aux_IDs, aux_dev_type, aux_dev_id});
}

PASSLIB_ENTRY void _partCallSelect(void* selector, int node, int* selected) {
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->select;
  if (call != nullptr) call(selector, node, selected);
}

PASSLIB_ENTRY void _partCallSelectInput(void* selector, int node, int input_node, int* selected) {
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->selectInput;
  if (call != nullptr) call(selector, node, input_node, selected);
}

PASSLIB_ENTRY void _partCallSelectOutput(void* selector, int node, int output_node, int* selected) {
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->selectOutput;
  if (call != nullptr) call(selector, node, output_node, selected);
}

/// *keep is malloc'd.
PASSLIB_ENTRY void _partCallFilter(void* selector, int* candidates, int num_candidates, int** keep,
                                   int* num_keep) {
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->filter;
  if (call != nullptr) call(selector, candidates, num_candidates, keep, num_keep);
}

PASSLIB_ENTRY void _partCallReset(void* selector) {
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->reset;
  if (call != nullptr) call(selector);
}

/// Destroys a selector and its graph.
PASSLIB_ENTRY void _passlibPartDestroySelector(void* selector) {
  const auto call = mxnet::ext::detail::PartitionerCalls::table()->destroySelector;
  if (call != nullptr) call(selector);
}

}  // extern "C"

#endif  // PASSLIB_NO_ENTRY_POINTS

#pragma GCC visibility pop

#ifdef PASSLIB_PATTERNS
#include "lib_patterns.h"
#endif

#endif  // a compiler that suffices
#endif  // MXNET_LIB_API_H_
