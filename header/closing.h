}  // namespace mxnet

#ifndef PASSLIB_NO_ENTRY_POINTS

PASSLIB_COLD_CODE

extern "C" {

inline int _opVersion() { return MX_LIBRARY_VERSION; }

inline int _msgSize() { return mxnet::ext::MXerrorMsgs::get()->size(); }

inline void _msgGet(int idx, const char** msg) {
  *msg = nullptr;
  mxnet::ext::detail::guarded("_msgGet", [&]() -> int {
    const std::string* text = mxnet::ext::MXerrorMsgs::get()->get(idx);
    if (text != nullptr) *msg = text->c_str();
    return mxnet::ext::MX_SUCCESS;
  });
}

inline void _opCallFree(void* ptr) { free(ptr); }

inline int _passRegSize() { return mxnet::ext::Registry<mxnet::ext::CustomPass>::get()->size(); }

inline void _passRegGet(int idx, mxnet::ext::graphPass_t* function, const char** name) {
  *function = nullptr;
  *name = nullptr;
  const auto* passes = mxnet::ext::Registry<mxnet::ext::CustomPass>::get();
  if (idx < 0 || idx >= passes->size()) return;
  *function = passes->get(idx).pass;
  *name = passes->get(idx).name;
}

inline int _passlibDeclarations(const char** json) {
  *json = nullptr;
  return mxnet::ext::detail::guarded("the declarations of the passes", [&]() -> int {
    const auto* declared = mxnet::ext::detail::DeclaredPasses::get();
    if (declared->describe != nullptr) *json = declared->describe();
    return mxnet::ext::MX_SUCCESS;
  });
}

inline int _passCallGraphPass(mxnet::ext::graphPass_t function, const char* in_graph,
                              char** out_graph, PASSLIB_OPTION_BLOCK, const char* pass_name,
                              PASSLIB_PARAM_BLOCK(arg), PASSLIB_PARAM_BLOCK(aux),
                              mxnet::ext::nd_malloc_t nd_malloc, const void* nd_alloc) {
  *out_graph = nullptr;
  return mxnet::ext::detail::callPass(function, in_graph, out_graph, nullptr, nullptr, opt_keys,
                                      opt_vals, num_opts, pass_name, PASSLIB_PARAM_NAMES(arg),
                                      PASSLIB_PARAM_NAMES(aux), nd_malloc, nd_alloc);
}

inline int _passlibFlatVersion() { return PASSLIB_FLAT_VERSION; }

inline int _passlibCallFlatPass(mxnet::ext::graphPass_t function,
                                const mxnet::ext::FlatModel* shown,
                                const mxnet::ext::FlatModel** result, PASSLIB_OPTION_BLOCK,
                                const char* pass_name, PASSLIB_PARAM_BLOCK(arg),
                                PASSLIB_PARAM_BLOCK(aux), mxnet::ext::nd_malloc_t nd_malloc,
                                const void* nd_alloc) {
  *result = nullptr;
  return mxnet::ext::detail::callPass(function, nullptr, nullptr, shown, result, opt_keys, opt_vals,
                                      num_opts, pass_name, PASSLIB_PARAM_NAMES(arg),
                                      PASSLIB_PARAM_NAMES(aux), nd_malloc, nd_alloc);
}

inline void _passlibFreeFlat(const mxnet::ext::FlatModel* model) {
  if (model != nullptr) delete static_cast<mxnet::ext::detail::FlatStore*>(model->owner);
}

inline void _passlibSetInterrupted(mxnet::ext::interrupted_t function, const void* host) {
  mxnet::ext::detail::InterruptSource* source = mxnet::ext::detail::InterruptSource::get();
  source->function = function;
  source->host = host;
}

inline void _passlibSetWeights(mxnet::ext::readWeight_t read, mxnet::ext::scaleWeight_t scale) {
  mxnet::ext::detail::WeightSource* source = mxnet::ext::detail::WeightSource::get();
  source->read = read;
  source->scale = scale;
}

inline const char* _passlibLoadErrors() {
  const std::string& errors = mxnet::ext::detail::loadErrors();
  return errors.empty() ? nullptr : errors.c_str();
}

inline int _opRegSize() {
  const auto call = mxnet::ext::detail::OperatorCalls::get()->size;
  return call == nullptr ? 0 : call();
}

inline void _opRegGet(int idx, const char** name, int* isSGop, const char*** forward_ctx,
                      mxnet::ext::fcomp_t** forward_fp, int* forward_count,
                      const char*** backward_ctx, mxnet::ext::fcomp_t** backward_fp,
                      int* backward_count, const char*** create_op_ctx,
                      mxnet::ext::createOpState_t** create_op_fp, int* create_op_count,
                      mxnet::ext::parseAttrs_t* parse, mxnet::ext::inferType_t* type,
                      mxnet::ext::inferSType_t* stype, mxnet::ext::inferShape_t* shape,
                      mxnet::ext::mutateInputs_t* mutate) {
  const auto call = mxnet::ext::detail::OperatorCalls::get()->describe;
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
  if (call == nullptr) return;
  call(idx, name, isSGop, forward_ctx, forward_fp, forward_count, backward_ctx, backward_fp,
       backward_count, create_op_ctx, create_op_fp, create_op_count, parse, type, stype, shape,
       mutate);
}

inline int _opCallParseAttrs(mxnet::ext::parseAttrs_t function, PASSLIB_ATTR_BLOCK, int* num_in,
                             int* num_out) {
  const auto call = mxnet::ext::detail::OperatorCalls::get()->parseAttrs;
  return call == nullptr ? mxnet::ext::MX_FAIL : call(function, keys, vals, num, num_in, num_out);
}

inline int _opCallInferShape(mxnet::ext::inferShape_t function, PASSLIB_ATTR_BLOCK,
                             unsigned int** inshapes, int* indims, int num_in,
                             unsigned int*** mod_inshapes, int** mod_indims,
                             unsigned int*** outshapes, int** outdims, int num_out) {
  const auto call = mxnet::ext::detail::OperatorCalls::get()->inferShape;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, keys, vals, num, inshapes, indims, num_in, mod_inshapes,
                                mod_indims, outshapes, outdims, num_out);
}

inline int _opCallInferType(mxnet::ext::inferType_t function, PASSLIB_ATTR_BLOCK, int* intypes,
                            int num_in, int* outtypes, int num_out) {
  const auto call = mxnet::ext::detail::OperatorCalls::get()->inferType;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, keys, vals, num, intypes, num_in, outtypes, num_out);
}

inline int _opCallInferSType(mxnet::ext::inferSType_t function, PASSLIB_ATTR_BLOCK, int* instypes,
                             int num_in, int* outstypes, int num_out) {
  const auto call = mxnet::ext::detail::OperatorCalls::get()->inferSType;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, keys, vals, num, instypes, num_in, outstypes, num_out);
}

inline int _opCallFCompute(mxnet::ext::fcomp_t function, PASSLIB_ATTR_BLOCK, PASSLIB_IO_BLOCK,
                           PASSLIB_RESOURCE_BLOCK) {
  const auto call = mxnet::ext::detail::OperatorCalls::get()->callFunction;
  return call == nullptr
             ? mxnet::ext::MX_FAIL
             : call(function, keys, vals, num, PASSLIB_IO_NAMES, PASSLIB_RESOURCE_NAMES);
}

inline int _opCallMutateInputs(mxnet::ext::mutateInputs_t function, PASSLIB_ATTR_BLOCK,
                               int** mutate_indices, int* indices_size) {
  const auto call = mxnet::ext::detail::OperatorCalls::get()->mutateInputs;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, keys, vals, num, mutate_indices, indices_size);
}

inline int _opCallCreateOpState(mxnet::ext::createOpState_t function, PASSLIB_ATTR_BLOCK,
                                const char* dev_type, int dev_id, unsigned int** inshapes,
                                int* indims, int num_in, const int* intypes, void** state_op) {
  const auto call = mxnet::ext::detail::OperatorCalls::get()->createOpState;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, keys, vals, num, dev_type, dev_id, inshapes, indims,
                                num_in, intypes, state_op);
}

inline void _opCallDestroyOpState(void* state_op) {
  const auto call = mxnet::ext::detail::OperatorCalls::get()->destroyOpState;
  if (call != nullptr) call(state_op);
}

inline int _opCallFStatefulCompute(int is_forward, void* state_op, PASSLIB_IO_BLOCK,
                                   PASSLIB_RESOURCE_BLOCK) {
  const auto call = mxnet::ext::detail::OperatorCalls::get()->callState;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(is_forward, state_op, PASSLIB_IO_NAMES, PASSLIB_RESOURCE_NAMES);
}

inline int _partRegSize() {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->size;
  return call == nullptr ? 0 : call();
}

inline int _partRegGetCount(int idx, const char** name) {
  *name = nullptr;
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->strategies;
  return call == nullptr ? 0 : call(idx, name);
}

inline void _partRegGet(int part_idx, int stg_idx, const char** strategy,
                        mxnet::ext::supportedOps_t* supported_ops,
                        mxnet::ext::createSelector_t* create_selector,
                        mxnet::ext::reviewSubgraph_t* review_subgraph, const char** op_name) {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->describe;
  *strategy = *op_name = nullptr;
  *supported_ops = nullptr;
  *create_selector = nullptr;
  *review_subgraph = nullptr;
  if (call == nullptr) return;
  call(part_idx, stg_idx, strategy, supported_ops, create_selector, review_subgraph, op_name);
}

inline int _partCallSupportedOps(mxnet::ext::supportedOps_t function, const char* json, int num_ids,
                                 int* ids, PASSLIB_OPTION_BLOCK) {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->supportedOps;
  return call == nullptr
             ? mxnet::ext::MX_FAIL
             : call(function, json, nullptr, num_ids, ids, opt_keys, opt_vals, num_opts);
}

inline int _passlibCallFlatSupportedOps(mxnet::ext::supportedOps_t function,
                                        const mxnet::ext::FlatModel* shown, int num_ids, int* ids,
                                        PASSLIB_OPTION_BLOCK) {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->supportedOps;
  return call == nullptr
             ? mxnet::ext::MX_FAIL
             : call(function, nullptr, shown, num_ids, ids, opt_keys, opt_vals, num_opts);
}

inline int _partCallCreateSelector(mxnet::ext::createSelector_t function, const char* json,
                                   void** selector, PASSLIB_OPTION_BLOCK) {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->createSelector;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, json, nullptr, selector, opt_keys, opt_vals, num_opts);
}

inline int _passlibCallFlatCreateSelector(mxnet::ext::createSelector_t function,
                                          const mxnet::ext::FlatModel* shown, void** selector,
                                          PASSLIB_OPTION_BLOCK) {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->createSelector;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, nullptr, shown, selector, opt_keys, opt_vals, num_opts);
}

inline void _partCallSelect(void* selector, int node, int* selected) {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->select;
  if (call != nullptr) call(selector, node, selected);
}

inline void _partCallSelectInput(void* selector, int node, int input_node, int* selected) {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->selectInput;
  if (call != nullptr) call(selector, node, input_node, selected);
}

inline void _partCallSelectOutput(void* selector, int node, int output_node, int* selected) {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->selectOutput;
  if (call != nullptr) call(selector, node, output_node, selected);
}

inline void _partCallFilter(void* selector, int* candidates, int num_candidates, int** keep,
                            int* num_keep) {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->filter;
  if (call != nullptr) call(selector, candidates, num_candidates, keep, num_keep);
}

inline void _partCallReset(void* selector) {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->reset;
  if (call != nullptr) call(selector);
}

inline void _passlibPartDestroySelector(void* selector) {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->destroySelector;
  if (call != nullptr) call(selector);
}

inline int _partCallReviewSubgraph(mxnet::ext::reviewSubgraph_t function, const char* json,
                                   int subgraph_id, int* accept, PASSLIB_OPTION_BLOCK,
                                   char*** attr_keys, char*** attr_vals, int* num_attrs,
                                   PASSLIB_PARAM_BLOCK(arg), PASSLIB_PARAM_BLOCK(aux)) {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->reviewSubgraph;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, json, nullptr, subgraph_id, accept, opt_keys, opt_vals,
                                num_opts, attr_keys, attr_vals, num_attrs, PASSLIB_PARAM_NAMES(arg),
                                PASSLIB_PARAM_NAMES(aux));
}

inline int _passlibCallFlatReviewSubgraph(mxnet::ext::reviewSubgraph_t function,
                                          const mxnet::ext::FlatModel* shown, int subgraph_id,
                                          int* accept, PASSLIB_OPTION_BLOCK, char*** attr_keys,
                                          char*** attr_vals, int* num_attrs,
                                          PASSLIB_PARAM_BLOCK(arg), PASSLIB_PARAM_BLOCK(aux)) {
  const auto call = mxnet::ext::detail::PartitionerCalls::get()->reviewSubgraph;
  return call == nullptr ? mxnet::ext::MX_FAIL
                         : call(function, nullptr, shown, subgraph_id, accept, opt_keys, opt_vals,
                                num_opts, attr_keys, attr_vals, num_attrs, PASSLIB_PARAM_NAMES(arg),
                                PASSLIB_PARAM_NAMES(aux));
}

}  // extern "C"

PASSLIB_END_CODE

#endif  // PASSLIB_NO_ENTRY_POINTS

#pragma GCC visibility pop

#ifdef PASSLIB_PATTERNS
#include "lib_patterns.h"
#endif

#endif  // a compiler that suffices
#endif  // MXNET_LIB_API_H_
