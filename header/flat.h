// ---- graphs as plain arrays: reading and writing -----------------------------------------------

namespace detail {

inline char* allocateLarge(const FlatMemory& memory, std::size_t size) {
  void* const place = memory.allocate(size);
  if (place == nullptr) throw std::bad_alloc();
  return static_cast<char*>(place);
}

/// The nodes of a graph that a host described, in one piece of memory. Nodes that a pass
/// deletes stay in it. Their packed attributes are the host's as long as nobody replaces them.
class NodeMemory {
 public:
  NodeMemory(const FlatMemory& memory, std::size_t count)
      : memory_(memory), begin_(allocateLarge(memory, (count + 1) * kStride)), next_(begin_) {}
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;
  ~NodeMemory() { memory_.release(begin_); }
  /// `packed`: its attributes, or null.
  Node* make(const uint32_t* packed) {
    Node* const node = ::new (markNode(next_, kLent)) Node();
    next_ += kStride;
    if (packed != nullptr) AttributeTexts::lendPacked(packed, &node->attrs);
    return node;
  }
  /// Whether `nodes` is a prefix of the nodes in the order of their making.
  bool beginsWith(const std::vector<Node*>& nodes) const {
    std::size_t pos = 0;
    while (pos < nodes.size() && reinterpret_cast<const char*>(nodes[pos]) == place(pos)) ++pos;
    return pos == nodes.size();
  }
  /// The place of node number `pos`.
  const char* place(std::size_t pos) const { return begin_ + kNodeMark + pos * kStride; }
  static constexpr std::size_t kStride = kNodeMark + sizeof(Node);

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
  void follow(const Item* items, uint64_t count) {
    shown_ = reinterpret_cast<const char*>(items);
    shown_size_ = static_cast<std::size_t>(count) * sizeof(Item);
  }
  template <typename Item>
  void push_back(const Item& item) {
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
  uint64_t get(const Item** items) const {
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
  Owned<NodeMemory> memory;  // of the graph's nodes
  Owned<Graph> graph;        // if it belongs to this object

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
    pairs_.push_back(FlatPair{{key.data, key.size}, {text.data, text.size}});
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
  for (const auto& member : members) {
    const std::size_t key_size = member.first.size();
    const std::size_t size = member.second.size();
    char* const copy = texts_.room(key_size + size);
    member.first.copy(copy, key_size);
    member.second.copy(copy + key_size, size);
    texts_.advance(key_size + size);
    addPair(JsonReader::Slice{copy, key_size}, JsonReader::Slice{copy + key_size, size});
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
  const AttributeTexts texts(attributes);
  const uint32_t* const packed = texts.packed(words);
  if (memory.get() == nullptr || packed == nullptr || !texts.areLent()) return packed;
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
  if (shown != nullptr && shown->packed != nullptr &&
      AttributeTexts(node.attrs).areStill(shown->packed)) {
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
    const AttributeTexts texts(node.attrs);
    texts.visitPresent([&](const JsonReader::Slice& key, const JsonReader::Slice& text) {
      if (!texts.hasTypes() || !isOfTypes(key.data, key.size)) addPair(key, text);
    });
  }
  flat.num_attrs = num_pairs_;
  if (!node.extra.empty()) addMembers(node.extra);
  flat.num_extra = num_pairs_ - flat.num_attrs;
  flat.num_inputs = static_cast<uint32_t>(node.inputs.size());
  flat.num_control_deps = static_cast<uint32_t>(node.control_deps.size());
  flat.num_subgraphs = static_cast<uint32_t>(node.subgraphs.size());
  flat.num_outputs = node.num_outputs;
  flat.outputs_declared = node.num_outputs > 0 && !hasOutput(node, node.num_outputs) ? 1 : 0;
  nodes_.push_back(flat);
  for (std::size_t pos = 0; pos < flat.num_inputs; ++pos) {
    const NodeEntry& input = node.inputs[pos];
    edges_.push_back(
        FlatEdge{found(node, pos, positions.find(input.node)), input.entry, input.version});
  }
  for (std::size_t pos = 0; pos < flat.num_control_deps; ++pos) {
    control_deps_.push_back(
        found(node, flat.num_inputs + pos, positions.find(node.control_deps[pos])));
  }
  for (const Graph* nested : node.subgraphs) {
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
      AttributeTexts(level.nodes[pos + 6]->attrs).prefetch();
    }
    addNode(*level.nodes[pos], positions, shown_ == shown_end_ ? nullptr : shown_++);
  }
  for (const NodeEntry& head : level.outputs) {
    const int64_t position = positions.find(head.node);
    if (position < 0) failGraph("an output of the graph comes from a node that is not in it");
    edges_.push_back(FlatEdge{static_cast<uint32_t>(position), head.entry, head.version});
  }
  num_pairs_ = 0;
  JsonMembers printed;
  addMembers(GraphAttributeTexts::list(level.attrs, &printed));
  graphs_.push_back(FlatGraph{level.nodes.size(), level.outputs.size(), num_pairs_});
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
    levels_.push_back(root);
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
    for (; count != 0; --count, ++pair_) {
      members->emplace_back(sliceOf(pair_->key).str(), sliceOf(pair_->text).str());
    }
  }

  void readLevel(const FlatGraph& level, Graph* graph) {
    const FlatNode* const first = node_;
    const std::size_t count = static_cast<std::size_t>(level.num_nodes);
    PlainList<uint32_t> uses;
    uses.resize(count);
    const FlatEdge* ahead = edge_;
    for (std::size_t pos = 0; pos < count; ++pos) {
      for (uint32_t nth = 0; nth < first[pos].num_inputs; ++nth) ++uses[(ahead++)->node];
    }
    graph->nodes.resize(count);
    for (std::size_t pos = 0; pos < count; ++pos) {
      Node* const node = graph->nodes[pos] = memory_->make(node_->packed);
      readNode(*node_++, uses[pos], node);
      uses[pos] = 0;
      if (node->op == "null") graph->inputs.push_back(node);
    }
    graph->outputs.resize(static_cast<std::size_t>(level.num_outputs));
    linkNodes(first, uses.data(), &edge_, &dep_, graph);
    JsonMembers attributes;
    takeMembers(level.num_attrs, &attributes);
    GraphAttributeTexts::set(&attributes, &graph->attrs);
  }

  void readNode(const FlatNode& from, uint32_t uses, Node* node) {
    assign(from.op, &node->op);
    assign(from.name, &node->name);
    // Every list gets its room at once, next to its node: walks read both.
    node->inputs.resize(from.num_inputs);
    node->outputs.resize(uses);
    for (uint32_t nth = 0; nth < from.num_attrs; ++nth, ++pair_) {
      setText(sliceOf(pair_->key), sliceOf(pair_->text), &texts(node));
    }
    takeMembers(from.num_extra, &node->extra);
    if (from.num_subgraphs != 0) node->subgraphs.resize(from.num_subgraphs);
    for (Graph*& nested : node->subgraphs) {
      nested = new Graph();
      levels_.push_back(nested);
    }
    node->num_outputs = from.num_outputs;
    if (from.outputs_declared != 0) declareOutputs(node, from.num_outputs);
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

}  // namespace detail
