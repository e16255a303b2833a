// The types of the C functions that the host looks up in a library, whose contracts are in
// lib_api.h.
#ifndef PASSLIB_LIBRARY_ENTRY_POINTS_H_
#define PASSLIB_LIBRARY_ENTRY_POINTS_H_

#include "header.h"

namespace mxnet::ext {

typedef int (*opVersion_t)();
typedef int (*initialize_t)(int version);
typedef int (*msgSize_t)();
typedef void (*msgGet_t)(int idx, const char** msg);

typedef int (*opRegSize_t)();
typedef void (*opRegGet_t)(int idx, const char** name, int* isSGop, const char*** forward_ctx,
                           fcomp_t** forward_fp, int* forward_count, const char*** backward_ctx,
                           fcomp_t** backward_fp, int* backward_count, const char*** create_op_ctx,
                           createOpState_t** create_op_fp, int* create_op_count,
                           parseAttrs_t* parse, inferType_t* type, inferSType_t* stype,
                           inferShape_t* shape, mutateInputs_t* mutate);
typedef void (*opCallFree_t)(void* ptr);
typedef int (*opCallParseAttrs_t)(parseAttrs_t function, const char* const* keys,
                                  const char* const* vals, int num, int* num_in, int* num_out);
typedef int (*opCallInferShape_t)(inferShape_t function, const char* const* keys,
                                  const char* const* vals, int num, unsigned int** inshapes,
                                  int* indims, int num_in, unsigned int*** mod_inshapes,
                                  int** mod_indims, unsigned int*** outshapes, int** outdims,
                                  int num_out);
typedef int (*opCallInferType_t)(inferType_t function, const char* const* keys,
                                 const char* const* vals, int num, int* intypes, int num_in,
                                 int* outtypes, int num_out);
typedef int (*opCallInferSType_t)(inferSType_t function, const char* const* keys,
                                  const char* const* vals, int num, int* instypes, int num_in,
                                  int* outstypes, int num_out);
typedef int (*opCallFComp_t)(
    fcomp_t function, const char* const* keys, const char* const* vals, int num,
    const int64_t** inshapes, int* indims, void** indata, int* intypes, size_t* inIDs,
    const char** indev_type, int* indev_id, int num_in, const int64_t** outshapes, int* outdims,
    void** outdata, int* outtypes, size_t* outIDs, const char** outdev_type, int* outdev_id,
    int num_out, xpu_malloc_t cpu_malloc, void* cpu_alloc, xpu_malloc_t gpu_malloc, void* gpu_alloc,
    void* stream, sparse_malloc_t sparse_malloc, void* sparse_alloc, int* instypes, int* outstypes,
    void** in_indices, void** out_indices, void** in_indptr, void** out_indptr,
    int64_t* in_indices_shapes, int64_t* out_indices_shapes, int64_t* in_indptr_shapes,
    int64_t* out_indptr_shapes, void* rng_cpu_states, void* rng_gpu_states);
typedef int (*opCallMutateInputs_t)(mutateInputs_t function, const char* const* keys,
                                    const char* const* vals, int num, int** mutate_indices,
                                    int* indices_size);
typedef int (*opCallCreateOpState_t)(createOpState_t function, const char* const* keys,
                                     const char* const* vals, int num, const char* dev_type,
                                     int dev_id, unsigned int** inshapes, int* indims, int num_in,
                                     const int* intypes, void** state_op);
typedef void (*opCallDestroyOpState_t)(void* state_op);
typedef int (*opCallFStatefulComp_t)(
    int is_forward, void* state_op, const int64_t** inshapes, int* indims, void** indata,
    int* intypes, size_t* inIDs, const char** indev_type, int* indev_id, int num_in,
    const int64_t** outshapes, int* outdims, void** outdata, int* outtypes, size_t* outIDs,
    const char** outdev_type, int* outdev_id, int num_out, xpu_malloc_t cpu_malloc, void* cpu_alloc,
    xpu_malloc_t gpu_malloc, void* gpu_alloc, void* stream, sparse_malloc_t sparse_malloc,
    void* sparse_alloc, int* instypes, int* outstypes, void** in_indices, void** out_indices,
    void** in_indptr, void** out_indptr, int64_t* in_indices_shapes, int64_t* out_indices_shapes,
    int64_t* in_indptr_shapes, int64_t* out_indptr_shapes, void* rng_cpu_states,
    void* rng_gpu_states);

typedef int (*partRegSize_t)();
typedef int (*partRegGetCount_t)(int idx, const char** name);
typedef void (*partRegGet_t)(int part_idx, int stg_idx, const char** strategy,
                             supportedOps_t* supported_ops, createSelector_t* create_selector,
                             reviewSubgraph_t* review_subgraph, const char** op_name);
typedef int (*partCallSupportedOps_t)(supportedOps_t function, const char* json, int num_ids,
                                      int* ids, const char* const* opt_keys,
                                      const char* const* opt_vals, int num_opts);
typedef int (*partCallCreateSelector_t)(createSelector_t function, const char* json,
                                        void** selector, const char* const* opt_keys,
                                        const char* const* opt_vals, int num_opts);
typedef void (*partCallSelect_t)(void* selector, int node, int* selected);
typedef void (*partCallSelectInput_t)(void* selector, int node, int input_node, int* selected);
typedef void (*partCallSelectOutput_t)(void* selector, int node, int output_node, int* selected);
typedef void (*partCallFilter_t)(void* selector, int* candidates, int num_candidates, int** keep,
                                 int* num_keep);
typedef void (*partCallReset_t)(void* selector);
typedef int (*partCallReviewSubgraph_t)(
    reviewSubgraph_t function, const char* json, int subgraph_id, int* accept,
    const char* const* opt_keys, const char* const* opt_vals, int num_opts, char*** attr_keys,
    char*** attr_vals, int* num_attrs, const char* const* arg_names, int num_arg,
    void* const* arg_data, const int64_t* const* arg_shapes, const int* arg_dims,
    const int* arg_types, const size_t* arg_IDs, const char* const* arg_dev_type,
    const int* arg_dev_id, const char* const* aux_names, int num_aux, void* const* aux_data,
    const int64_t* const* aux_shapes, const int* aux_dims, const int* aux_types,
    const size_t* aux_IDs, const char* const* aux_dev_type, const int* aux_dev_id);

typedef void (*passlibPartDestroySelector_t)(void* selector);
typedef int (*passlibCallFlatSupportedOps_t)(supportedOps_t function, const FlatModel* shown,
                                             int num_ids, int* ids, const char* const* opt_keys,
                                             const char* const* opt_vals, int num_opts);
typedef int (*passlibCallFlatCreateSelector_t)(createSelector_t function, const FlatModel* shown,
                                               void** selector, const char* const* opt_keys,
                                               const char* const* opt_vals, int num_opts);
typedef int (*passlibCallFlatReviewSubgraph_t)(
    reviewSubgraph_t function, const FlatModel* shown, int subgraph_id, int* accept,
    const char* const* opt_keys, const char* const* opt_vals, int num_opts, char*** attr_keys,
    char*** attr_vals, int* num_attrs, const char* const* arg_names, int num_arg,
    void* const* arg_data, const int64_t* const* arg_shapes, const int* arg_dims,
    const int* arg_types, const size_t* arg_IDs, const char* const* arg_dev_type,
    const int* arg_dev_id, const char* const* aux_names, int num_aux, void* const* aux_data,
    const int64_t* const* aux_shapes, const int* aux_dims, const int* aux_types,
    const size_t* aux_IDs, const char* const* aux_dev_type, const int* aux_dev_id);

typedef int (*passRegSize_t)();
typedef void (*passRegGet_t)(int idx, graphPass_t* function, const char** name);
typedef int (*passCallGraphPass_t)(
    graphPass_t function, const char* in_graph, char** out_graph, const char* const* opt_keys,
    const char* const* opt_vals, int num_opts, const char* pass_name, const char* const* arg_names,
    int num_arg, void* const* arg_data, const int64_t* const* arg_shapes, const int* arg_dims,
    const int* arg_types, const size_t* arg_IDs, const char* const* arg_dev_type,
    const int* arg_dev_id, const char* const* aux_names, int num_aux, void* const* aux_data,
    const int64_t* const* aux_shapes, const int* aux_dims, const int* aux_types,
    const size_t* aux_IDs, const char* const* aux_dev_type, const int* aux_dev_id,
    nd_malloc_t nd_malloc, const void* nd_alloc);
typedef int (*passlibFlatVersion_t)();
typedef int (*passlibCallFlatPass_t)(
    graphPass_t function, const FlatModel* shown, const FlatModel** result,
    const char* const* opt_keys, const char* const* opt_vals, int num_opts, const char* pass_name,
    const char* const* arg_names, int num_arg, void* const* arg_data,
    const int64_t* const* arg_shapes, const int* arg_dims, const int* arg_types,
    const size_t* arg_IDs, const char* const* arg_dev_type, const int* arg_dev_id,
    const char* const* aux_names, int num_aux, void* const* aux_data,
    const int64_t* const* aux_shapes, const int* aux_dims, const int* aux_types,
    const size_t* aux_IDs, const char* const* aux_dev_type, const int* aux_dev_id,
    nd_malloc_t nd_malloc, const void* nd_alloc);
typedef void (*passlibFreeFlat_t)(const FlatModel* model);
typedef void (*passlibSetInterrupted_t)(interrupted_t function, const void* host);
typedef void (*passlibSetWeights_t)(readWeight_t read, scaleWeight_t scale);
typedef int (*passlibDeclarations_t)(const char** json);
typedef const char* (*passlibLoadErrors_t)();

}  // namespace mxnet::ext

#endif  // PASSLIB_LIBRARY_ENTRY_POINTS_H_
