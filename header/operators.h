// ================================================================================================
// Operators
// ================================================================================================

typedef void* (*xpu_malloc_t)(void* allocator, int size);
typedef void (*sparse_malloc_t)(void* allocator, int index, int indices_len, int indptr_len,
                                void** data, int64_t** indices, int64_t** indptr);

/// Numbers of random number states: one for each thread of an operator, so that threads never wait
/// for each other.
#define MX_NUM_CPU_RANDOM_STATES 1024
#define MX_NUM_GPU_RANDOM_STATES 32768

typedef std::mt19937 mx_cpu_rand_t;
#if defined(__NVCC__)
typedef cudaStream_t mx_stream_t;
typedef curandStatePhilox4_32_10_t mx_gpu_rand_t;
#else
typedef void* mx_stream_t;
typedef void* mx_gpu_rand_t;
#endif

/// Resources that an operator may request while it computes. The host owns all of them, until the
/// call returns.
class OpResource {
 public:
  OpResource(xpu_malloc_t cpu_malloc, void* cpu_alloc, xpu_malloc_t gpu_malloc, void* gpu_alloc,
             void* stream, sparse_malloc_t sparse_malloc, void* sparse_alloc, void* rng_cpu_states,
             void* rng_gpu_states)
      : cpu_malloc_(cpu_malloc),
        gpu_malloc_(gpu_malloc),
        sparse_malloc_(sparse_malloc),
        cpu_alloc_(cpu_alloc),
        gpu_alloc_(gpu_alloc),
        sparse_alloc_(sparse_alloc),
        stream_(stream),
        rng_cpu_states_(rng_cpu_states),
        rng_gpu_states_(rng_gpu_states) {}

  /// Scratch memory of `size` bytes, zero in passlib and uninitialised in MXNet; null if the host
  /// has none. MXNet has one workspace, which each request invalidates: request all memory at once.
  void* alloc_cpu(int size) const { return cpu_malloc_(cpu_alloc_, size); }
  void* alloc_gpu(int size) const { return gpu_malloc_(gpu_alloc_, size); }
  /// Allocates sparse output number `index`: indices_len values (CSR) or rows (row sparse), and
  /// indptr_len row starts (CSR only; rows + 1). Sets data, indices, indptr and their lengths;
  /// data_len only for CSR, since the length of a row is unknown here.
  void alloc_sparse(MXSparse* sparse, int index, int indices_len, int indptr_len = 0) const;
  mx_stream_t get_cuda_stream() const { return static_cast<mx_stream_t>(stream_); }
  /// MX_NUM_CPU_RANDOM_STATES states, seeded by the host.
  mx_cpu_rand_t* get_cpu_rand_states() const {
    return static_cast<mx_cpu_rand_t*>(rng_cpu_states_);
  }
  /// Null without a GPU.
  mx_gpu_rand_t* get_gpu_rand_states() const {
    return static_cast<mx_gpu_rand_t*>(rng_gpu_states_);
  }

 private:
  xpu_malloc_t cpu_malloc_;
  xpu_malloc_t gpu_malloc_;
  sparse_malloc_t sparse_malloc_;
  void* cpu_alloc_;
  void* gpu_alloc_;
  void* sparse_alloc_;
  void* stream_;
  void* rng_cpu_states_;
  void* rng_gpu_states_;
};

/// An operator with state between calls. The function given to setCreateOpState creates one for
/// each node of a running model; the host destroys it.
class CustomStatefulOp {
 public:
  CustomStatefulOp() : ignore_warn(false), created_(false) {}
  virtual ~CustomStatefulOp() {}

  /// Creates a state that the host can destroy: *state = CustomStatefulOp::create<My>(x);
  template <class Operator, typename... Arguments>
  static CustomStatefulOp* create(Arguments... arguments) {
    CustomStatefulOp* state = new Operator(arguments...);
    state->created_ = true;
    return state;
  }
  bool wasCreated() const { return created_; }

  virtual MXReturnValue Forward(std::vector<MXTensor>* inputs, std::vector<MXTensor>* outputs,
                                const OpResource& op_res) = 0;
  /// `inputs`: gradients of the outputs, then the inputs, then the outputs of Forward. `outputs`:
  /// one gradient per input.
  inline virtual MXReturnValue Backward(std::vector<MXTensor>* inputs,
                                        std::vector<MXTensor>* outputs, const OpResource& op_res);

  /// Set to silence the host's warning about a state that was not made by create.
  bool ignore_warn;

 private:
  bool created_;  // hosts read both flags at their offsets: directly after the vtable pointer
};

/// Computes an operator. The host allocates all tensors except sparse outputs (see
/// OpResource::alloc_sparse). For a backward function see CustomStatefulOp::Backward.
typedef MXReturnValue (*fcomp_t)(const options_map_t& attributes, std::vector<MXTensor>* inputs,
                                 std::vector<MXTensor>* outputs, const OpResource& res);
/// Sets the numbers of inputs and outputs of an operator with these attributes.
typedef MXReturnValue (*parseAttrs_t)(const options_map_t& attributes, int* num_inputs,
                                      int* num_outputs);
/// Infers dtype codes; -1 is unknown. May also fill in unknown inputs.
typedef MXReturnValue (*inferType_t)(const options_map_t& attributes, std::vector<int>* in_types,
                                     std::vector<int>* out_types);
/// Infers storage types (MXStorageType). Without this function all tensors are dense.
typedef MXReturnValue (*inferSType_t)(const options_map_t& attributes,
                                      std::vector<int>* in_storage_types,
                                      std::vector<int>* out_storage_types);
/// Infers shapes. An unknown input shape is empty, as is that of a scalar; an unknown extent is
/// UINT32_MAX. out_shapes has one empty shape for each output. May also fill in unknown inputs.
typedef MXReturnValue (*inferShape_t)(const options_map_t& attributes,
                                      std::vector<std::vector<unsigned int> >* in_shapes,
                                      std::vector<std::vector<unsigned int> >* out_shapes);
/// Lists the inputs that the operator writes to; they become auxiliary states of the model.
typedef MXReturnValue (*mutateInputs_t)(const options_map_t& attributes,
                                        std::vector<int>* input_indices);
/// Creates the state of one node, with inputs of these shapes and dtype codes. For an operator that
/// runs subgraphs, attributes[MX_STR_SUBGRAPH_SYM_JSON] is the subgraph.
typedef MXReturnValue (*createOpState_t)(const options_map_t& attributes, const MXContext& ctx,
                                         const std::vector<std::vector<unsigned int> >& in_shapes,
                                         const std::vector<int> in_types, CustomStatefulOp**);

/// An operator as registered by a library. Contexts are "cpu" and "gpu", with one function for
/// each. Required: parseAttrs, inferType, inferShape, and a forward function or a state; for
/// subgraph operators only a state.
class CustomOp {
 public:
  explicit CustomOp(const char* op_name)
      : name(op_name),
        parse_attrs(nullptr),
        infer_type(nullptr),
        infer_storage_type(nullptr),
        infer_shape(nullptr),
        mutate_inputs(nullptr),
        isSGop(false),
        valid(true) {}

  CustomOp& setForward(fcomp_t function, const char* ctx) {
    return add(function, ctx, "forward", &forward_fp, &forward_ctx_cstr);
  }
  CustomOp& setBackward(fcomp_t function, const char* ctx) {
    return add(function, ctx, "backward", &backward_fp, &backward_ctx_cstr);
  }
  CustomOp& setCreateOpState(createOpState_t function, const char* ctx) {
    return add(function, ctx, "createOpState", &create_op_fp, &create_op_ctx_cstr);
  }
  CustomOp& setParseAttrs(parseAttrs_t function) { return set(&parse_attrs, function); }
  CustomOp& setInferType(inferType_t function) { return set(&infer_type, function); }
  CustomOp& setInferSType(inferSType_t function) { return set(&infer_storage_type, function); }
  CustomOp& setInferShape(inferShape_t function) { return set(&infer_shape, function); }
  CustomOp& setMutateInputs(mutateInputs_t function) { return set(&mutate_inputs, function); }
  /// Declares an operator whose nodes have a subgraph, as partitioners create them.
  CustomOp& setIsSubgraphOp() { return set(&isSGop, true); }

  const char* name;
  parseAttrs_t parse_attrs;
  inferType_t infer_type;
  inferSType_t infer_storage_type;
  inferShape_t infer_shape;
  mutateInputs_t mutate_inputs;
  bool isSGop;
  bool valid;  ///< false after a second function for one context
  std::vector<const char*> forward_ctx_cstr, backward_ctx_cstr, create_op_ctx_cstr;
  std::vector<fcomp_t> forward_fp, backward_fp;
  std::vector<createOpState_t> create_op_fp;

 private:
  template <typename ValueType>
  CustomOp& set(ValueType* member, ValueType value) {
    *member = value;
    return *this;
  }
  template <typename Function>
  CustomOp& add(Function function, const char* ctx, const char* what,
                std::vector<Function>* functions, std::vector<const char*>* contexts);
};

/// Registers an operator: REGISTER_OP(my_gemm).setForward(forward, "cpu").setParseAttrs(parse)...
#define REGISTER_OP(Name)                                                                       \
  static mxnet::ext::CustomOp& MX_STR_CONCAT(MX_STR_CONCAT(MXNet_CustomOp_, Name), __COUNTER__) \
      __attribute__((unused)) =                                                                 \
          mxnet::ext::Registry<mxnet::ext::CustomOp>::get() -> add(MX_TOSTRING(Name))
