// ---- entry points ------------------------------------------------------------------------------

namespace detail {

#if defined(__GLIBCXX__)
/// Where a thread that is being ended unwinds through, it must not be stopped.
#define PASSLIB_RETHROW_END_OF_THREAD \
  catch (abi::__forced_unwind&) {     \
    throw;                            \
  }
#else
#define PASSLIB_RETHROW_END_OF_THREAD
#endif

/// The text of an exception, also of one that has none.
inline std::string textOf(const std::exception& error) {
  const char* text = error.what();
  return text == nullptr ? std::string("an exception without text") : std::string(text);
}

/// What passInterrupted() asks. Hosts set it once, before they run anything else.
struct InterruptSource {
  interrupted_t function;
  const void* host;
  static InterruptSource* get() {
    static InterruptSource source = {nullptr, nullptr};
    return &source;
  }
};

PASSLIB_COLD_CODE

template <typename Body>
int runBody(void* body) {
  return (*static_cast<Body*>(body))();
}

/// Runs run(body), the body of an entry point. Any exception becomes a message.
inline int runGuarded(const char* what, int (*run)(void*), void* body) {
  try {
    return run(body);
  } catch (const std::exception& error) {
    MXerrorMsgs::get()->add(printed("%s: %s", what, textOf(error).c_str()));
  }
  PASSLIB_RETHROW_END_OF_THREAD
  catch (...) {
    MXerrorMsgs::get()->add(printed("%s: something was thrown that is not a std::exception", what));
  }
  return MX_FAIL;
}

template <typename Body>
int guarded(const char* what, Body body) {
  return runGuarded(what, &runBody<Body>, &body);
}

/// Operator number idx; one without name and functions if there is none.
PASSLIB_ON_DEMAND CustomOp& operatorAt(int idx) {
  static CustomOp& none = *new CustomOp(nullptr);
  Registry<CustomOp>* operators = Registry<CustomOp>::get();
  return idx >= 0 && idx < operators->size() ? operators->get(idx) : none;
}

inline options_map_t makeOptions(const char* const* keys, const char* const* vals, int num) {
  options_map_t options;
  for (int pos = 0; pos < num; ++pos) {
    setText(JsonReader::Slice{keys[pos], strlen(keys[pos])},
            JsonReader::Slice{vals[pos], strlen(vals[pos])}, &options);
  }
  return options;
}

// These walk over all weights.
PASSLIB_SMALL_CODE

inline void addParams(ParamTable* params, PASSLIB_PARAM_BLOCK(param)) {
  for (int pos = 0; pos < num_param; ++pos) {
    params->add(param_names[pos], param_data[pos], static_cast<MXDType>(param_types[pos]),
                param_shapes[pos], param_dims[pos], param_IDs[pos],
                MXContext(param_dev_type[pos], param_dev_id[pos]));
  }
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

inline void ParamTable::requireAsLent() const {
  for (std::size_t pos = 0; pos < lent_.size(); ++pos) {
    const Lent& lent = lent_[pos];
    requireUnchanged(lent.name, tensors_[pos], lent.data, lent.type, lent.shape, lent.dims);
  }
}

}  // namespace detail

inline void PassResource::_requireAsMade(detail::AddressTable* tensors) const {
  for (const Made* each : made_) {
    tensors->add(&each->tensor);
    const MXTensor& given = each->given;
    detail::requireUnchanged(each->name.c_str(), each->tensor, given.data_ptr, given.dtype,
                             given.shape.data(), given.shape.size());
  }
}

inline void PassResource::_sortUnlent() {
  if (unlent_.empty()) return;
  qsort(unlent_.begin(), unlent_.size(), sizeof(const Node*), &detail::compareAddresses<Node>);
}

namespace detail {

/// Lends parameters to the variables of a graph, for the time of a call.
class CallParams {
 public:
  /// Lends no more than a resource if there are no parameters, which most walks are for.
  CallParams(Graph* graph, ParamTable* args, ParamTable* aux, const PassResource* resource)
      : graph_(graph),
        args_(args),
        aux_(aux),
        resource_(resource),
        any_(!args->empty() || !aux->empty()) {
    if (any_) graph->_setParams(args, aux);
  }
  bool any() const { return any_; }
  CallParams(const CallParams&) = delete;
  CallParams& operator=(const CallParams&) = delete;
  ~CallParams() {
    if (any_ || (resource_ != nullptr && resource_->_hasTensors())) graph_->_endPass();
  }
  /// Throws std::runtime_error if the call changed tensors, or gave variables others, in a way that
  /// the host does not see.
  void requireAsLent() const {
    args_->requireAsLent();
    aux_->requireAsLent();
    AddressTable made;
    if (resource_ != nullptr) resource_->_requireAsMade(&made);
    forEachNode(graph_, [](Graph*) {}, [&](Graph*, Node* node) { requireOwnTensor(*node, made); });
  }

 private:
  void requireOwnTensor(const Node& node, const AddressTable& made) const {
    if (node.tensor == nullptr || node.op != "null") return;
    const ParamTable::Lent* lent = args_->find(node.tensor);
    if (lent == nullptr) lent = aux_->find(node.tensor);
    std::string copy;
    if (lent != nullptr && (lent->node == &node || paramName(node, &copy) == lent->name)) return;
    const int64_t position = made.find(node.tensor);
    if (lent == nullptr && position < 0) {
      failCall("variable '%s' has a tensor that the host did not lend: alloc_arg makes one",
               node.name.c_str());
    }
    const char* const owner =
        lent != nullptr ? lent->name : resource_->_nameOfMade(position).c_str();
    if (lent == nullptr && node.name == owner) return;
    failCall(
        "variable '%s' has the tensor of '%s', which the host does not see: alloc_arg makes one",
        node.name.c_str(), owner);
  }

  Graph* graph_;
  const ParamTable* args_;
  const ParamTable* aux_;
  const PassResource* resource_;
  bool any_;
};

/// Calls a pass, for both entry points. `args`, `aux`: the parameters.
inline int runPass(graphPass_t function, Graph* graph, const FlatModel* shown,
                   const options_map_t& options, const char* name, ParamTable* args,
                   ParamTable* aux, nd_malloc_t nd_malloc, const void* nd_alloc) {
  if (function == nullptr) {
    MXerrorMsgs::get()->add(printed("pass '%s' has no body: call setBody", name));
    return MX_FAIL;
  }
  PassResource resource(nd_malloc, nd_alloc);
  resource._setGraph(graph);
  resource._setParams(args, aux);
  if (shown != nullptr && shown->types != nullptr) resource._offerTypes(*shown);
  const RunningPass running(&resource);
  const CallParams lent(graph, args, aux, &resource);
  for (Node* node : span(graph->inputs)) {
    if (!lent.any()) break;
    const MXTensor* tensor = node->tensor;
    if (tensor == nullptr || tensor->data_ptr != nullptr || tensor->size() == 0) continue;
    if (tensor->verID != 0) continue;  // on demand
    resource._noteUnlent(node);
    node->tensor = nullptr;
  }
  resource._sortUnlent();
  const DeclaredPasses* declared = DeclaredPasses::get();
  MXReturnValue result = MX_FAIL;
  if (declared->run == nullptr || !declared->run(function, name, graph, options, &result)) {
    result = function(graph, options);
  }
  if (result != MX_SUCCESS) return MX_FAIL;
  if (lent.any() || resource._hasTensors()) lent.requireAsLent();
  return MX_SUCCESS;
}

PASSLIB_END_CODE

/// Why the library cannot be used, a line for each reason: collected while it is loaded.
inline std::string& loadErrors() {
  static std::string& errors = *new std::string();
  return errors;
}

/// Memory for the host, freed here unless released to it.
class Handout {
 public:
  Handout() {}
  ~Handout() {
    for (void* block : blocks_) free(block);
  }
  template <typename ValueType>
  ValueType* array(std::size_t count) {
    blocks_.push(nullptr);
    void* memory = malloc(std::max<std::size_t>(count, 1) * sizeof(ValueType));
    if (memory == nullptr) throw std::bad_alloc();
    blocks_.back() = memory;
    return static_cast<ValueType*>(memory);
  }
  template <typename ValueType>
  ValueType* copy(const std::vector<ValueType>& values) {
    ValueType* memory = array<ValueType>(values.size());
    std::copy(values.begin(), values.end(), memory);
    return memory;
  }
  char* copy(const std::string& text) {
    char* memory = array<char>(text.size() + 1);
    memcpy(memory, text.c_str(), text.size() + 1);
    return memory;
  }
  void release() { blocks_.clear(); }

 private:
  PlainList<void*> blocks_;
};

template <typename ValueType>
void requireCount(const std::vector<ValueType>& values, int count, const char* what) {
  if (values.size() == static_cast<std::size_t>(count)) return;
  throw std::runtime_error(std::string("there must be ") + std::to_string(count) + " " + what +
                           ", the function left " + std::to_string(values.size()));
}

template <typename Function>
void requireFunction(Function function, const char* setter) {
  if (function != nullptr) return;
  throw std::runtime_error(std::string("there is no such function: call ") + setter);
}

typedef std::vector<std::vector<unsigned int> > ShapeList;

PASSLIB_ON_DEMAND ShapeList makeShapes(unsigned int** shapes, const int* dims, int count) {
  ShapeList list;
  for (int pos = 0; pos < count; ++pos) list.emplace_back(shapes[pos], shapes[pos] + dims[pos]);
  return list;
}

PASSLIB_ON_DEMAND void handOut(const ShapeList& list, Handout* memory, unsigned int*** shapes,
                               int** dims) {
  *shapes = memory->array<unsigned int*>(list.size());
  *dims = memory->array<int>(list.size());
  for (std::size_t pos = 0; pos < list.size(); ++pos) {
    (*shapes)[pos] = memory->copy(list[pos]);
    (*dims)[pos] = static_cast<int>(list[pos].size());
  }
}

/// The inputs, or the outputs, of an operator's call.
struct TensorBlock {
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

/// `sparse` receives the targets of the data_ptr of sparse tensors, and has room for them.
PASSLIB_ON_DEMAND std::vector<MXTensor> makeTensors(const TensorBlock& block,
                                                    std::vector<MXSparse>* sparse) {
  std::vector<MXTensor> tensors(static_cast<std::size_t>(block.count));
  for (int pos = 0; pos < block.count; ++pos) {
    const MXStorageType storage = static_cast<MXStorageType>(block.storage_types[pos]);
    void* data = block.data[pos];
    if (storage != kDefaultStorage) {
      sparse->emplace_back();
      const bool csr = storage == kCSRStorage;
      sparse->back().set(data, block.shapes[pos], block.dims[pos], block.indices[pos],
                         block.indices_counts[pos], csr ? block.indptr[pos] : nullptr,
                         csr ? block.indptr_counts[pos] : 0);
      data = &sparse->back();
    }
    tensors[static_cast<std::size_t>(pos)].setTensor(
        data, static_cast<MXDType>(block.types[pos]), block.shapes[pos], block.dims[pos],
        block.ids[pos], MXContext(block.device_types[pos], block.device_ids[pos]), storage);
  }
  return tensors;
}

/// Calls body(inputs, outputs, resource) with the tensors of an operator's call.
template <typename Body>
int compute(Body body, PASSLIB_IO_BLOCK, PASSLIB_RESOURCE_BLOCK) {
  std::vector<MXSparse> sparse;
  sparse.reserve(static_cast<std::size_t>(num_in) + static_cast<std::size_t>(num_out));
  std::vector<MXTensor> inputs =
      makeTensors({inshapes, indims, indata, intypes, inIDs, indev_type, indev_id, num_in, instypes,
                   in_indices, in_indptr, in_indices_shapes, in_indptr_shapes},
                  &sparse);
  std::vector<MXTensor> outputs =
      makeTensors({outshapes, outdims, outdata, outtypes, outIDs, outdev_type, outdev_id, num_out,
                   outstypes, out_indices, out_indptr, out_indices_shapes, out_indptr_shapes},
                  &sparse);
  const OpResource resource(cpu_malloc, cpu_alloc, gpu_malloc, gpu_alloc, stream, sparse_malloc,
                            sparse_alloc, rng_cpu_states, rng_gpu_states);
  return body(&inputs, &outputs, resource) == MX_SUCCESS ? MX_SUCCESS : MX_FAIL;
}

/// Calls an inferType or inferSType function. Outputs are initially -1: unknown.
template <typename Function>
int inferInPlace(Function function, const options_map_t& attributes, int* inputs, int num_in,
                 int* out, int num_out) {
  std::vector<int> in_codes(inputs, inputs + num_in);
  std::vector<int> out_codes(static_cast<std::size_t>(num_out), -1);
  if (function(attributes, &in_codes, &out_codes) != MX_SUCCESS) return MX_FAIL;
  requireCount(in_codes, num_in, "input types");
  requireCount(out_codes, num_out, "output types");
  std::copy(in_codes.begin(), in_codes.end(), inputs);
  std::copy(out_codes.begin(), out_codes.end(), out);
  return MX_SUCCESS;
}

PASSLIB_END_CODE
PASSLIB_PLAIN_CODE
inline char* allocateLarge(const FlatMemory& memory, std::size_t size) {
  void* const place = memory.allocate(size);
  if (place == nullptr) throw std::bad_alloc();
  return static_cast<char*>(place);
}

/// The nodes of a graph that a host described, in one piece of memory. What a pass deletes of them
/// stays in it. Their packed attributes are the host's as long as nobody replaces them.
class NodeMemory {
 public:
  NodeMemory(const FlatMemory& memory, std::size_t count)
      : memory_(memory), begin_(allocateLarge(memory, (count + 1) * kStride)), next_(begin_) {}
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;
  ~NodeMemory() { memory_.release(begin_); }
  /// `packed`: its attributes, or null.
  Node* make(const uint32_t* packed) {
    Node* const node = ::new (Node::mark(next_, true)) Node();
    next_ += kStride;
    if (packed != nullptr) node->attrs._lendPacked(packed);
    return node;
  }
  /// Whether `nodes` is a prefix of the nodes in the order of their making.
  bool beginsWith(const std::vector<Node*>& nodes) const {
    std::size_t pos = 0;
    while (pos < nodes.size() && reinterpret_cast<const char*>(nodes[pos]) == place(pos)) ++pos;
    return pos == nodes.size();
  }
  /// The place of node number `pos`.
  const char* place(std::size_t pos) const { return begin_ + Node::kMark + pos * kStride; }
  static constexpr std::size_t kStride = Node::kMark + sizeof(Node);

 private:
  const FlatMemory memory_;
  char* begin_;
  char* next_;
};

/// An array of structs of any one kind, without gaps in them.
class FlatArray {
 public:
  explicit FlatArray(const FlatMemory* memory)
      : memory_(memory), data_(nullptr), size_(0), room_(0), shown_(nullptr), shown_size_(0) {}
  FlatArray(const FlatArray&) = delete;
  FlatArray& operator=(const FlatArray&) = delete;
  ~FlatArray() {
    if (data_ != nullptr) memory_->release(data_);
  }
  void reserve(std::size_t bytes) {
    char* moved = allocateLarge(*memory_, bytes);
    if (size_ != 0) memcpy(moved, data_ != nullptr ? data_ : shown_, size_);
    if (data_ != nullptr) memory_->release(data_);
    data_ = moved;
    room_ = bytes;
  }
  /// The array is a host's as long as it gets the same items. Nothing may have been added yet.
  template <typename Item>
  PASSLIB_INLINE void follow(const Item* items, uint64_t count) {
    shown_ = reinterpret_cast<const char*>(items);
    shown_size_ = static_cast<std::size_t>(count) * sizeof(Item);
  }
  template <typename Item>
  void push(const Item& item) {
    if (data_ == nullptr && shown_size_ - size_ >= sizeof(Item)) {
      if (memcmp(shown_ + size_, &item, sizeof(Item)) == 0) {
        size_ += sizeof(Item);
        return;
      }
      reserve(shown_size_ + 1024);
    }
    if (data_ == nullptr || room_ - size_ < sizeof(Item)) {
      reserve(2 * (std::max)(size_, std::size_t(512)));
    }
    memcpy(data_ + size_, &item, sizeof(Item));
    size_ += sizeof(Item);
  }
  template <typename Item>
  PASSLIB_INLINE uint64_t get(const Item** items) const {
    *items = reinterpret_cast<const Item*>(data_ != nullptr ? data_ : shown_);
    return size_ / sizeof(Item);
  }
  std::size_t size() const { return size_; }

 private:
  const FlatMemory* memory_;
  char* data_;
  std::size_t size_;
  std::size_t room_;
  const char* shown_;  // the host's
  std::size_t shown_size_;
};

/// Positions of the nodes of a graph: by their addresses, if they still lie in the order in which a
/// host described them, otherwise by a table.
class FlatPositions {
 public:
  FlatPositions(const std::vector<Node*>& nodes, const NodeMemory* memory)
      : begin_(memory != nullptr && memory->beginsWith(nodes) ? memory->place(0) : nullptr),
        end_(begin_ + (begin_ == nullptr ? 0 : nodes.size() * NodeMemory::kStride)),
        table_(nodes.data(), begin_ == nullptr ? nodes.size() : 0) {}
  int64_t find(const Node* node) const {
    const char* const place = reinterpret_cast<const char*>(node);
    if (begin_ == nullptr) return table_.find(node);
    if (std::less<const char*>()(place, begin_) || !std::less<const char*>()(place, end_)) {
      return -1;
    }
    return (place - begin_) / static_cast<std::ptrdiff_t>(NodeMemory::kStride);
  }

 private:
  const char* begin_;
  const char* end_;
  NodeTable table_;
};

/// A graph in the flat form: the arrays, and the texts that are not the graph's own.
struct FlatStore {
  /// `large`: the host's.
  explicit FlatStore(const FlatMemory& large)
      : graphs_(&model.memory),
        nodes_(&model.memory),
        edges_(&model.memory),
        control_deps_(&model.memory),
        pairs_(&model.memory) {
    model.memory = large;
  }

  FlatModel model = {};
  Owner<NodeMemory> memory;  // of the graph's nodes
  Owner<Graph> graph;        // if it belongs to this object

  /// Sets `model`. Throws GraphStructureError for edges to nodes outside their graph, and for
  /// subgraphs that are null or belong to two nodes. `root` is borrowed.
  /// `shown`: what `graph` was made of, if it was.
  void flatten(const Graph& root, const FlatModel* shown = nullptr);
  /// Sets `graph` and returns it.
  Graph* unflatten(const FlatModel& shown);

 private:
  void add(const Graph& level);
  void addNode(const Node& node, const FlatPositions& positions, const FlatNode* shown);
  static uint32_t found(const Node& node, std::size_t pos, int64_t position) {
    if (position < 0) dependency(node, pos, NodeTable(nullptr, 0));  // says what is wrong
    return static_cast<uint32_t>(position);
  }
  FlatText keepText(const std::string& text, const FlatText* shown);
  const uint32_t* keepPacked(const NodeAttributes& attributes, std::size_t* words);
  void addPair(const JsonReader::Slice& key, const JsonReader::Slice& text) {
    pairs_.push(FlatPair{{key.data, key.size}, {text.data, text.size}});
    ++num_pairs_;
  }
  void addMembers(const JsonMembers& members);

  FlatArray graphs_;
  FlatArray nodes_;
  FlatArray edges_;
  FlatArray control_deps_;
  FlatArray pairs_;
  uint32_t num_pairs_ = 0;
  const FlatNode* shown_ = nullptr;  // what the host showed at the place of the next node
  const FlatNode* shown_end_ = nullptr;
  TextBuffer texts_;
  GraphTable levels_;  // the graphs of the nodes so far
};

/// The texts are copied: members may be printed for this call alone.
inline void FlatStore::addMembers(const JsonMembers& members) {
  JsonReader::Slice key;
  JsonReader::Slice text;
  for (JsonMembers::Walk walk(members); walk.next(&key, &text);) {
    char* const copy = texts_.room(key.size + text.size);
    if (key.size != 0) memcpy(copy, key.data, key.size);
    memcpy(copy + key.size, text.data, text.size);
    texts_.advance(key.size + text.size);
    addPair(JsonReader::Slice{copy, key.size}, JsonReader::Slice{copy + key.size, text.size});
  }
}

/// A host copies the texts, so that a library finds them one behind the other. A library names
/// those that it was shown as the host's own.
inline FlatText FlatStore::keepText(const std::string& text, const FlatText* shown) {
  const std::size_t size = text.size();
  if (shown != nullptr && shown->size == size && memcmp(shown->data, text.data(), size) == 0) {
    return *shown;
  }
  if (memory.get() != nullptr) return FlatText{text.data(), size};
  char* const copy = texts_.room(size);
  memcpy(copy, text.data(), size);
  texts_.advance(size);
  return FlatText{copy, size};
}

/// The host reads in turn: attributes that it lent may be gone when it comes to another place.
inline const uint32_t* FlatStore::keepPacked(const NodeAttributes& attributes, std::size_t* words) {
  const uint32_t* const packed = attributes._packed(words);
  if (memory.get() == nullptr || packed == nullptr || !attributes._isLent()) return packed;
  const std::size_t size = *words * sizeof(uint32_t);
  char* text = texts_.room(size + sizeof(uint32_t));
  const std::size_t beyond = reinterpret_cast<uintptr_t>(text) % sizeof(uint32_t);
  if (beyond != 0) text += sizeof(uint32_t) - beyond;
  memcpy(text, packed, size);
  texts_.advance(size + sizeof(uint32_t));
  return reinterpret_cast<const uint32_t*>(text);
}

inline void FlatStore::addNode(const Node& node, const FlatPositions& positions,
                               const FlatNode* shown) {
  FlatNode flat = {};
  flat.op = keepText(node.op, shown == nullptr ? nullptr : &shown->op);
  flat.name = keepText(node.name, shown == nullptr ? nullptr : &shown->name);
  if (shown != nullptr && shown->packed != nullptr && node.attrs._isStill(shown->packed)) {
    flat.packed = shown->packed;  // what nobody changed is the host's own, too
    flat.packed_words = shown->packed_words;
  } else {
    std::size_t words = 0;
    flat.packed = keepPacked(node.attrs, &words);
    flat.packed_words = static_cast<uint32_t>(words);
  }
  model.packed_words += flat.packed_words;
  num_pairs_ = 0;
  if (flat.packed == nullptr) {
    JsonReader::Slice key;
    JsonReader::Slice text;
    for (NodeAttributes::Walk walk(node.attrs); walk.next(&key, &text);) {
      if (!node.attrs._hasTypes() || !isOfTypes(key.data, key.size)) addPair(key, text);
    }
  }
  flat.num_attrs = num_pairs_;
  if (!node.extra.empty()) addMembers(node.extra);
  flat.num_extra = num_pairs_ - flat.num_attrs;
  flat.num_inputs = static_cast<uint32_t>(node.inputs.size());
  flat.num_control_deps = static_cast<uint32_t>(node.control_deps.size());
  flat.num_subgraphs = static_cast<uint32_t>(node.subgraphs.size());
  flat.num_outputs = node.num_outputs;
  flat.outputs_declared = node.num_outputs > 0 && !node._hasOutput(node.num_outputs) ? 1 : 0;
  nodes_.push(flat);
  for (std::size_t pos = 0; pos < flat.num_inputs; ++pos) {
    const NodeEntry& input = node.inputs[pos];
    edges_.push(FlatEdge{found(node, pos, positions.find(input.node)), input.entry, input.version});
  }
  for (std::size_t pos = 0; pos < flat.num_control_deps; ++pos) {
    control_deps_.push(found(node, flat.num_inputs + pos, positions.find(node.control_deps[pos])));
  }
  for (const Graph* nested : span(node.subgraphs)) {
    if (nested == nullptr) failGraph("a subgraph of node '%s' is null", node.name.c_str());
    if (!levels_.add(nested)) {
      failGraph("a subgraph of node '%s' also belongs to another node", node.name.c_str());
    }
  }
}

inline void FlatStore::add(const Graph& level) {
  const FlatPositions positions(level.nodes, memory.get());
  for (std::size_t pos = 0; pos < level.nodes.size(); ++pos) {
    prefetchNode(level.nodes, pos, &Node::op);
    if (memory.get() == nullptr && pos + 16 < level.nodes.size()) {
      __builtin_prefetch(&level.nodes[pos + 16]->attrs);
      level.nodes[pos + 6]->attrs._prefetch();
    }
    addNode(*level.nodes[pos], positions, shown_ == shown_end_ ? nullptr : shown_++);
  }
  for (const NodeEntry& head : span(level.outputs)) {
    const int64_t position = positions.find(head.node);
    if (position < 0) failGraph("an output of the graph comes from a node that is not in it");
    edges_.push(FlatEdge{static_cast<uint32_t>(position), head.entry, head.version});
  }
  num_pairs_ = 0;
  JsonMembers printed;
  addMembers(level.attrs._texts(&printed));
  graphs_.push(FlatGraph{level.nodes.size(), level.outputs.size(), num_pairs_});
}

inline void FlatStore::flatten(const Graph& root, const FlatModel* shown) {
  if (shown != nullptr) {
    shown_ = shown->nodes;
    shown_end_ = shown_ + shown->graphs[0].num_nodes;
    nodes_.follow(shown->nodes, shown->num_nodes);
    edges_.follow(shown->edges, shown->num_edges);
    control_deps_.follow(shown->control_deps, shown->num_control_deps);
  } else {
    texts_.room(32 * root.nodes.size());
    nodes_.reserve((root.nodes.size() + 8) * sizeof(FlatNode));
    edges_.reserve((2 * root.nodes.size() + 8) * sizeof(FlatEdge));
  }
  levels_.add(&root);
  for (std::size_t pos = 0; pos < levels_.size(); ++pos) {
    add(*levels_[pos]);
    shown_ = shown_end_;
  }
  model.version = PASSLIB_FLAT_VERSION;
  model.size = sizeof(FlatModel);
  model.num_graphs = graphs_.get(&model.graphs);
  model.num_nodes = nodes_.get(&model.nodes);
  model.num_edges = edges_.get(&model.edges);
  model.num_control_deps = control_deps_.get(&model.control_deps);
  model.num_pairs = pairs_.get(&model.pairs);
  model.owner = this;
}

/// Makes the graph that a host describes, which is sound.
class FlatReader {
 public:
  /// `memory`: for all nodes.
  FlatReader(const FlatModel& model, NodeMemory* memory)
      : memory_(memory),
        node_(model.nodes),
        edge_(model.edges),
        dep_(model.control_deps),
        pair_(model.pairs) {}

  /// `root`: an empty graph.
  void read(const FlatGraph* level, const FlatGraph* end, Graph* root) {
    levels_.push(root);
    for (std::size_t pos = 0; level != end; ++level, ++pos) readLevel(*level, levels_[pos]);
  }

 private:
  static JsonReader::Slice sliceOf(const FlatText& text) {
    return JsonReader::Slice{text.data, static_cast<std::size_t>(text.size)};
  }
  static std::unordered_map<std::string, std::string>& texts(Node* node) { return node->attrs; }
  static void assign(const FlatText& text, std::string* target) {
    target->assign(text.data, static_cast<std::size_t>(text.size));
  }
  /// Takes pairs with JSON, which the host wrote as JsonMembers wants it.
  void takeMembers(uint64_t count, JsonMembers* members) {
    for (; count != 0; --count, ++pair_) members->add(sliceOf(pair_->key), sliceOf(pair_->text));
  }

  void readLevel(const FlatGraph& level, Graph* graph) {
    const FlatNode* const first = node_;
    const std::size_t count = static_cast<std::size_t>(level.num_nodes);
    PlainList<uint32_t> uses;
    uses.addZeros(count);
    const FlatEdge* ahead = edge_;
    for (std::size_t pos = 0; pos < count; ++pos) {
      for (uint32_t nth = 0; nth < first[pos].num_inputs; ++nth) ++uses[(ahead++)->node];
    }
    graph->nodes.resize(count);
    for (std::size_t pos = 0; pos < count; ++pos) {
      Node* const node = graph->nodes[pos] = memory_->make(node_->packed);
      readNode(*node_++, uses[pos], node);
      uses[pos] = 0;
      if (node->op == "null") append(&graph->inputs) = node;
    }
    makeItems(&graph->outputs, static_cast<std::size_t>(level.num_outputs));
    linkNodes(first, uses.begin(), &edge_, &dep_, graph);
    JsonMembers attributes;
    takeMembers(level.num_attrs, &attributes);
    graph->attrs._setTexts(&attributes);
  }

  void readNode(const FlatNode& from, uint32_t uses, Node* node) {
    assign(from.op, &node->op);
    assign(from.name, &node->name);
    // Every list gets its room at once, next to its node: walks read both.
    makeItems(&node->inputs, from.num_inputs);
    makeItems(&node->outputs, uses);
    for (uint32_t nth = 0; nth < from.num_attrs; ++nth, ++pair_) {
      setText(sliceOf(pair_->key), sliceOf(pair_->text), &texts(node));
    }
    takeMembers(from.num_extra, &node->extra);
    if (from.num_subgraphs != 0) makeItems(&node->subgraphs, from.num_subgraphs);
    for (Graph*& nested : span(node->subgraphs)) {
      nested = new Graph();
      levels_.push(nested);
    }
    node->num_outputs = from.num_outputs;
    if (from.outputs_declared != 0) node->_declareOutputs(from.num_outputs);
  }

  NodeMemory* memory_;
  PlainList<Graph*> levels_;  // those of the nodes read so far
  const FlatNode* node_;      // what comes next
  const FlatEdge* edge_;
  const uint32_t* dep_;
  const FlatPair* pair_;
};

inline Graph* FlatStore::unflatten(const FlatModel& shown) {
  memory.reset(new NodeMemory(model.memory, static_cast<std::size_t>(shown.num_nodes)));
  graph.reset(new Graph());
  FlatReader(shown, memory.get()).read(shown.graphs, shown.graphs + shown.num_graphs, graph.get());
  return graph.get();
}

PASSLIB_END_CODE
PASSLIB_COLD_CODE

inline Graph* readGraph(const char* json) {
  JsonOptions reading;
  reading.allow_control_characters = true;  // MXNet does not escape them
  return Graph::fromString(json, strlen(json), reading);
}

/// The graph of a call, which a host gives as plain arrays or as JSON.
class GivenGraph {
 public:
  GivenGraph(const char* json, const FlatModel* flat) : graph_(nullptr) {
    if (flat == nullptr) {
      read_.reset(readGraph(json));
      graph_ = read_.get();
    } else {
      store_.reset(new FlatStore(flat->memory));
      graph_ = store_->unflatten(*flat);
    }
  }
  Graph* get() const { return graph_; }
  /// Returns the graph as plain arrays, with all that they refer to.
  const FlatModel* releaseFlat(const FlatModel* shown) {
    store_->flatten(*graph_, shown);
    return &store_.release()->model;
  }

 private:
  Owner<FlatStore> store_;
  Owner<Graph> read_;
  Graph* graph_;
};

/// The body of both entry points of passes: the graph and its result are JSON or plain arrays.
inline int callPass(graphPass_t function, const char* json, char** json_result,
                    const FlatModel* flat, const FlatModel** flat_result, PASSLIB_OPTION_BLOCK,
                    const char* pass_name, PASSLIB_PARAM_BLOCK(arg), PASSLIB_PARAM_BLOCK(aux),
                    nd_malloc_t nd_malloc, const void* nd_alloc) {
  return guarded(printed("pass '%s'", pass_name).c_str(), [&]() -> int {
    ParamTable args(static_cast<std::size_t>(num_arg));
    ParamTable aux(static_cast<std::size_t>(num_aux));
    addParams(&args, PASSLIB_PARAM_NAMES(arg));
    addParams(&aux, PASSLIB_PARAM_NAMES(aux));
    GivenGraph graph(json, flat);
    if (runPass(function, graph.get(), flat, makeOptions(opt_keys, opt_vals, num_opts), pass_name,
                &args, &aux, nd_malloc, nd_alloc) != MX_SUCCESS) {
      return MX_FAIL;
    }
    if (flat != nullptr) {
      *flat_result = graph.releaseFlat(flat);
    } else {
      Handout memory;
      *json_result = memory.copy(graph.get()->toString());
      memory.release();
    }
    return MX_SUCCESS;
  });
}

/// A selector with its graph.
struct OwnedSelector {
  OwnedSelector(const char* json, const FlatModel* flat) : graph(json, flat) {}
  GivenGraph graph;
  Owner<CustomOpSelector> selector;  // destroyed first
};

/// Calls a selector. Its exceptions must be of a type that the host can catch.
template <typename Body>
void callSelector(void* selector, Body body) {
  try {
    body(static_cast<OwnedSelector*>(selector)->selector.get());
  } catch (const std::exception&) {
    throw;
  }
  PASSLIB_RETHROW_END_OF_THREAD
  catch (...) {
    throw std::runtime_error("the selector threw something that is not a std::exception");
  }
}

/// The family of models that a graph belongs to.
inline std::string dialectOf(const Graph& graph) {
  std::string name;
  return graph.attrs._getString("dialect", &name) ? name : "mxnet";
}

}  // namespace detail

PASSLIB_END_CODE

inline bool passInterrupted() {
  const detail::InterruptSource* source = detail::InterruptSource::get();
  return source->function != nullptr && source->function(source->host) != 0;
}
