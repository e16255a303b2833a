// ================================================================================================
// Resources that the host lends for one call
// ================================================================================================

typedef void* (*xpu_malloc_t)(void* allocator, int size);
typedef void (*sparse_malloc_t)(void* allocator, int index, int indices_len, int indptr_len,
                                void** data, int64_t** indices, int64_t** indptr);
/// Allocates an array that the host owns: shape has num_dims numbers; *data is the memory, null if
/// the host refuses. isArg: 1 for args, 0 for aux.
typedef void (*nd_malloc_t)(const void* allocator, const int64_t* shape, int num_dims,
                            const char* dev_type, int dev_id, int dtype, const char* name,
                            int isArg, void** data);

/// Allocates new parameters during a pass. Any of its threads may call these functions.
class PassResource {
 public:
  /// What the elements of a weight on demand become if each run of them is multiplied by a factor.
  enum Scaling { kNotOnDemand = -1, kNotFinite = 0, kFinite = 1 };

  PassResource(nd_malloc_t nd_malloc, const void* nd_alloc)
      : nd_malloc_(nd_malloc), nd_alloc_(nd_alloc) {}
  PassResource(const PassResource&) = delete;
  PassResource& operator=(const PassResource&) = delete;
  ~PassResource() {
    for (Made* each : made_) delete each;
  }

  PASSLIB_ON_DEMAND MXTensor* alloc_arg(const std::string& name, const std::vector<int64_t>& shape,
                                        const MXContext& ctx, MXDType dtype) {
    return allocate(1, name, shape, ctx, dtype);
  }
  PASSLIB_ON_DEMAND MXTensor* alloc_aux(const std::string& name, const std::vector<int64_t>& shape,
                                        const MXContext& ctx, MXDType dtype) {
    return allocate(0, name, shape, ctx, dtype);
  }

  void _setGraph(const Graph* graph) { graph_ = graph; }
  /// Adds the types that the host offers, whose texts are asked for when they are read.
  void _offerTypes(const FlatModel& shown);
  /// See detail::readTypes.
  const FlatText* _types(const detail::TypesPlace& place);
  void _setParams(detail::ParamTable* args, detail::ParamTable* aux) {
    params_[0] = args;
    params_[1] = aux;
  }
  bool _hasTensors() const { return !made_.empty(); }
  /// Returns the name of the graph's dialect; "" where the host does not tell it.
  PASSLIB_ON_DEMAND std::string _dialect() const;
  /// Notes a parameter whose array the caller has, but does not lend.
  void _noteUnlent(const Node* node) { unlent_.push(node); }
  /// Before the pass runs, when all are noted.
  void _sortUnlent();
  PASSLIB_ON_DEMAND bool _isUnlent(const Node* node) const;
  /// Returns `name`, or the first of name1, name2, ... that no node of the graph has.
  PASSLIB_ON_DEMAND std::string _freeName(const Graph& graph, const std::string& name);
  /// See Node::readTensor.
  PASSLIB_ON_DEMAND void _read(const std::string& name, MXTensor* tensor);
  /// Scales a weight on demand, as the weight `name`; for a null `name`, says what results.
  PASSLIB_ON_DEMAND Scaling _scale(const MXTensor& source, const std::vector<double>& factors,
                                   const std::string* name);
  PASSLIB_ON_DEMAND MXTensor* _scaled(const std::string& name, const MXTensor& source) {
    return hold(name, MXTensor(nullptr, source.shape, source.dtype, 0, source.ctx));
  }
  // After the pass, when its threads have ended.
  /// Lists the new tensors. Throws std::runtime_error if the pass changed one in what the host does
  /// not see.
  void _requireAsMade(detail::AddressTable* tensors) const;
  /// The name under which one of them was made.
  const std::string& _nameOfMade(int64_t position) const {
    return made_[static_cast<std::size_t>(position)]->name;
  }

 private:
  /// The tensor of a new parameter, and what it was made as.
  struct Made {
    std::string name;
    MXTensor tensor;
    MXTensor given;
  };
  PASSLIB_ON_DEMAND MXTensor* allocate(int is_arg, const std::string& name,
                                       const std::vector<int64_t>& shape, const MXContext& ctx,
                                       MXDType dtype);
  PASSLIB_ON_DEMAND MXTensor* hold(const std::string& name, const MXTensor& made);

  detail::Mutex mutex_;  // of all that threads of the pass change
  detail::PlainList<Made*> made_;
  nd_malloc_t nd_malloc_;
  const void* nd_alloc_;
  const Graph* graph_ = nullptr;      // of the running pass
  const FlatModel* shown_ = nullptr;  // unless no types are offered
  const FlatText* types_ = nullptr;
  uint16_t call_ = 0;
  detail::ParamTable* params_[2] = {nullptr, nullptr};
  detail::PlainList<const Node*> unlent_;
  // The names of the first named_ nodes of a graph. A map, because every library has code for this
  // one anyway.
  std::unordered_map<std::string, std::string> names_;
  std::size_t named_ = 0;
  const Graph* named_graph_ = nullptr;
};

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
