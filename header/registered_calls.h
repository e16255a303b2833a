namespace detail {

/// What the entry points of operators call. All is null in a library without operators, which then
/// compiles none of it: members of a class template are compiled when something names them.
struct OperatorCalls {
  opRegSize_t size;
  opRegGet_t describe;
  opCallParseAttrs_t parseAttrs;
  opCallInferShape_t inferShape;
  opCallInferType_t inferType;
  opCallInferSType_t inferSType;
  opCallFComp_t callFunction;
  opCallMutateInputs_t mutateInputs;
  opCallCreateOpState_t createOpState;
  opCallDestroyOpState_t destroyOpState;
  opCallFStatefulComp_t callState;
  static OperatorCalls* get() {
    static OperatorCalls calls;
    return &calls;
  }
};

/// The same of partitioners.
struct PartitionerCalls {
  partRegSize_t size;
  partRegGetCount_t strategies;
  partRegGet_t describe;
  // With the graph's JSON, or with the graph as plain arrays.
  int (*supportedOps)(supportedOps_t function, const char* json, const FlatModel* flat, int num_ids,
                      int* ids, PASSLIB_OPTION_BLOCK);
  int (*createSelector)(createSelector_t function, const char* json, const FlatModel* flat,
                        void** selector, PASSLIB_OPTION_BLOCK);
  partCallSelect_t select;
  partCallSelectInput_t selectInput;
  partCallSelectOutput_t selectOutput;
  partCallFilter_t filter;
  partCallReset_t reset;
  passlibPartDestroySelector_t destroySelector;
  int (*reviewSubgraph)(reviewSubgraph_t function, const char* json, const FlatModel* flat,
                        int subgraph_id, int* accept, PASSLIB_OPTION_BLOCK, char*** attr_keys,
                        char*** attr_vals, int* num_attrs, PASSLIB_PARAM_BLOCK(arg),
                        PASSLIB_PARAM_BLOCK(aux));
  static PartitionerCalls* get() {
    static PartitionerCalls calls;
    return &calls;
  }
};

template <typename Unused>
struct Calls<CustomOp, Unused> {
  static void install() {
    OperatorCalls* calls = OperatorCalls::get();
    calls->size = &size;
    calls->describe = &describe;
    calls->parseAttrs = &parseAttrs;
    calls->inferShape = &inferShape;
    calls->inferType = &inferType;
    calls->inferSType = &inferSType;
    calls->callFunction = &callFunction;
    calls->mutateInputs = &mutateInputs;
    calls->createOpState = &createOpState;
    calls->destroyOpState = &destroyOpState;
    calls->callState = &callState;
  }

  static int size() { return Registry<CustomOp>::get()->size(); }

  static void describe(int idx, const char** name, int* isSGop, const char*** forward_ctx,
                       fcomp_t** forward_fp, int* forward_count, const char*** backward_ctx,
                       fcomp_t** backward_fp, int* backward_count, const char*** create_op_ctx,
                       createOpState_t** create_op_fp, int* create_op_count, parseAttrs_t* parse,
                       inferType_t* type, inferSType_t* stype, inferShape_t* shape,
                       mutateInputs_t* mutate) {
    CustomOp& op = operatorAt(idx);
    *name = op.name;
    *isSGop = op.isSGop ? 1 : 0;
    // An invalid registration shows no functions, so that hosts reject it.
    const auto count = [&op](std::size_t functions) {
      return op.valid ? static_cast<int>(functions) : 0;
    };
    *forward_ctx = op.forward_ctx_cstr.data();
    *forward_fp = op.forward_fp.data();
    *forward_count = count(op.forward_fp.size());
    *backward_ctx = op.backward_ctx_cstr.data();
    *backward_fp = op.backward_fp.data();
    *backward_count = count(op.backward_fp.size());
    *create_op_ctx = op.create_op_ctx_cstr.data();
    *create_op_fp = op.create_op_fp.data();
    *create_op_count = count(op.create_op_fp.size());
    *parse = op.valid ? op.parse_attrs : nullptr;
    *type = op.infer_type;
    *stype = op.infer_storage_type;
    *shape = op.infer_shape;
    *mutate = op.mutate_inputs;
  }

  static int parseAttrs(parseAttrs_t function, PASSLIB_ATTR_BLOCK, int* num_in, int* num_out) {
    return guarded("parseAttrs", [&]() -> int {
      requireFunction(function, "setParseAttrs");
      return function(makeOptions(keys, vals, num), num_in, num_out);
    });
  }

  static int inferShape(inferShape_t function, PASSLIB_ATTR_BLOCK, unsigned int** inshapes,
                        int* indims, int num_in, unsigned int*** mod_inshapes, int** mod_indims,
                        unsigned int*** outshapes, int** outdims, int num_out) {
    return guarded("inferShape", [&]() -> int {
      requireFunction(function, "setInferShape");
      ShapeList in_shapes = makeShapes(inshapes, indims, num_in);
      ShapeList out_shapes(static_cast<std::size_t>(num_out));
      if (function(makeOptions(keys, vals, num), &in_shapes, &out_shapes) != MX_SUCCESS) {
        return MX_FAIL;
      }
      requireCount(in_shapes, num_in, "input shapes");
      requireCount(out_shapes, num_out, "output shapes");
      Handout memory;
      handOut(in_shapes, &memory, mod_inshapes, mod_indims);
      handOut(out_shapes, &memory, outshapes, outdims);
      memory.release();
      return MX_SUCCESS;
    });
  }

  static int inferType(inferType_t function, PASSLIB_ATTR_BLOCK, int* intypes, int num_in,
                       int* outtypes, int num_out) {
    return guarded("inferType", [&]() -> int {
      requireFunction(function, "setInferType");
      return inferInPlace(function, makeOptions(keys, vals, num), intypes, num_in, outtypes,
                          num_out);
    });
  }

  static int inferSType(inferSType_t function, PASSLIB_ATTR_BLOCK, int* instypes, int num_in,
                        int* outstypes, int num_out) {
    return guarded("inferSType", [&]() -> int {
      requireFunction(function, "setInferSType");
      return inferInPlace(function, makeOptions(keys, vals, num), instypes, num_in, outstypes,
                          num_out);
    });
  }

  static int callFunction(fcomp_t function, PASSLIB_ATTR_BLOCK, PASSLIB_IO_BLOCK,
                          PASSLIB_RESOURCE_BLOCK) {
    return guarded("compute", [&]() -> int {
      requireFunction(function, "setForward or setBackward");
      const options_map_t attributes = makeOptions(keys, vals, num);
      return compute(
          [&](std::vector<MXTensor>* inputs, std::vector<MXTensor>* outputs,
              const OpResource& lent) { return function(attributes, inputs, outputs, lent); },
          PASSLIB_IO_NAMES, PASSLIB_RESOURCE_NAMES);
    });
  }

  static int mutateInputs(mutateInputs_t function, PASSLIB_ATTR_BLOCK, int** mutate_indices,
                          int* indices_size) {
    return guarded("mutateInputs", [&]() -> int {
      requireFunction(function, "setMutateInputs");
      std::vector<int> indices;
      if (function(makeOptions(keys, vals, num), &indices) != MX_SUCCESS) return MX_FAIL;
      Handout memory;
      *mutate_indices = memory.copy(indices);
      *indices_size = static_cast<int>(indices.size());
      memory.release();
      return MX_SUCCESS;
    });
  }

  static int createOpState(createOpState_t function, PASSLIB_ATTR_BLOCK, const char* dev_type,
                           int dev_id, unsigned int** inshapes, int* indims, int num_in,
                           const int* intypes, void** state_op) {
    return guarded("createOpState", [&]() -> int {
      requireFunction(function, "setCreateOpState");
      CustomStatefulOp* state = nullptr;
      if (function(makeOptions(keys, vals, num), MXContext(dev_type, dev_id),
                   makeShapes(inshapes, indims, num_in),
                   std::vector<int>(intypes, intypes + num_in), &state) != MX_SUCCESS) {
        return MX_FAIL;
      }
      if (state == nullptr) throw std::runtime_error("the function made no state");
      *state_op = state;
      return MX_SUCCESS;
    });
  }

  static void destroyOpState(void* state_op) {
    guarded("the state's destructor", [&]() -> int {
      delete static_cast<CustomStatefulOp*>(state_op);
      return MX_SUCCESS;
    });
  }

  static int callState(int is_forward, void* state_op, PASSLIB_IO_BLOCK, PASSLIB_RESOURCE_BLOCK) {
    return guarded(is_forward != 0 ? "Forward" : "Backward", [&]() -> int {
      CustomStatefulOp* state = static_cast<CustomStatefulOp*>(state_op);
      return compute(
          [&](std::vector<MXTensor>* inputs, std::vector<MXTensor>* outputs,
              const OpResource& lent) {
            return is_forward != 0 ? state->Forward(inputs, outputs, lent)
                                   : state->Backward(inputs, outputs, lent);
          },
          PASSLIB_IO_NAMES, PASSLIB_RESOURCE_NAMES);
    });
  }
};

template <typename Unused>
struct Calls<CustomPartitioner, Unused> {
  static void install() {
    PartitionerCalls* calls = PartitionerCalls::get();
    calls->size = &size;
    calls->strategies = &strategies;
    calls->describe = &describe;
    calls->supportedOps = &supportedOps;
    calls->createSelector = &createSelector;
    calls->select = &select;
    calls->selectInput = &selectInput;
    calls->selectOutput = &selectOutput;
    calls->filter = &filter;
    calls->reset = &reset;
    calls->destroySelector = &destroySelector;
    calls->reviewSubgraph = &reviewSubgraph;
  }

  static int size() { return Registry<CustomPartitioner>::get()->size(); }

  static int strategies(int idx, const char** name) {
    *name = nullptr;
    const auto* partitioners = Registry<CustomPartitioner>::get();
    if (idx < 0 || idx >= partitioners->size()) return 0;
    *name = partitioners->get(idx).name;
    return static_cast<int>(partitioners->get(idx).strategies.size());
  }

  static void describe(int part_idx, int stg_idx, const char** strategy,
                       supportedOps_t* supported_ops, createSelector_t* create_selector,
                       reviewSubgraph_t* review_subgraph, const char** op_name) {
    guarded("_partRegGet", [&]() -> int {
      const CustomPartitioner& partitioner = Registry<CustomPartitioner>::get()->get(part_idx);
      *supported_ops = partitioner.getSupportedOps(stg_idx);
      *create_selector = partitioner.getCreateSelector(stg_idx);
      *review_subgraph = partitioner.getReviewSubgraph(stg_idx);
      *op_name = partitioner.op_names.at(static_cast<std::size_t>(stg_idx));
      *strategy = partitioner.strategies.at(static_cast<std::size_t>(stg_idx));
      return MX_SUCCESS;
    });
  }

  static int supportedOps(supportedOps_t function, const char* json, const FlatModel* flat,
                          int num_ids, int* ids, PASSLIB_OPTION_BLOCK) {
    return guarded("supportedOps", [&]() -> int {
      requireFunction(function, "setSupportedOps");
      const GivenGraph graph(json, flat);
      std::vector<int> supported(static_cast<std::size_t>(num_ids), -2);
      if (function(graph.get(), &supported, makeOptions(opt_keys, opt_vals, num_opts)) !=
          MX_SUCCESS) {
        return MX_FAIL;
      }
      requireCount(supported, num_ids, "ids, one for each node");
      std::copy(supported.begin(), supported.end(), ids);
      return MX_SUCCESS;
    });
  }

  static int createSelector(createSelector_t function, const char* json, const FlatModel* flat,
                            void** selector, PASSLIB_OPTION_BLOCK) {
    return guarded("createSelector", [&]() -> int {
      requireFunction(function, "setCreateSelector");
      Owner<OwnedSelector> owned(new OwnedSelector(json, flat));
      CustomOpSelector* made = nullptr;
      const MXReturnValue result =
          function(owned->graph.get(), &made, makeOptions(opt_keys, opt_vals, num_opts));
      owned->selector.reset(made);
      if (result != MX_SUCCESS) return MX_FAIL;
      if (made == nullptr) throw std::runtime_error("the function made no selector");
      *selector = owned.release();
      return MX_SUCCESS;
    });
  }

  static void select(void* selector, int node, int* selected) {
    callSelector(selector,
                 [&](CustomOpSelector* chosen) { *selected = chosen->Select(node) ? 1 : 0; });
  }

  static void selectInput(void* selector, int node, int input_node, int* selected) {
    callSelector(selector, [&](CustomOpSelector* chosen) {
      *selected = chosen->SelectInput(node, input_node) ? 1 : 0;
    });
  }

  static void selectOutput(void* selector, int node, int output_node, int* selected) {
    callSelector(selector, [&](CustomOpSelector* chosen) {
      *selected = chosen->SelectOutput(node, output_node) ? 1 : 0;
    });
  }

  static void filter(void* selector, int* candidates, int num_candidates, int** keep,
                     int* num_keep) {
    callSelector(selector, [&](CustomOpSelector* chosen) {
      std::vector<int> kept;
      chosen->Filter(std::vector<int>(candidates, candidates + num_candidates), &kept);
      Handout memory;
      *keep = memory.copy(kept);
      *num_keep = static_cast<int>(kept.size());
      memory.release();
    });
  }

  static void reset(void* selector) {
    callSelector(selector, [](CustomOpSelector* chosen) { chosen->Reset(); });
  }

  static void destroySelector(void* selector) {
    guarded("the selector's destructor", [&]() -> int {
      delete static_cast<OwnedSelector*>(selector);
      return MX_SUCCESS;
    });
  }

  static int reviewSubgraph(reviewSubgraph_t function, const char* json, const FlatModel* flat,
                            int subgraph_id, int* accept, PASSLIB_OPTION_BLOCK, char*** attr_keys,
                            char*** attr_vals, int* num_attrs, PASSLIB_PARAM_BLOCK(arg),
                            PASSLIB_PARAM_BLOCK(aux)) {
    *attr_keys = nullptr;
    *attr_vals = nullptr;
    *num_attrs = 0;
    return guarded("reviewSubgraph", [&]() -> int {
      requireFunction(function, "setReviewSubgraph");
      ParamTable args(static_cast<std::size_t>(num_arg));
      ParamTable aux(static_cast<std::size_t>(num_aux));
      addParams(&args, PASSLIB_PARAM_NAMES(arg));
      addParams(&aux, PASSLIB_PARAM_NAMES(aux));
      const GivenGraph given(json, flat);
      const CallParams lent(given.get(), &args, &aux, nullptr);
      bool accepted = false;
      options_map_t attributes;
      if (function(given.get(), subgraph_id, &accepted, makeOptions(opt_keys, opt_vals, num_opts),
                   &attributes) != MX_SUCCESS) {
        return MX_FAIL;
      }
      lent.requireAsLent();
      *accept = accepted ? 1 : 0;
      if (attributes.empty()) return MX_SUCCESS;
      Handout memory;
      *attr_keys = memory.array<char*>(attributes.size());
      *attr_vals = memory.array<char*>(attributes.size());
      for (const auto& attribute : attributes) {
        (*attr_keys)[*num_attrs] = memory.copy(attribute.first);
        (*attr_vals)[*num_attrs] = memory.copy(attribute.second);
        ++*num_attrs;
      }
      memory.release();
      return MX_SUCCESS;
    });
  }
};

}  // namespace detail
