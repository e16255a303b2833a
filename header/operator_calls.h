// ---- calls of operators ------------------------------------------------------------------------

namespace detail {

/// Shapes of a call: `count` arrays of `dims` numbers.
struct GivenShapes {
  unsigned int** shapes;
  const int* dims;
  int count;
};

/// The inputs, or the outputs, of an operator's call.
struct GivenTensors {
  const int64_t** shapes;
  const int* dims;
  void** data;
  const int* types;
  const size_t* ids;
  const char** device_types;
  const int* device_ids;
  int count;
  const int* storage_types;
  void** indices;
  void** indptr;
  const int64_t* indices_counts;
  const int64_t* indptr_counts;
};

/// The functions behind the entry points of operators; null in a library without operators.
struct OperatorCalls {
  int (*size)();
  CustomOp* (*get)(int idx);
  int (*parseAttrs)(parseAttrs_t function, const GivenTexts& attributes, int* num_in, int* num_out);
  int (*inferShape)(inferShape_t function, const GivenTexts& attributes, const GivenShapes& inputs,
                    unsigned int*** mod_inshapes, int** mod_indims, unsigned int*** outshapes,
                    int** outdims, int num_out);
  int (*inferType)(inferType_t function, const GivenTexts& attributes, int* inputs, int num_in,
                   int* outputs, int num_out);
  int (*inferSType)(inferSType_t function, const GivenTexts& attributes, int* inputs, int num_in,
                    int* outputs, int num_out);
  int (*compute)(fcomp_t function, const GivenTexts& attributes, const GivenTensors& inputs,
                 const GivenTensors& outputs, const OpResource& resource);
  int (*mutateInputs)(mutateInputs_t function, const GivenTexts& attributes, int** indices,
                      int* count);
  int (*createState)(createOpState_t function, const GivenTexts& attributes,
                     const MXContext& context, const GivenShapes& inputs, const int* types,
                     void** state);
  void (*destroyState)(void* state);
  int (*computeState)(bool forward, void* state, const GivenTensors& inputs,
                      const GivenTensors& outputs, const OpResource& resource);

  static OperatorCalls* table() {
    static OperatorCalls calls = {};
    return &calls;
  }
};

template <typename ValueType>
void requireCount(const std::vector<ValueType>& values, int count, const char* what) {
  if (values.size() == static_cast<std::size_t>(count)) return;
  failCall("there must be %d %s, the function left %zu", count, what, values.size());
}

template <typename Function>
void requireFunction(Function function, const char* setter) {
  if (function == nullptr) failCall("there is no such function: call %s", setter);
}

/// Memory for the host, freed here unless released to it.
class Handout {
 public:
  Handout() {}
  Handout(const Handout&) = delete;
  Handout& operator=(const Handout&) = delete;
  ~Handout() {
    for (void* block : blocks_) free(block);
  }
  template <typename ValueType>
  ValueType* array(std::size_t count) {
    blocks_.push_back(nullptr);
    blocks_.back() = malloc(std::max<std::size_t>(count, 1) * sizeof(ValueType));
    if (blocks_.back() == nullptr) throw std::bad_alloc();
    return static_cast<ValueType*>(blocks_.back());
  }
  template <typename ValueType>
  ValueType* copy(const std::vector<ValueType>& values) {
    ValueType* const memory = array<ValueType>(values.size());
    std::copy(values.begin(), values.end(), memory);
    return memory;
  }
  char* copy(const std::string& text) {
    char* const memory = array<char>(text.size() + 1);
    memcpy(memory, text.c_str(), text.size() + 1);
    return memory;
  }
  void release() { blocks_.clear(); }

 private:
  std::vector<void*> blocks_;
};

typedef std::vector<std::vector<unsigned int> > ShapeList;

inline ShapeList makeShapes(const GivenShapes& given) {
  ShapeList list;
  for (int pos = 0; pos < given.count; ++pos) {
    list.emplace_back(given.shapes[pos], given.shapes[pos] + given.dims[pos]);
  }
  return list;
}

inline void handOut(const ShapeList& list, Handout* memory, unsigned int*** shapes, int** dims) {
  *shapes = memory->array<unsigned int*>(list.size());
  *dims = memory->array<int>(list.size());
  for (std::size_t pos = 0; pos < list.size(); ++pos) {
    (*shapes)[pos] = memory->copy(list[pos]);
    (*dims)[pos] = static_cast<int>(list[pos].size());
  }
}

/// `sparse` receives the targets of the data_ptr of sparse tensors, and has room for them.
inline std::vector<MXTensor> makeTensors(const GivenTensors& given, std::vector<MXSparse>* sparse) {
  std::vector<MXTensor> tensors(static_cast<std::size_t>(given.count));
  for (int pos = 0; pos < given.count; ++pos) {
    const MXStorageType storage = static_cast<MXStorageType>(given.storage_types[pos]);
    void* data = given.data[pos];
    if (storage != kDefaultStorage) {
      sparse->emplace_back();
      const bool csr = storage == kCSRStorage;
      sparse->back().set(data, given.shapes[pos], given.dims[pos], given.indices[pos],
                         given.indices_counts[pos], csr ? given.indptr[pos] : nullptr,
                         csr ? given.indptr_counts[pos] : 0);
      data = &sparse->back();
    }
    tensors[static_cast<std::size_t>(pos)].setTensor(
        data, static_cast<MXDType>(given.types[pos]), given.shapes[pos], given.dims[pos],
        given.ids[pos], MXContext(given.device_types[pos], given.device_ids[pos]), storage);
  }
  return tensors;
}

/// Calls body(inputs, outputs) with the tensors of an operator's call.
template <typename Body>
int compute(const GivenTensors& inputs, const GivenTensors& outputs, Body body) {
  std::vector<MXSparse> sparse;
  sparse.reserve(static_cast<std::size_t>(inputs.count) + static_cast<std::size_t>(outputs.count));
  std::vector<MXTensor> in_tensors = makeTensors(inputs, &sparse);
  std::vector<MXTensor> out_tensors = makeTensors(outputs, &sparse);
  return body(&in_tensors, &out_tensors) == MX_SUCCESS ? MX_SUCCESS : MX_FAIL;
}

/// Calls an inferType or inferSType function. Outputs are initially -1: unknown.
template <typename Function>
int inferInPlace(Function function, const GivenTexts& attributes, int* inputs, int num_in,
                 int* outputs, int num_out) {
  std::vector<int> in_codes(inputs, inputs + num_in);
  std::vector<int> out_codes(static_cast<std::size_t>(num_out), -1);
  if (function(attributes.map(), &in_codes, &out_codes) != MX_SUCCESS) return MX_FAIL;
  requireCount(in_codes, num_in, "input types");
  requireCount(out_codes, num_out, "output types");
  std::copy(in_codes.begin(), in_codes.end(), inputs);
  std::copy(out_codes.begin(), out_codes.end(), outputs);
  return MX_SUCCESS;
}

inline int countOperators() { return Registry<CustomOp>::get()->size(); }

inline CustomOp* findOperator(int idx) {
  Registry<CustomOp>* const operators = Registry<CustomOp>::get();
  return idx >= 0 && idx < operators->size() ? &operators->get(idx) : nullptr;
}

inline int callParseAttrs(parseAttrs_t function, const GivenTexts& attributes, int* num_in,
                          int* num_out) {
  return guarded("parseAttrs", [&]() -> int {
    requireFunction(function, "setParseAttrs");
    return function(attributes.map(), num_in, num_out);
  });
}

inline int callInferShape(inferShape_t function, const GivenTexts& attributes,
                          const GivenShapes& inputs, unsigned int*** mod_inshapes, int** mod_indims,
                          unsigned int*** outshapes, int** outdims, int num_out) {
  return guarded("inferShape", [&]() -> int {
    requireFunction(function, "setInferShape");
    ShapeList in_shapes = makeShapes(inputs);
    ShapeList out_shapes(static_cast<std::size_t>(num_out));
    if (function(attributes.map(), &in_shapes, &out_shapes) != MX_SUCCESS) return MX_FAIL;
    requireCount(in_shapes, inputs.count, "input shapes");
    requireCount(out_shapes, num_out, "output shapes");
    Handout memory;
    handOut(in_shapes, &memory, mod_inshapes, mod_indims);
    handOut(out_shapes, &memory, outshapes, outdims);
    memory.release();
    return MX_SUCCESS;
  });
}

inline int callInferType(inferType_t function, const GivenTexts& attributes, int* inputs,
                         int num_in, int* outputs, int num_out) {
  return guarded("inferType", [&]() -> int {
    requireFunction(function, "setInferType");
    return inferInPlace(function, attributes, inputs, num_in, outputs, num_out);
  });
}

inline int callInferSType(inferSType_t function, const GivenTexts& attributes, int* inputs,
                          int num_in, int* outputs, int num_out) {
  return guarded("inferSType", [&]() -> int {
    requireFunction(function, "setInferSType");
    return inferInPlace(function, attributes, inputs, num_in, outputs, num_out);
  });
}

inline int callCompute(fcomp_t function, const GivenTexts& attributes, const GivenTensors& inputs,
                       const GivenTensors& outputs, const OpResource& resource) {
  return guarded("compute", [&]() -> int {
    requireFunction(function, "setForward or setBackward");
    const options_map_t texts = attributes.map();
    return compute(inputs, outputs, [&](std::vector<MXTensor>* from, std::vector<MXTensor>* into) {
      return function(texts, from, into, resource);
    });
  });
}

inline int callMutateInputs(mutateInputs_t function, const GivenTexts& attributes, int** indices,
                            int* count) {
  return guarded("mutateInputs", [&]() -> int {
    requireFunction(function, "setMutateInputs");
    std::vector<int> mutated;
    if (function(attributes.map(), &mutated) != MX_SUCCESS) return MX_FAIL;
    Handout memory;
    *indices = memory.copy(mutated);
    *count = static_cast<int>(mutated.size());
    memory.release();
    return MX_SUCCESS;
  });
}

inline int callCreateState(createOpState_t function, const GivenTexts& attributes,
                           const MXContext& context, const GivenShapes& inputs, const int* types,
                           void** state) {
  return guarded("createOpState", [&]() -> int {
    requireFunction(function, "setCreateOpState");
    CustomStatefulOp* made = nullptr;
    if (function(attributes.map(), context, makeShapes(inputs),
                 std::vector<int>(types, types + inputs.count), &made) != MX_SUCCESS) {
      return MX_FAIL;
    }
    if (made == nullptr) throw std::runtime_error("the function made no state");
    *state = made;
    return MX_SUCCESS;
  });
}

inline void callDestroyState(void* state) {
  guarded("the state's destructor", [&]() -> int {
    delete static_cast<CustomStatefulOp*>(state);
    return MX_SUCCESS;
  });
}

inline int callComputeState(bool forward, void* state, const GivenTensors& inputs,
                            const GivenTensors& outputs, const OpResource& resource) {
  return guarded(forward ? "Forward" : "Backward", [&]() -> int {
    CustomStatefulOp* const made = static_cast<CustomStatefulOp*>(state);
    return compute(inputs, outputs, [&](std::vector<MXTensor>* from, std::vector<MXTensor>* into) {
      return forward ? made->Forward(from, into, resource) : made->Backward(from, into, resource);
    });
  });
}

inline void install(const CustomOp*) {
  *OperatorCalls::table() = {&countOperators,   &findOperator,     &callParseAttrs,
                             &callInferShape,   &callInferType,    &callInferSType,
                             &callCompute,      &callMutateInputs, &callCreateState,
                             &callDestroyState, &callComputeState};
}

}  // namespace detail

inline MXReturnValue CustomStatefulOp::Backward(std::vector<MXTensor>*, std::vector<MXTensor>*,
                                                const OpResource&) {
  MX_ERROR_MSG << "this operator has no Backward";
  return MX_FAIL;
}

template <typename Function>
CustomOp& CustomOp::add(Function function, const char* ctx, const char* what,
                        std::vector<Function>* functions, std::vector<const char*>* contexts) {
  // No exception: this runs while the library is loaded, and nothing could catch it.
  for (const char* known : *contexts) {
    if (strcmp(known, ctx) != 0) continue;
    MXerrorMsgs::get()->add(std::string("operator '") + name + "' has two " + what +
                            " functions for the context '" + ctx + "'");
    valid = false;
  }
  functions->push_back(function);
  contexts->push_back(ctx);
  return *this;
}

inline void OpResource::alloc_sparse(MXSparse* sparse, int index, int indices_len,
                                     int indptr_len) const {
  sparse_malloc_(sparse_alloc_, index, indices_len, indptr_len, &sparse->data, &sparse->indices,
                 &sparse->indptr);
  sparse->indices_len = indices_len;
  sparse->indptr_len = indptr_len;
  if (indptr_len > 0) sparse->data_len = indices_len;
}
