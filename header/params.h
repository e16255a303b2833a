// ---- parameters that the host lends for a call -------------------------------------------------

namespace detail {

/// Options, or attributes of an operator, as a host gives them.
struct GivenTexts {
  const char* const* keys;
  const char* const* values;
  int count;
  options_map_t map() const {
    options_map_t texts;
    for (int pos = 0; pos < count; ++pos) {
      setText(JsonReader::Slice{keys[pos], strlen(keys[pos])},
              JsonReader::Slice{values[pos], strlen(values[pos])}, &texts);
    }
    return texts;
  }
};

/// Parameters as a host gives them: `count` entries in each array.
struct GivenParams {
  const char* const* names;
  int count;
  void* const* data;
  const int64_t* const* shapes;
  const int* dims;
  const int* types;
  const size_t* ids;
  const char* const* device_types;
  const int* device_ids;
};

/// The parameter that a variable stands for: in the subgraphs of partitioners, variables have new
/// names and attributes with the name of their parameter. `copy` holds it unless it is the node's.
inline const std::string& paramName(const Node& node, std::string* copy) {
  const AttributeTexts attributes(node.attrs);
  if (node.attrs.size() < 2 || !attributes.get("isArg", copy) || *copy != "True") return node.name;
  return attributes.get("argName", copy) ? *copy : node.name;
}

/// Throws std::runtime_error if a tensor refers to something else than what the host knows.
inline void requireUnchanged(const char* name, const MXTensor& tensor, const void* data,
                             MXDType type, const int64_t* shape, std::size_t dims) {
  const dlpack::DLTensor& view = tensor.dltensor;
  const char* changed = nullptr;
  if (tensor.shape.size() != dims ||
      (dims != 0 && memcmp(tensor.shape.data(), shape, dims * sizeof(int64_t)) != 0)) {
    changed = "shape";
  } else if (tensor.dtype != type) {
    changed = "dtype";
  } else if (tensor.stype != kDefaultStorage) {
    changed = "storage type";
  } else if (tensor.data_ptr != data) {
    changed = "data pointer";
  } else if (view.data != data || view.ndim != static_cast<int>(dims) || view.strides != nullptr ||
             view.byte_offset != 0) {
    changed = "dltensor";
  } else {
    return;
  }
  failCall(
      "the %s of the tensor of '%s' was changed, which the host does not see: in a pass, alloc_arg "
      "makes another tensor, to which the elements are copied",
      changed, name);
}

/// The parameters of a call. Hosts list them in the order of the graph's variables, so most are
/// found by one comparison of names.
class ParamTable {
 public:
  /// A parameter as the host lent it.
  struct Lent {
    const char* name;
    void* data;  ///< null on demand, until the pass asks for it
    MXDType type;
    const int64_t* shape;  ///< the host's
    std::size_t dims;
    size_t number;
    const Node* node;  ///< the variable that got the tensor, or null
  };

  explicit ParamTable(std::size_t count) : tensors_(new MXTensor[count]) { lent_.reserve(count); }
  explicit ParamTable(const GivenParams& given)
      : ParamTable(static_cast<std::size_t>(given.count)) {
    for (int pos = 0; pos < given.count; ++pos) {
      add(given.names[pos], given.data[pos], static_cast<MXDType>(given.types[pos]),
          given.shapes[pos], given.dims[pos], given.ids[pos],
          MXContext(given.device_types[pos], given.device_ids[pos]));
    }
  }
  ParamTable(const ParamTable&) = delete;
  ParamTable& operator=(const ParamTable&) = delete;
  /// Adds a parameter, of as many as announced.
  void add(const char* name, void* data, MXDType type, const int64_t* shape, int dims,
           size_t number, MXContext context) {
    tensors_[lent_.size()].setTensor(data, type, shape, dims, number, std::move(context));
    lent_.push_back(Lent{name, data, type, shape, static_cast<std::size_t>(dims), number, nullptr});
  }
  bool empty() const { return lent_.empty(); }

  /// Sets `tensor` of the variables that are parameters.
  void assign(const std::vector<Node*>& variables) {
    std::size_t next = 0;
    std::string copy;
    for (Node* node : variables) {
      if (next == lent_.size()) return;
      if (paramName(*node, &copy) == lent_[next].name) lend(next++, node);
    }
    if (next == lent_.size()) return;
    PlainList<NumberedText> names;
    for (std::size_t pos = 0; pos < lent_.size(); ++pos) {
      names.push_back(
          NumberedText{JsonReader::Slice{lent_[pos].name, strlen(lent_[pos].name)}, pos});
    }
    sortTexts(&names);
    for (Node* node : variables) {
      const JsonReader::Slice name = sliceOf(paramName(*node, &copy));
      std::size_t low = 0;
      std::size_t high = names.size();
      while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        (names[middle].text < name ? low : high) = names[middle].text < name ? middle + 1 : middle;
      }
      if (low < names.size() && !(name < names[low].text)) lend(names[low].number, node);
    }
  }
  /// Returns the parameter that has a tensor of the table; null for another tensor.
  Lent* find(const MXTensor* tensor) {
    const std::less<const MXTensor*> less = {};
    if (less(tensor, tensors_.get()) || !less(tensor, tensors_.get() + lent_.size())) {
      return nullptr;
    }
    return &lent_[static_cast<std::size_t>(tensor - tensors_.get())];
  }
  /// Throws std::runtime_error if a tensor was changed in what the host does not see.
  void requireAsLent() const {
    for (std::size_t pos = 0; pos < lent_.size(); ++pos) {
      const Lent& lent = lent_[pos];
      requireUnchanged(lent.name, tensors_[pos], lent.data, lent.type, lent.shape, lent.dims);
    }
  }

 private:
  void lend(std::size_t pos, Node* node) {
    node->tensor = &tensors_[pos];
    lent_[pos].node = node;
  }

  PlainList<Lent> lent_;
  Owned<MXTensor[]> tensors_;  // in the same order
};

/// Lends a resource to the pass that runs in this thread. Nodes ask for it here, so that none has
/// to know it. Threads that a pass starts get that of the pass that began last.
class RunningPass {
 public:
  explicit RunningPass(PassResource* resource) : resource_(resource), outer_(mine()) {
    mine() = resource;
    last().store(resource);
  }
  RunningPass(const RunningPass&) = delete;
  RunningPass& operator=(const RunningPass&) = delete;
  ~RunningPass() {
    mine() = outer_;
    last().compare_exchange_strong(resource_, outer_);
  }
  /// Returns null while no pass runs.
  static PassResource* resource() { return mine() != nullptr ? mine() : last().load(); }

 private:
  static PassResource*& mine() {
    static thread_local PassResource* resource = nullptr;
    return resource;
  }
  static std::atomic<PassResource*>& last() {
    static std::atomic<PassResource*> resource(nullptr);
    return resource;
  }

  PassResource* resource_;
  PassResource* outer_;
};

/// The host's functions behind Node::readTensor(). Hosts set it once, before they run anything
/// else.
struct WeightSource {
  readWeight_t read;
  scaleWeight_t scale;
  static WeightSource* get() {
    static WeightSource source = {nullptr, nullptr};
    return &source;
  }
};

/// The host's function behind passInterrupted(). Hosts set it once, before they run anything else.
struct InterruptSource {
  interrupted_t function;
  const void* host;
  static InterruptSource* get() {
    static InterruptSource source = {nullptr, nullptr};
    return &source;
  }
};

}  // namespace detail

inline bool passInterrupted() {
  const detail::InterruptSource* source = detail::InterruptSource::get();
  return source->function != nullptr && source->function(source->host) != 0;
}

/// Allocates new parameters during a pass. Threads of the pass may call these functions.
class PassResource {
 public:
  /// The elements of a weight on demand after each run of them is multiplied by a factor.
  enum Scaling { kNotOnDemand = -1, kNotFinite = 0, kFinite = 1 };

  PassResource(nd_malloc_t nd_malloc, const void* nd_alloc)
      : nd_malloc_(nd_malloc), nd_alloc_(nd_alloc) {}
  PassResource(const PassResource&) = delete;
  PassResource& operator=(const PassResource&) = delete;
  ~PassResource() {
    for (const Made* each : made_) delete each;
  }

  MXTensor* alloc_arg(const std::string& name, const std::vector<int64_t>& shape,
                      const MXContext& ctx, MXDType dtype) {
    return allocate(1, name, shape, ctx, dtype);
  }
  MXTensor* alloc_aux(const std::string& name, const std::vector<int64_t>& shape,
                      const MXContext& ctx, MXDType dtype) {
    return allocate(0, name, shape, ctx, dtype);
  }

  void _setGraph(const Graph* graph) { graph_ = graph; }
  const Graph* _graph() const { return graph_; }
  /// Adds the types that the host offers, whose texts are asked for when they are read.
  void _offerTypes(const FlatModel& shown) {
    static uint16_t calls = 0;  // one pass of a library runs at a time
    shown_ = &shown;
    call_ = ++calls;
    for (std::size_t pos = 0; pos < graph_->nodes.size(); ++pos) {
      detail::AttributeTexts::offerTypes(static_cast<uint32_t>(pos + 1), call_,
                                         &graph_->nodes[pos]->attrs);
    }
  }
  /// See detail::readTypes.
  const FlatText* _types(uint64_t place) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (shown_ == nullptr || place >> 32 != call_) return nullptr;
    if (types_ == nullptr) types_ = shown_->types(shown_->host);
    return types_ == nullptr ? nullptr : types_ + 2 * (static_cast<uint32_t>(place) - 1);
  }
  void _setParams(detail::ParamTable* args, detail::ParamTable* aux) {
    params_[0] = args;
    params_[1] = aux;
  }
  bool _hasTensors() const { return !made_.empty(); }
  /// Notes a parameter whose array the caller has, but does not lend. Before the pass runs.
  void _noteUnlent(const Node* node) { unlent_.add(node); }
  bool _isUnlent(const Node* node) const { return unlent_.find(node) >= 0; }
  /// Returns `name`, or the first of name1, name2, ... that no node of the graph has.
  std::string _freeName(const Graph& graph, const std::string& name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (named_ > graph.nodes.size() || named_graph_ != &graph) {
      names_ = std::make_shared<std::unordered_set<std::string> >();
      named_ = 0;
      named_graph_ = &graph;
    }
    for (; named_ < graph.nodes.size(); ++named_) names_->insert(graph.nodes[named_]->name);
    std::string free = name;
    for (int number = 1; names_->count(free) != 0; ++number) free = name + std::to_string(number);
    return free;
  }
  /// See Node::readTensor.
  void _read(const std::string& name, MXTensor* tensor);
  /// Scales a weight on demand, as the weight `name`; for a null `name`, says what results.
  Scaling _scale(const MXTensor& source, const std::vector<double>& factors,
                 const std::string* name);
  MXTensor* _scaled(const std::string& name, const MXTensor& source) {
    return hold(name, MXTensor(nullptr, source.shape, source.dtype, 0, source.ctx));
  }
  // After the pass, when its threads have ended.
  /// Lists the new tensors. Throws std::runtime_error if the pass changed one in what the host does
  /// not see.
  void _requireAsMade(detail::AddressTable* tensors) const {
    for (const Made* each : made_) {
      tensors->add(&each->tensor);
      const MXTensor& given = each->given;
      detail::requireUnchanged(each->name.c_str(), each->tensor, given.data_ptr, given.dtype,
                               given.shape.data(), given.shape.size());
    }
  }
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
  MXTensor* allocate(int is_arg, const std::string& name, const std::vector<int64_t>& shape,
                     const MXContext& ctx, MXDType dtype);
  MXTensor* hold(const std::string& name, const MXTensor& made) {
    const std::lock_guard<std::mutex> lock(mutex_);
    made_.reserve(made_.size() + 1);  // so that the list cannot fail to take it
    made_.push_back(new Made{name, made, made});
    return &made_.back()->tensor;
  }

  std::mutex mutex_;  // of all that threads of the pass change
  detail::PlainList<Made*> made_;
  nd_malloc_t nd_malloc_;
  const void* nd_alloc_;
  const Graph* graph_ = nullptr;      // of the running pass
  const FlatModel* shown_ = nullptr;  // unless no types are offered
  const FlatText* types_ = nullptr;
  uint16_t call_ = 0;
  detail::ParamTable* params_[2] = {nullptr, nullptr};
  detail::AddressTable unlent_;
  std::shared_ptr<std::unordered_set<std::string> > names_;  // of the first named_ nodes
  std::size_t named_ = 0;
  const Graph* named_graph_ = nullptr;
};

inline const FlatText* detail::readTypes(uint64_t place) {
  PassResource* const resource = RunningPass::resource();
  return resource == nullptr ? nullptr : resource->_types(place);
}

inline MXTensor* PassResource::allocate(int is_arg, const std::string& name,
                                        const std::vector<int64_t>& shape, const MXContext& ctx,
                                        MXDType dtype) {
  if (name.find('\0') != std::string::npos) {
    throw std::runtime_error("a parameter named " + detail::quoted(name.c_str()) +
                             " and more after a NUL byte cannot be allocated: rename its node");
  }
  void* data = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    nd_malloc_(nd_alloc_, shape.data(), static_cast<int>(shape.size()), ctx.dev_type.c_str(),
               ctx.dev_id, static_cast<int>(dtype), name.c_str(), is_arg, &data);
  }
  if (data == nullptr) {
    throw std::runtime_error(std::string("the host did not allocate ") +
                             (is_arg != 0 ? "arg " : "aux ") + detail::quoted(name));
  }
  return hold(name, MXTensor(data, shape, dtype, 0, ctx));
}

inline void PassResource::_read(const std::string& name, MXTensor* tensor) {
  const detail::WeightSource* source = detail::WeightSource::get();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (tensor->data_ptr != nullptr || source->read == nullptr) return;
  detail::ParamTable::Lent* lent = nullptr;
  for (detail::ParamTable* table : params_) {
    if (lent == nullptr && table != nullptr) lent = table->find(tensor);
  }
  if (lent == nullptr || lent->number == 0) return;
  const void* data = nullptr;
  source->read(nd_alloc_, lent->number, &data);
  if (data == nullptr && tensor->size() != 0) {
    throw std::runtime_error("the host did not read the parameter " + detail::quoted(name));
  }
  lent->data = const_cast<void*>(data);
  tensor->data_ptr = lent->data;
  tensor->dltensor.data = lent->data;
}

inline PassResource::Scaling PassResource::_scale(const MXTensor& source,
                                                  const std::vector<double>& factors,
                                                  const std::string* name) {
  const detail::WeightSource* host = detail::WeightSource::get();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (source.verID == 0 || source.data_ptr != nullptr || host->scale == nullptr) {
    return kNotOnDemand;
  }
  return static_cast<Scaling>(host->scale(nd_alloc_, source.verID, factors.data(), factors.size(),
                                          name == nullptr ? nullptr : name->c_str()));
}

inline MXTensor* Node::alloc_arg(const std::vector<int64_t>& shape, const MXContext& ctx,
                                 MXDType dtype) {
  PassResource* const resource = detail::RunningPass::resource();
  if (resource == nullptr) {
    throw std::runtime_error("alloc_arg on node " + detail::quoted(name) +
                             ": tensors can be allocated only while a pass runs");
  }
  tensor = resource->alloc_arg(name, shape, ctx, dtype);
  return tensor;
}

inline MXTensor* Node::alloc_aux(const std::vector<int64_t>& shape, const MXContext& ctx,
                                 MXDType dtype) {
  PassResource* const resource = detail::RunningPass::resource();
  if (resource == nullptr) {
    throw std::runtime_error("alloc_aux on node " + detail::quoted(name) +
                             ": tensors can be allocated only while a pass runs");
  }
  tensor = resource->alloc_aux(name, shape, ctx, dtype);
  return tensor;
}

inline const MXTensor* Node::readTensor() {
  PassResource* const resource = detail::RunningPass::resource();
  if (tensor != nullptr && resource != nullptr) resource->_read(name, tensor);
  return tensor;
}

inline PassResource* runningPass() { return detail::RunningPass::resource(); }

inline bool scaleParameter(Node* node, const MXTensor& source, const std::vector<double>& factors) {
  PassResource* const resource = detail::RunningPass::resource();
  if (resource == nullptr ||
      resource->_scale(source, factors, &node->name) != PassResource::kFinite) {
    return false;
  }
  node->tensor = resource->_scaled(node->name, source);
  return true;
}
