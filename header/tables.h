// ---- tables of addresses -----------------------------------------------------------------------

namespace detail {

/// Addresses in the order in which they were added, each once. Never dereferences them.
/// std::unordered_map takes four times as long for the nodes of a large graph (bench/halves.cc).
class AddressTable {
 public:
  explicit AddressTable(std::size_t count = 0) { reserve(count); }
  /// Returns the position, or -1.
  int64_t find(const void* address) const {
    const uint32_t tag = tagOf(address);
    for (std::size_t pos = home(address);; pos = (pos + 1) & mask_) {
      const Slot& slot = slots_[pos];
      if (slot.next == 0) return -1;
      if (slot.tag == tag && addresses_[slot.next - 1] == address) return slot.next - 1;
    }
  }
  /// Adds an address at the next position. Returns false if it is there already.
  bool add(const void* address) {
    if ((addresses_.size() + 1) * 2 > mask_ + 1) {
      reserve(addresses_.size() + 1);
      for (std::size_t pos = 0; pos < addresses_.size(); ++pos) insert(pos);
    }
    addresses_.push_back(address);
    if (insert(addresses_.size() - 1)) return true;
    addresses_.pop_back();
    return false;
  }
  /// Removes the address that was added last.
  void removeLast() {
    // No later one was put behind it, since later ones are gone.
    std::size_t slot = home(addresses_.back());
    while (slots_[slot].next != addresses_.size()) slot = (slot + 1) & mask_;
    slots_[slot] = Slot{0, 0};
    addresses_.pop_back();
  }
  /// A hint to the processor that the address will be added.
  void prefetch(const void* address) const { __builtin_prefetch(&slots_[home(address)], 1); }
  const void* operator[](std::size_t pos) const { return addresses_[pos]; }
  std::size_t size() const { return addresses_.size(); }

 private:
  struct Slot {
    uint32_t tag;   // bits of the address
    uint32_t next;  // the position plus one; 0: empty
  };
  static uint32_t tagOf(const void* address) {
    return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(address) >> 4);
  }
  // Graphs are read mostly in the order in which their nodes were allocated. Nodes of one page of
  // 4 KB share 16 slots, two lines of the cache, in the order of their addresses. Pages are spread
  // by the golden ratio, so that no two regions of memory meet in one run of slots.
  std::size_t home(const void* object) const {
    const uint64_t address = reinterpret_cast<uintptr_t>(object);
    const uint64_t page = ((address >> 12) * 0x9E3779B97F4A7C15ull) >> shift_;
    return static_cast<std::size_t>(page * 16 + ((address >> 8) & 15));
  }
  void reserve(std::size_t count) {
    std::size_t mask = 31;
    unsigned shift = 63;
    for (; mask + 1 < count * 2; --shift) mask = mask * 2 + 1;
    addresses_.reserve(count);
    slots_.reserve(mask + 1);  // before anything changes, since it may fail
    mask_ = mask;
    shift_ = shift;
    slots_.clear();
    slots_.resize(mask_ + 1);
  }
  bool insert(std::size_t position) {
    const void* const address = addresses_[position];
    const Slot wanted = {tagOf(address), static_cast<uint32_t>(position + 1)};
    std::size_t slot = home(address);
    for (; slots_[slot].next != 0; slot = (slot + 1) & mask_) {
      if (slots_[slot].tag == wanted.tag && addresses_[slots_[slot].next - 1] == address) {
        return false;
      }
    }
    slots_[slot] = wanted;
    return true;
  }

  PlainList<const void*> addresses_;
  PlainList<Slot> slots_;
  std::size_t mask_;
  unsigned shift_;
};

/// Graphs, each once.
class GraphTable : public AddressTable {
 public:
  Graph* operator[](std::size_t pos) const {
    return static_cast<Graph*>(const_cast<void*>(AddressTable::operator[](pos)));
  }
};

/// Prefetches the nodes that a walk reads some steps after position `pos`, their inputs and one
/// member more: walks over large graphs mostly wait for memory.
template <typename Member>
void prefetchNode(Node* const* nodes, std::size_t count, std::size_t pos, Member Node::* also) {
  if (pos + 16 >= count) return;
  const Node* later = nodes[pos + 16];
  __builtin_prefetch(&(later->*also));
  __builtin_prefetch(&later->inputs);
  __builtin_prefetch(nodes[pos + 6]->inputs.data());
}

template <typename Member>
void prefetchNode(const std::vector<Node*>& nodes, std::size_t pos, Member Node::* also) {
  prefetchNode(nodes.data(), nodes.size(), pos, also);
}

/// Calls `enter` once for a graph and each of its subgraphs, and then `visit` for its nodes.
template <typename Enter, typename Visit>
void walkGraphs(Graph* root, Enter enter, Visit visit) {
  GraphTable graphs;
  graphs.add(root);
  for (std::size_t next = 0; next < graphs.size(); ++next) {
    Graph* graph = graphs[next];
    enter(graph);
    for (std::size_t pos = 0; pos < graph->nodes.size(); ++pos) {
      Node* node = graph->nodes[pos];
      if (pos + 12 < graph->nodes.size() && graph->nodes[pos + 12] != nullptr) {
        __builtin_prefetch(&graph->nodes[pos + 12]->op);
        __builtin_prefetch(&graph->nodes[pos + 12]->subgraphs);
        __builtin_prefetch(&graph->nodes[pos + 12]->control_deps);
      }
      if (node == nullptr) continue;
      visit(graph, node);
      for (Graph* subgraph : node->subgraphs) {
        if (subgraph != nullptr) graphs.add(subgraph);
      }
    }
  }
}

}  // namespace detail

template <typename Visit>
void Graph::forEachNode(Visit visit) {
  detail::walkGraphs(this, [](Graph*) {}, visit);
}

template <typename Visit>
void Graph::forEachGraph(Visit visit) {
  detail::walkGraphs(this, visit, [](Graph*, Node*) {});
}

inline NodeTable::NodeTable(const std::vector<Node*>& nodes)
    : NodeTable(nodes.data(), nodes.size()) {}

inline NodeTable::NodeTable(Node* const* nodes, std::size_t count)
    : table_(new detail::AddressTable(count)) {
  for (std::size_t pos = 0; pos < count; ++pos) {
    if (nodes[pos] == nullptr) detail::failGraph("node number %zu is null", pos);
    if (pos + 16 < count) table_->prefetch(nodes[pos + 16]);
    add(nodes[pos]);
  }
}

inline NodeTable::~NodeTable() {}

inline int64_t NodeTable::find(const Node* node) const { return table_->find(node); }

inline std::size_t NodeTable::add(const Node* node) {
  if (!table_->add(node)) {
    detail::failGraph("node '%s' is listed twice", node->name.c_str());
  }
  return table_->size() - 1;
}

inline std::size_t NodeTable::size() const { return table_->size(); }
