// ---- nodes -------------------------------------------------------------------------------------

namespace detail {

/// Two bits of a node, and the operator for which its number of outputs is known, as a hash. They
/// share a word, because walks over large graphs wait for the memory of nodes.
class NodeMarks {
 public:
  static constexpr uint32_t kDoomed = 0x80000000;  // being deleted: passes may list a node twice
  static constexpr uint32_t kAdded = 0x40000000;   // made by Graph::addNode

  static bool has(const Node& node, uint32_t mark) { return (node.marks_ & mark) != 0; }
  static void set(Node* node, uint32_t mark) { node->marks_ |= mark; }
  static void declareOutputs(Node* node, int count) {
    node->num_outputs = count;
    node->marks_ = hashOf(node->op) | (node->marks_ & kAdded);
  }
  static bool hasOutput(const Node& node, int index) {
    if (index < 0) return false;
    return index < node.num_outputs || node.num_outputs <= 0 ||
           (node.marks_ & ~kAdded) != hashOf(node.op);
  }

 private:
  static uint32_t hashOf(const std::string& op) {
    return static_cast<uint32_t>(std::hash<std::string>()(op)) & ~(kDoomed | kAdded);
  }
};

/// Sets num_outputs for the present operator.
inline void declareOutputs(Node* node, int count) { NodeMarks::declareOutputs(node, count); }

/// Whether the operator may have an output of this number. False only if it is known not to.
inline bool hasOutput(const Node& node, int index) { return NodeMarks::hasOutput(node, index); }

/// Before each node stands a word: 0 if the node has memory of its own, kLent if a host owns it,
/// otherwise the address of the count of nodes in the block that it lies in.
const std::size_t kNodeMark = sizeof(uint64_t);
const uint64_t kLent = 1;

inline void* markNode(void* memory, uint64_t mark) {
  ::new (memory) uint64_t(mark);
  return static_cast<char*>(memory) + kNodeMark;
}

/// The beginning of a block of nodes. The last node releases the block.
typedef std::atomic<uint64_t> NodeCount;

inline void leaveBlock(NodeCount* count) {
  if (count->fetch_sub(1, std::memory_order_acq_rel) == 1) ::operator delete(count);
}

}  // namespace detail

inline void* Node::operator new(std::size_t size) {
  return detail::markNode(::operator new(size + detail::kNodeMark), 0);
}

inline void* Node::operator new(std::size_t size, const std::nothrow_t& nothrow) noexcept {
  void* const memory = ::operator new(size + detail::kNodeMark, nothrow);
  return memory == nullptr ? nullptr : detail::markNode(memory, 0);
}

inline void Node::operator delete(void* node) noexcept {
  if (node == nullptr) return;
  void* const memory = static_cast<char*>(node) - detail::kNodeMark;
  const uint64_t mark = *static_cast<uint64_t*>(memory);
  if (mark == 0) {
    ::operator delete(memory);
  } else if (mark != detail::kLent) {
    detail::leaveBlock(reinterpret_cast<detail::NodeCount*>(static_cast<uintptr_t>(mark)));
  }
}
