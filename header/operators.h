// ================================================================================================
// Operators, partitioners, passes
// ================================================================================================

typedef std::unordered_map<std::string, std::string> options_map_t;

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
  PASSLIB_ON_DEMAND explicit CustomOp(const char* op_name)
      : name(op_name),
        parse_attrs(nullptr),
        infer_type(nullptr),
        infer_storage_type(nullptr),
        infer_shape(nullptr),
        mutate_inputs(nullptr),
        isSGop(false),
        valid(true) {}

  PASSLIB_ON_DEMAND CustomOp& setForward(fcomp_t function, const char* ctx) {
    return add(function, ctx, "forward", &forward_fp, &forward_ctx_cstr);
  }
  PASSLIB_ON_DEMAND CustomOp& setBackward(fcomp_t function, const char* ctx) {
    return add(function, ctx, "backward", &backward_fp, &backward_ctx_cstr);
  }
  PASSLIB_ON_DEMAND CustomOp& setCreateOpState(createOpState_t function, const char* ctx) {
    return add(function, ctx, "createOpState", &create_op_fp, &create_op_ctx_cstr);
  }
  PASSLIB_ON_DEMAND CustomOp& setParseAttrs(parseAttrs_t function) {
    return set(&parse_attrs, function);
  }
  PASSLIB_ON_DEMAND CustomOp& setInferType(inferType_t function) {
    return set(&infer_type, function);
  }
  PASSLIB_ON_DEMAND CustomOp& setInferSType(inferSType_t function) {
    return set(&infer_storage_type, function);
  }
  PASSLIB_ON_DEMAND CustomOp& setInferShape(inferShape_t function) {
    return set(&infer_shape, function);
  }
  PASSLIB_ON_DEMAND CustomOp& setMutateInputs(mutateInputs_t function) {
    return set(&mutate_inputs, function);
  }
  /// Declares an operator whose nodes have a subgraph, as partitioners create them.
  PASSLIB_ON_DEMAND CustomOp& setIsSubgraphOp() { return set(&isSGop, true); }

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
