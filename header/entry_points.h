// ================================================================================================
// Entry points: the C functions that a host looks up
//
// All of them are cdecl and take plain C types. A returned int is 1 for success and 0 for failure,
// with the reasons in the message store. Arguments are borrowed for the call. Results are either
// static (names) or allocated with malloc, and the host releases them through _opCallFree of the
// same library. `fp` arguments are function pointers from the library's RegGet functions, opaque to
// the host. No C++ exception leaves these functions, except calls of a selector, which cannot
// report failure otherwise: whatever the selector throws reaches the host as a std::exception.
// ================================================================================================

// A block of parameters: num names, and for each the data, the shape (dims numbers), the dtype
// code, the version of the data, and the device. Arrays may be null if num is 0.
#define PASSLIB_PARAM_BLOCK(kind)                                                           \
  const char *const *kind##_names, int num_##kind, void *const *kind##_data,                \
      const int64_t *const *kind##_shapes, const int *kind##_dims, const int *kind##_types, \
      const size_t *kind##_IDs, const char *const *kind##_dev_type, const int *kind##_dev_id

// Options, or attributes: num pairs of strings.
#define PASSLIB_OPTION_BLOCK const char *const *opt_keys, const char *const *opt_vals, int num_opts
#define PASSLIB_ATTR_BLOCK const char *const *keys, const char *const *vals, int num

// Inputs and outputs of an operator, and the host's resources. intypes: dtype codes; instypes:
// storage types.
#define PASSLIB_IO_BLOCK                                                                           \
  const int64_t **inshapes, int *indims, void **indata, int *intypes, size_t *inIDs,               \
      const char **indev_type, int *indev_id, int num_in, const int64_t **outshapes, int *outdims, \
      void **outdata, int *outtypes, size_t *outIDs, const char **outdev_type, int *outdev_id,     \
      int num_out
#define PASSLIB_RESOURCE_BLOCK                                                                  \
  mxnet::ext::xpu_malloc_t cpu_malloc, void *cpu_alloc, mxnet::ext::xpu_malloc_t gpu_malloc,    \
      void *gpu_alloc, void *stream, mxnet::ext::sparse_malloc_t sparse_malloc,                 \
      void *sparse_alloc, int *instypes, int *outstypes, void **in_indices, void **out_indices, \
      void **in_indptr, void **out_indptr, int64_t *in_indices_shapes,                          \
      int64_t *out_indices_shapes, int64_t *in_indptr_shapes, int64_t *out_indptr_shapes,       \
      void *rng_cpu_states, void *rng_gpu_states

// The same blocks as arguments.
#define PASSLIB_PARAM_NAMES(kind)                                                              \
  kind##_names, num_##kind, kind##_data, kind##_shapes, kind##_dims, kind##_types, kind##_IDs, \
      kind##_dev_type, kind##_dev_id
#define PASSLIB_IO_NAMES                                                                      \
  inshapes, indims, indata, intypes, inIDs, indev_type, indev_id, num_in, outshapes, outdims, \
      outdata, outtypes, outIDs, outdev_type, outdev_id, num_out
#define PASSLIB_RESOURCE_NAMES                                                                 \
  cpu_malloc, cpu_alloc, gpu_malloc, gpu_alloc, stream, sparse_malloc, sparse_alloc, instypes, \
      outstypes, in_indices, out_indices, in_indptr, out_indptr, in_indices_shapes,            \
      out_indices_shapes, in_indptr_shapes, out_indptr_shapes, rng_cpu_states, rng_gpu_states

/// Version of the flat form of graphs: the structs whose names begin with Flat. A host uses it only
/// with libraries of the same version.
#define PASSLIB_FLAT_VERSION 2

/// An attribute, or a member of a JSON object, whose value is then JSON.
struct FlatPair {
  FlatText key;
  FlatText text;
};
/// The end of an edge: the position of the producer in its graph, its output, and the version.
struct FlatEdge {
  uint32_t node;
  int32_t entry;
  int32_t version;
};
/// A node. In a result, `op`, `name` and `packed` may be those of the node that the host showed at
/// this place of the outermost graph. What it has several of lies in the arrays of the model, as
/// many as it says, behind what the nodes before it have there.
struct FlatNode {
  FlatText op;
  FlatText name;
  /// Attributes in one block: their number n, at most 64; the bytes of all texts; n times the bytes
  /// of key and text; key and text in turn, without terminators; zeros up to a multiple of 4 bytes.
  /// Sorted by the bytes of the keys, none of which occurs twice. May be null; aligned to 4 bytes.
  const uint32_t* packed;
  uint32_t packed_words;      ///< length of `packed`; 0 if it is null
  uint32_t num_attrs;         ///< in `pairs`, in any order: attributes that are not packed
  uint32_t num_extra;         ///< in `pairs`, behind them: Node::extra
  uint32_t num_inputs;        ///< in `edges`
  uint32_t num_control_deps;  ///< in `control_deps`
  uint32_t num_subgraphs;     ///< in `graphs`
  int32_t num_outputs;        ///< as in Node
  uint32_t outputs_declared;  ///< 1: num_outputs is known for the present operator; 0: it is not
};
/// A graph. Its nodes lie in the model's `nodes`, behind those of the graphs before it. Behind what
/// its nodes have in the other arrays come its outputs, in `edges`, and its attributes, in `pairs`.
struct FlatGraph {
  uint64_t num_nodes;
  uint64_t num_outputs;
  uint64_t num_attrs;
};
/// The host's memory for large pieces: it knows how to get them from the kernel quickly. allocate
/// returns memory aligned to 64 bytes, or null; release takes it back. Both may be called in any
/// thread, also after the call of a pass.
struct FlatMemory {
  void* (*allocate)(uint64_t size);
  void (*release)(void* memory);
};
/// A graph with all that is nested in it, as plain arrays, for compilers and standard libraries
/// with different C++ types. graphs[0] is the outermost; the others are the subgraphs of all nodes
/// in turn. An array may be null if its length is 0. The texts are UTF-8. All belongs to who made
/// it, and none of it is changed; arrays of a result may be those that the host showed.
struct FlatModel {
  uint32_t version;  ///< PASSLIB_FLAT_VERSION
  uint32_t size;     ///< sizeof(FlatModel)
  const FlatGraph* graphs;
  uint64_t num_graphs;
  const FlatNode* nodes;
  uint64_t num_nodes;
  const FlatEdge* edges;
  uint64_t num_edges;
  const uint32_t* control_deps;  ///< positions of nodes in their graph
  uint64_t num_control_deps;
  const FlatPair* pairs;
  uint64_t num_pairs;
  uint64_t packed_words;  ///< of all nodes
  FlatMemory memory;      ///< of the host; nothing looks at that of a result
  void* owner;            ///< for who made it
  /// Null, or infers the types of all nodes: returns __ext_shape__ and __ext_dtype__ of each node
  /// of graphs[0] in turn, which stay valid until the call of the pass returns; null if that
  /// failed, and then the host fails the call. Any thread may call it, before the pass returns.
  const FlatText* (*types)(const void* host);
  const void* host;  ///< what `types` gets
};

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
typedef int (*opCallParseAttrs_t)(parseAttrs_t function, PASSLIB_ATTR_BLOCK, int* num_in,
                                  int* num_out);
typedef int (*opCallInferShape_t)(inferShape_t function, PASSLIB_ATTR_BLOCK,
                                  unsigned int** inshapes, int* indims, int num_in,
                                  unsigned int*** mod_inshapes, int** mod_indims,
                                  unsigned int*** outshapes, int** outdims, int num_out);
typedef int (*opCallInferType_t)(inferType_t function, PASSLIB_ATTR_BLOCK, int* intypes, int num_in,
                                 int* outtypes, int num_out);
typedef int (*opCallInferSType_t)(inferSType_t function, PASSLIB_ATTR_BLOCK, int* instypes,
                                  int num_in, int* outstypes, int num_out);
typedef int (*opCallFComp_t)(fcomp_t function, PASSLIB_ATTR_BLOCK, PASSLIB_IO_BLOCK,
                             PASSLIB_RESOURCE_BLOCK);
typedef int (*opCallMutateInputs_t)(mutateInputs_t function, PASSLIB_ATTR_BLOCK,
                                    int** mutate_indices, int* indices_size);
typedef int (*opCallCreateOpState_t)(createOpState_t function, PASSLIB_ATTR_BLOCK,
                                     const char* dev_type, int dev_id, unsigned int** inshapes,
                                     int* indims, int num_in, const int* intypes, void** state_op);
typedef void (*opCallDestroyOpState_t)(void* state_op);
typedef int (*opCallFStatefulComp_t)(int is_forward, void* state_op, PASSLIB_IO_BLOCK,
                                     PASSLIB_RESOURCE_BLOCK);

typedef int (*partRegSize_t)();
typedef int (*partRegGetCount_t)(int idx, const char** name);
typedef void (*partRegGet_t)(int part_idx, int stg_idx, const char** strategy,
                             supportedOps_t* supported_ops, createSelector_t* create_selector,
                             reviewSubgraph_t* review_subgraph, const char** op_name);
typedef int (*partCallSupportedOps_t)(supportedOps_t function, const char* json, int num_ids,
                                      int* ids, PASSLIB_OPTION_BLOCK);
typedef int (*partCallCreateSelector_t)(createSelector_t function, const char* json,
                                        void** selector, PASSLIB_OPTION_BLOCK);
typedef void (*partCallSelect_t)(void* selector, int node, int* selected);
typedef void (*partCallSelectInput_t)(void* selector, int node, int input_node, int* selected);
typedef void (*partCallSelectOutput_t)(void* selector, int node, int output_node, int* selected);
typedef void (*partCallFilter_t)(void* selector, int* candidates, int num_candidates, int** keep,
                                 int* num_keep);
typedef void (*partCallReset_t)(void* selector);
typedef int (*partCallReviewSubgraph_t)(reviewSubgraph_t function, const char* json,
                                        int subgraph_id, int* accept, PASSLIB_OPTION_BLOCK,
                                        char*** attr_keys, char*** attr_vals, int* num_attrs,
                                        PASSLIB_PARAM_BLOCK(arg), PASSLIB_PARAM_BLOCK(aux));

typedef void (*passlibPartDestroySelector_t)(void* selector);
typedef int (*passlibCallFlatSupportedOps_t)(supportedOps_t function, const FlatModel* shown,
                                             int num_ids, int* ids, PASSLIB_OPTION_BLOCK);
typedef int (*passlibCallFlatCreateSelector_t)(createSelector_t function, const FlatModel* shown,
                                               void** selector, PASSLIB_OPTION_BLOCK);
typedef int (*passlibCallFlatReviewSubgraph_t)(reviewSubgraph_t function, const FlatModel* shown,
                                               int subgraph_id, int* accept, PASSLIB_OPTION_BLOCK,
                                               char*** attr_keys, char*** attr_vals, int* num_attrs,
                                               PASSLIB_PARAM_BLOCK(arg), PASSLIB_PARAM_BLOCK(aux));

typedef int (*passRegSize_t)();
typedef void (*passRegGet_t)(int idx, graphPass_t* function, const char** name);
typedef int (*passCallGraphPass_t)(graphPass_t function, const char* in_graph, char** out_graph,
                                   PASSLIB_OPTION_BLOCK, const char* pass_name,
                                   PASSLIB_PARAM_BLOCK(arg), PASSLIB_PARAM_BLOCK(aux),
                                   nd_malloc_t nd_malloc, const void* nd_alloc);
typedef int (*passlibFlatVersion_t)();
typedef int (*passlibCallFlatPass_t)(graphPass_t function, const FlatModel* shown,
                                     const FlatModel** result, PASSLIB_OPTION_BLOCK,
                                     const char* pass_name, PASSLIB_PARAM_BLOCK(arg),
                                     PASSLIB_PARAM_BLOCK(aux), nd_malloc_t nd_malloc,
                                     const void* nd_alloc);
typedef void (*passlibFreeFlat_t)(const FlatModel* model);
typedef int (*interrupted_t)(const void* host);
typedef void (*passlibSetInterrupted_t)(interrupted_t function, const void* host);
/// Sets *data to the elements of a parameter on demand, aligned, valid until the call returns; null
/// if there is no memory for them. nd_alloc: of the call; weight: ID of the parameter in its block.
typedef void (*readWeight_t)(const void* nd_alloc, size_t weight, const void** data);
/// Makes the argument `name` of the elements of a parameter on demand, each run of (elements /
/// count) of them multiplied by one factor. For a null `name` it makes nothing, and says whether
/// all results are finite. Returns 1, 0 for a result that is not finite, or -1 if this is not
/// possible for such a parameter.
typedef int (*scaleWeight_t)(const void* nd_alloc, size_t weight, const double* factors,
                             size_t count, const char* name);
typedef void (*passlibSetWeights_t)(readWeight_t read, scaleWeight_t scale);
typedef int (*passlibDeclarations_t)(const char** json);
typedef const char* (*passlibLoadErrors_t)();

}  // namespace passlib_api
}  // namespace ext
}  // namespace mxnet

extern "C" {

/// Defined by the author of the library. Called once when the library is loaded, with
/// 10000 * major + 100 * minor + patch of the host's MXNet version. MX_FAIL makes the host reject
/// the library.
PASSLIB_EXPORT mxnet::ext::MXReturnValue initialize(int version);

#ifndef PASSLIB_NO_ENTRY_POINTS
#define PASSLIB_ENTRY inline __attribute__((used)) PASSLIB_EXPORT

/// Version of the extension ABI.
PASSLIB_ENTRY int _opVersion();
/// Number of messages.
PASSLIB_ENTRY int _msgSize();
/// Message number idx, owned by the library; null if out of range.
PASSLIB_ENTRY void _msgGet(int idx, const char** msg);
/// Releases memory that a call of this library returned, or null.
PASSLIB_ENTRY void _opCallFree(void* ptr);

/// Number of passes; pass number idx.
PASSLIB_ENTRY int _passRegSize();
PASSLIB_ENTRY void _passRegGet(int idx, mxnet::ext::graphPass_t* function, const char** name);
/// *json: what the passes declare, as JSON text that lives until the process ends; null if none
/// declares anything. The text is
///
///     {"version": 1, "passes": [{"name": "fold", "description": "...", "dialects": ["onnx"],
///      "needs_weights": true, "weights_on_demand": true, "needs_shapes": false,
///      "any_options": false, "options":
///      [{"name": "level", "kind": "integer", "list": false, "default": 1, "description": "...",
///        "choices": [], "range": [1, 3]}],
///      "exact": true, "triggers": ["Mul"],
///      "joins": {"pipelines": ["clean", "simplify"], "after": "", "cost": "weights",
///                "options": {"level": 3}, "rounding": {}}}]}
///
/// with the kinds boolean, integer, real and text. "weights_on_demand", and what follows "options",
/// may be absent, for false, [] and no pipeline. Not part of MXNet's ABI.
PASSLIB_ENTRY int _passlibDeclarations(const char** json);
/// Runs a pass on a graph in JSON. A parameter whose data is null, though its shape has elements,
/// is one that the host does not lend. *out_graph: the result as malloc'd JSON, null on failure.
PASSLIB_ENTRY int _passCallGraphPass(mxnet::ext::graphPass_t function, const char* in_graph,
                                     char** out_graph, PASSLIB_OPTION_BLOCK, const char* pass_name,
                                     PASSLIB_PARAM_BLOCK(arg), PASSLIB_PARAM_BLOCK(aux),
                                     mxnet::ext::nd_malloc_t nd_malloc, const void* nd_alloc);

/// Version of the flat form that the library takes and returns. No function whose name begins with
/// _passlib is part of MXNet's ABI.
PASSLIB_ENTRY int _passlibFlatVersion();
/// Runs a pass on a graph in the flat form, which the host owns and keeps until the call returns.
/// *result: the result, null on failure. It belongs to the library, with all that it points to,
/// except for what FlatNode says; the host reads it and then calls _passlibFreeFlat.
PASSLIB_ENTRY int _passlibCallFlatPass(mxnet::ext::graphPass_t function,
                                       const mxnet::ext::FlatModel* shown,
                                       const mxnet::ext::FlatModel** result, PASSLIB_OPTION_BLOCK,
                                       const char* pass_name, PASSLIB_PARAM_BLOCK(arg),
                                       PASSLIB_PARAM_BLOCK(aux), mxnet::ext::nd_malloc_t nd_malloc,
                                       const void* nd_alloc);
/// Releases a result of _passlibCallFlatPass, or null.
PASSLIB_ENTRY void _passlibFreeFlat(const mxnet::ext::FlatModel* model);
/// Sets what passInterrupted() asks: function(host), which returns 0 or 1, needs no lock, never
/// throws, and stays valid until the process ends. Called before initialize. Not part of MXNet's
/// ABI.
PASSLIB_ENTRY void _passlibSetInterrupted(mxnet::ext::interrupted_t function, const void* host);
/// Sets what Node::readTensor() asks, before initialize. In a call of a pass that takes weights on
/// demand, a parameter whose elements are asked for has null data and an ID that is not 0. Not part
/// of MXNet's ABI.
PASSLIB_ENTRY void _passlibSetWeights(mxnet::ext::readWeight_t read,
                                      mxnet::ext::scaleWeight_t scale);
/// Returns why the library cannot be used, such as a pattern that is not well-formed: a line for
/// each reason, or null. The host asks before initialize().
PASSLIB_ENTRY const char* _passlibLoadErrors();

/// Number of operators; operator number idx. The library owns the arrays, with one entry per
/// context; functions that were not set are null.
PASSLIB_ENTRY int _opRegSize();
PASSLIB_ENTRY void _opRegGet(int idx, const char** name, int* isSGop, const char*** forward_ctx,
                             mxnet::ext::fcomp_t** forward_fp, int* forward_count,
                             const char*** backward_ctx, mxnet::ext::fcomp_t** backward_fp,
                             int* backward_count, const char*** create_op_ctx,
                             mxnet::ext::createOpState_t** create_op_fp, int* create_op_count,
                             mxnet::ext::parseAttrs_t* parse, mxnet::ext::inferType_t* type,
                             mxnet::ext::inferSType_t* stype, mxnet::ext::inferShape_t* shape,
                             mxnet::ext::mutateInputs_t* mutate);
PASSLIB_ENTRY int _opCallParseAttrs(mxnet::ext::parseAttrs_t function, PASSLIB_ATTR_BLOCK,
                                    int* num_in, int* num_out);
/// *mod_inshapes and *outshapes: malloc'd arrays of malloc'd shapes, those of the inputs possibly
/// changed; *mod_indims and *outdims: malloc'd arrays of their lengths. Nothing is set on failure.
PASSLIB_ENTRY int _opCallInferShape(mxnet::ext::inferShape_t function, PASSLIB_ATTR_BLOCK,
                                    unsigned int** inshapes, int* indims, int num_in,
                                    unsigned int*** mod_inshapes, int** mod_indims,
                                    unsigned int*** outshapes, int** outdims, int num_out);
/// Types are changed in place.
PASSLIB_ENTRY int _opCallInferType(mxnet::ext::inferType_t function, PASSLIB_ATTR_BLOCK,
                                   int* intypes, int num_in, int* outtypes, int num_out);
PASSLIB_ENTRY int _opCallInferSType(mxnet::ext::inferSType_t function, PASSLIB_ATTR_BLOCK,
                                    int* instypes, int num_in, int* outstypes, int num_out);
PASSLIB_ENTRY int _opCallFCompute(mxnet::ext::fcomp_t function, PASSLIB_ATTR_BLOCK,
                                  PASSLIB_IO_BLOCK, PASSLIB_RESOURCE_BLOCK);
/// *mutate_indices is malloc'd.
PASSLIB_ENTRY int _opCallMutateInputs(mxnet::ext::mutateInputs_t function, PASSLIB_ATTR_BLOCK,
                                      int** mutate_indices, int* indices_size);
/// *state_op is a CustomStatefulOp, to be destroyed by _opCallDestroyOpState.
PASSLIB_ENTRY int _opCallCreateOpState(mxnet::ext::createOpState_t function, PASSLIB_ATTR_BLOCK,
                                       const char* dev_type, int dev_id, unsigned int** inshapes,
                                       int* indims, int num_in, const int* intypes,
                                       void** state_op);
PASSLIB_ENTRY void _opCallDestroyOpState(void* state_op);
PASSLIB_ENTRY int _opCallFStatefulCompute(int is_forward, void* state_op, PASSLIB_IO_BLOCK,
                                          PASSLIB_RESOURCE_BLOCK);

/// Number of partitioners; name and number of strategies of number idx; strategy stg_idx of it.
PASSLIB_ENTRY int _partRegSize();
PASSLIB_ENTRY int _partRegGetCount(int idx, const char** name);
PASSLIB_ENTRY void _partRegGet(int part_idx, int stg_idx, const char** strategy,
                               mxnet::ext::supportedOps_t* supported_ops,
                               mxnet::ext::createSelector_t* create_selector,
                               mxnet::ext::reviewSubgraph_t* review_subgraph, const char** op_name);
PASSLIB_ENTRY int _partCallSupportedOps(mxnet::ext::supportedOps_t function, const char* json,
                                        int num_ids, int* ids, PASSLIB_OPTION_BLOCK);
/// *selector is opaque, for the functions below.
PASSLIB_ENTRY int _partCallCreateSelector(mxnet::ext::createSelector_t function, const char* json,
                                          void** selector, PASSLIB_OPTION_BLOCK);
PASSLIB_ENTRY void _partCallSelect(void* selector, int node, int* selected);
PASSLIB_ENTRY void _partCallSelectInput(void* selector, int node, int input_node, int* selected);
PASSLIB_ENTRY void _partCallSelectOutput(void* selector, int node, int output_node, int* selected);
/// *keep is malloc'd.
PASSLIB_ENTRY void _partCallFilter(void* selector, int* candidates, int num_candidates, int** keep,
                                   int* num_keep);
PASSLIB_ENTRY void _partCallReset(void* selector);
/// Destroys a selector and its graph.
PASSLIB_ENTRY void _passlibPartDestroySelector(void* selector);
/// The same as the functions of partitioners whose names end alike, with the graph in the flat
/// form. The library copies what it keeps.
PASSLIB_ENTRY int _passlibCallFlatSupportedOps(mxnet::ext::supportedOps_t function,
                                               const mxnet::ext::FlatModel* shown, int num_ids,
                                               int* ids, PASSLIB_OPTION_BLOCK);
PASSLIB_ENTRY int _passlibCallFlatCreateSelector(mxnet::ext::createSelector_t function,
                                                 const mxnet::ext::FlatModel* shown,
                                                 void** selector, PASSLIB_OPTION_BLOCK);
PASSLIB_ENTRY int _passlibCallFlatReviewSubgraph(mxnet::ext::reviewSubgraph_t function,
                                                 const mxnet::ext::FlatModel* shown,
                                                 int subgraph_id, int* accept, PASSLIB_OPTION_BLOCK,
                                                 char*** attr_keys, char*** attr_vals,
                                                 int* num_attrs, PASSLIB_PARAM_BLOCK(arg),
                                                 PASSLIB_PARAM_BLOCK(aux));
/// *attr_keys and *attr_vals are malloc'd arrays of malloc'd strings, null if there are none.
PASSLIB_ENTRY int _partCallReviewSubgraph(mxnet::ext::reviewSubgraph_t function, const char* json,
                                          int subgraph_id, int* accept, PASSLIB_OPTION_BLOCK,
                                          char*** attr_keys, char*** attr_vals, int* num_attrs,
                                          PASSLIB_PARAM_BLOCK(arg), PASSLIB_PARAM_BLOCK(aux));
#endif  // PASSLIB_NO_ENTRY_POINTS

}  // extern "C"
