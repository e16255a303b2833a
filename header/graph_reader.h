// ---- the graph: reading ------------------------------------------------------------------------

namespace detail {

#ifdef PASSLIB_HOST
/// A hash of text under a key that differs from process to process (SipHash-1-3): texts of a file
/// cannot be chosen so that they collide.
class TextHash {
 public:
  std::size_t operator()(const char* text, std::size_t size) const {
    uint64_t state[4] = {key()[0] ^ 0x736f6d6570736575ULL, key()[1] ^ 0x646f72616e646f6dULL,
                         key()[0] ^ 0x6c7967656e657261ULL, key()[1] ^ 0x7465646279746573ULL};
    uint64_t word = 0;
    std::size_t pos = 0;
    for (; pos + 8 <= size; pos += 8) {
      memcpy(&word, text + pos, 8);
      absorb(word, state);
    }
    word = 0;
    memcpy(&word, text + pos, size - pos);
    absorb(word | (static_cast<uint64_t>(size) << 56), state);
    state[2] ^= 0xff;
    for (int round = 0; round < 3; ++round) mix(state);
    return static_cast<std::size_t>(state[0] ^ state[1] ^ state[2] ^ state[3]);
  }
  /// For containers of std::string and of std::string_view.
  template <typename TextType>
  std::size_t operator()(const TextType& text) const {
    return (*this)(text.data(), text.size());
  }

 private:
  static const uint64_t* key() {
    static const std::pair<uint64_t, uint64_t> made(makeKey(), makeKey());
    static const uint64_t words[2] = {made.first, made.second};
    return words;
  }
  static uint64_t makeKey() {
    uint64_t word = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(&word));
    try {
      std::random_device device;
      word ^= (static_cast<uint64_t>(device()) << 32) ^ device();
    } catch (const std::exception&) {
      // No random device: the address, which differs from process to process, must do.
    }
    return word;
  }
  static uint64_t turn(uint64_t word, int bits) { return (word << bits) | (word >> (64 - bits)); }
  static void mix(uint64_t* state) {
    state[0] += state[1];
    state[1] = turn(state[1], 13) ^ state[0];
    state[0] = turn(state[0], 32);
    state[2] += state[3];
    state[3] = turn(state[3], 16) ^ state[2];
    state[0] += state[3];
    state[3] = turn(state[3], 21) ^ state[0];
    state[2] += state[1];
    state[1] = turn(state[1], 17) ^ state[2];
    state[2] = turn(state[2], 32);
  }
  static void absorb(uint64_t word, uint64_t* state) {
    state[3] ^= word;
    mix(state);
    state[0] ^= word;
  }
};

/// Finds names that occur twice. Their hashes are computed while the nodes are at hand: later they
/// are far away in memory, and are looked at only if they most likely have the same name.
class NameTable {
 public:
  /// The name of the next node.
  void add(const std::string& name) { hashes_.push(TextHash()(name)); }
  void clear() { hashes_.clear(); }
  /// Returns the position of the first of these nodes, whose names were added, that has the name of
  /// one before it; their number if there is none.
  std::size_t repeated(const std::vector<Node*>& nodes) const {
    const std::size_t count = hashes_.size();
    std::size_t mask = 15;
    while (mask < count + count / 2) mask = mask * 2 + 1;
    PlainList<Slot> slots;
    slots.addZeros(mask + 1);
    for (std::size_t pos = 0; pos < count; ++pos) {
      if (pos + 8 < count) __builtin_prefetch(&slots[hashes_[pos + 8] & mask]);
      const uint32_t high = static_cast<uint32_t>(hashes_[pos] >> 32);
      std::size_t place = hashes_[pos] & mask;
      for (; slots[place].next != 0; place = (place + 1) & mask) {
        if (slots[place].high != high) continue;
        if (nodes[slots[place].next - 1]->name == nodes[pos]->name) return pos;
      }
      slots[place] = Slot{static_cast<uint32_t>(pos + 1), high};
    }
    return count;
  }

 private:
  struct Slot {
    uint32_t next;  // behind the position of the node; 0: none
    uint32_t high;  // half of the hash
  };
  PlainList<uint64_t> hashes_;
};

#endif  // PASSLIB_HOST

/// Sets an attribute or an option. Returns false if there was one of this key. All that a library
/// does with texts of others goes this way: every other function of the map that sets something is
/// compiled anew.
__attribute__((__noinline__)) inline bool setText(
    const JsonReader::Slice& key, const JsonReader::Slice& text,
    std::unordered_map<std::string, std::string>* texts) {
  const auto added = texts->emplace(key.str(), text.str());
  if (!added.second) added.first->second.assign(text.data, text.size);
  return added.second;
}

}  // namespace detail

PASSLIB_END_CODE

inline void NodeAttributes::swap(NodeAttributes& other) noexcept {
  other.map_.store(map_.exchange(other.known()));
  std::swap(shared_, other.shared_);
  std::swap(lent_, other.lent_);
  std::swap(types_, other.types_);
  std::swap(has_types_, other.has_types_);
}

inline void NodeAttributes::copy(const NodeAttributes& other) {
  const bool has_types = __atomic_load_n(&other.has_types_, __ATOMIC_ACQUIRE);
  if (other.known() != nullptr) {
    map_.store(new Map(*other.known()));
  } else if (other.lent_) {
    _setPacked(other.shared_, other.words());
  } else if (other.shared_ != nullptr) {
    __atomic_add_fetch(other.shared_ - 1, 1, __ATOMIC_RELAXED);
    shared_ = other.shared_;
  }
  types_ = other.types_;
  has_types_ = has_types;
}

inline bool NodeAttributes::equals(const NodeAttributes& other) const {
  if (size() != other.size()) return false;
  if (empty()) return true;
  const bool same_types = types_.node == other.types_.node && types_.call == other.types_.call;
  if (known() != nullptr || other.known() != nullptr || !same_types) {
    return whole() == other.whole();
  }
  if (shared_ == other.shared_) return true;
  return words() == other.words() &&
         memcmp(shared_, other.shared_, words() * sizeof(uint32_t)) == 0;
}

inline bool NodeAttributes::_find(const char* key, std::size_t size,
                                  JsonReader::Slice* text) const {
  if (types_.node != 0 && detail::isOfTypes(key, size)) {
    if (known() != nullptr) {
      whole();
    } else {
      const FlatText* const texts = detail::readTypes(types_);
      if (texts == nullptr) return false;
      const FlatText& found = texts[key[6] == 's' ? 0 : 1];
      *text = JsonReader::Slice{found.data, static_cast<std::size_t>(found.size)};
      return true;
    }
  }
  if (known() != nullptr) {
    const Map::const_iterator found = known()->find(std::string(key, size));
    if (found == known()->end()) return false;
    *text = JsonReader::Slice{found->second.data(), found->second.size()};
    return true;
  }
  const char* cursor = shared_ == nullptr ? nullptr : texts();
  for (std::size_t pos = 0; cursor != nullptr && pos < shared_[0]; ++pos) {
    const uint32_t* sizes = &shared_[2 + 2 * pos];
    if (sizes[0] == size && memcmp(cursor, key, size) == 0) {
      *text = JsonReader::Slice{cursor + size, sizes[1]};
      return true;
    }
    cursor += static_cast<std::size_t>(sizes[0]) + sizes[1];
  }
  return false;
}

inline bool NodeAttributes::_isStill(const uint32_t* packed) const {
  const Map* const map = known();
  if (map == nullptr) return shared_ == packed;
  const std::size_t types =
      types_.node == 0 ? 0 : map->count("__ext_shape__") + map->count("__ext_dtype__");
  if (map->size() != packed[0] + types) return false;
  const char* cursor = reinterpret_cast<const char*>(&packed[2 + 2 * packed[0]]);
  for (std::size_t pos = 0; pos < packed[0]; ++pos) {
    const uint32_t* const sizes = &packed[2 + 2 * pos];
    const Map::const_iterator found = map->find(std::string(cursor, sizes[0]));
    if (found == map->end() || found->second.size() != sizes[1]) return false;
    cursor += sizes[0];
    if (memcmp(found->second.data(), cursor, sizes[1]) != 0) return false;
    cursor += sizes[1];
  }
  return true;
}

inline bool NodeAttributes::Walk::next(JsonReader::Slice* key, JsonReader::Slice* text) {
  if (map_ != nullptr) {
    if (place_ == map_->end()) return false;
    *key = JsonReader::Slice{place_->first.data(), place_->first.size()};
    *text = JsonReader::Slice{place_->second.data(), place_->second.size()};
    ++place_;
    return true;
  }
  if (cursor_ == nullptr || pos_ == block_[0]) return false;
  const uint32_t* const sizes = &block_[2 + 2 * pos_++];
  *key = JsonReader::Slice{cursor_, sizes[0]};
  *text = JsonReader::Slice{cursor_ + sizes[0], sizes[1]};
  cursor_ += static_cast<std::size_t>(sizes[0]) + sizes[1];
  return true;
}

namespace detail {

inline JsonReader::Slice sliceOf(const JsonReader::Slice& text) { return text; }
inline JsonReader::Slice sliceOf(const std::string& text) {
  return JsonReader::Slice{text.data(), text.size()};
}

}  // namespace detail

template <typename Text>
const Text* NodeAttributes::_pack(std::pair<Text, Text>* items, std::size_t count) {
  clear();
  std::size_t size = 0;
  for (std::size_t pos = 0; pos < count; ++pos) {
    size += detail::sliceOf(items[pos].first).size + detail::sliceOf(items[pos].second).size;
  }
  const std::size_t few = 64;
  if (count > few || size > (std::numeric_limits<uint32_t>::max)() / 2) {
    reserve(count);
    for (std::size_t pos = 0; pos < count; ++pos) {
      if (!detail::setText(detail::sliceOf(items[pos].first), detail::sliceOf(items[pos].second),
                           &write())) {
        return &items[pos].first;
      }
    }
    return nullptr;
  }
  if (count == 0) return nullptr;
  for (std::size_t pos = 1; pos < count; ++pos) {  // most files have them sorted
    for (std::size_t place = pos; place > 0; --place) {
      if (!(detail::sliceOf(items[place].first) < detail::sliceOf(items[place - 1].first))) break;
      items[place].swap(items[place - 1]);
    }
  }
  for (std::size_t pos = 1; pos < count; ++pos) {
    // Sorted: if it is not before the next one, it is the same.
    if (!(detail::sliceOf(items[pos - 1].first) < detail::sliceOf(items[pos].first))) {
      return &items[pos].first;
    }
  }
  uint32_t* const block = newBlock(2 + 2 * count + (size + 3) / 4);
  block[0] = static_cast<uint32_t>(count);
  block[1] = static_cast<uint32_t>(size);
  block[1 + 2 * count + (size + 3) / 4] = 0;  // the bytes behind the texts are compared, too
  char* cursor = reinterpret_cast<char*>(&block[2 + 2 * count]);
  for (std::size_t pos = 0; pos < count; ++pos) {
    const JsonReader::Slice texts[] = {detail::sliceOf(items[pos].first),
                                       detail::sliceOf(items[pos].second)};
    for (int part = 0; part < 2; ++part) {
      block[2 + 2 * pos + part] = static_cast<uint32_t>(texts[part].size);
      memcpy(cursor, texts[part].data, texts[part].size);
      cursor += texts[part].size;
    }
  }
  shared_ = block;
  return nullptr;
}

inline NodeAttributes::Map& NodeAttributes::read() const {
  if (known() != nullptr) return *known();
  detail::Owner<Map> made(new Map());
  JsonReader::Slice key;
  JsonReader::Slice text;
  for (Walk walk(*this); walk.next(&key, &text);) detail::setText(key, text, made.get());
  if (types_.node != 0) {
    const JsonReader::Slice nothing = {"", 0};
    detail::setText(JsonReader::Slice{"__ext_shape__", 13}, nothing, made.get());
    detail::setText(JsonReader::Slice{"__ext_dtype__", 13}, nothing, made.get());
  }
  Map* const present = map_.setFirst(made.get());  // another thread's, if that was faster
  return present == nullptr ? *made.release() : *present;
}

/// Other threads may read other attributes meanwhile: nothing moves in the map.
inline NodeAttributes::Map& NodeAttributes::whole() const {
  static detail::Mutex& filling = *new detail::Mutex();
  Map& map = read();
  if (types_.node == 0 || __atomic_load_n(&has_types_, __ATOMIC_ACQUIRE)) return map;
  const FlatText* const texts = detail::readTypes(types_);
  const detail::Mutex::Guard lock(filling);
  if (has_types_) return map;
  for (int which = 0; texts != nullptr && which < 2; ++which) {
    const Map::iterator found = map.find(which == 0 ? "__ext_shape__" : "__ext_dtype__");
    if (found == map.end()) continue;  // erased
    found->second.assign(texts[which].data, static_cast<std::size_t>(texts[which].size));
  }
  __atomic_store_n(&has_types_, true, __ATOMIC_RELEASE);
  return map;
}

PASSLIB_COLD_CODE

namespace detail {

inline bool isOfTypes(const char* key, std::size_t size) {
  return size == 13 &&
         (memcmp(key, "__ext_shape__", 13) == 0 || memcmp(key, "__ext_dtype__", 13) == 0);
}

/// Asks the processor for the nodes that a walk reads some steps after position `pos`, for their
/// inputs and one member more: in a large graph, walks mostly wait for memory.
template <typename Member>
void prefetchNode(Node* const* nodes, std::size_t count, std::size_t pos, Member Node::* also) {
  if (pos + 16 >= count) return;
  const Node* later = nodes[pos + 16];
  __builtin_prefetch(&(later->*also));
  __builtin_prefetch(&later->inputs);
  __builtin_prefetch(nodes[pos + 6]->inputs.data());
}

template <typename Member>
PASSLIB_INLINE void prefetchNode(const std::vector<Node*>& nodes, std::size_t pos,
                                 Member Node::* also) {
  prefetchNode(nodes.data(), nodes.size(), pos, also);
}

bool orderNodes(Node* const* nodes, std::size_t count, const NodeTable& table,
                PlainList<Node*>* order);

PASSLIB_PLAIN_CODE

/// Sets both sides of every edge, for which there is room, and the control dependencies. `first`:
/// of the nodes' numbers of edges; `known`: zeros; `edge`, `dep`: their ends, moved behind those of
/// the graph.
inline void linkNodes(const FlatNode* first, uint32_t* known, const FlatEdge** edge,
                      const uint32_t** dep, Graph* graph) {
  Node* const* const nodes = graph->nodes.data();
  const std::size_t count = graph->nodes.size();
  const FlatEdge* from = *edge;
  for (std::size_t pos = 0; pos < count; ++pos) {
    Node* const node = nodes[pos];
    NodeEntry* const inputs = node->inputs.data();
    for (uint32_t nth = 0; nth < first[pos].num_inputs; ++nth, ++from) {
      Node* const producer = nodes[from->node];
      inputs[nth] = NodeEntry(producer, from->entry, from->version);
      producer->outputs[known[from->node]++] = NodeEntry(node, static_cast<int>(nth));
    }
    if (first[pos].num_control_deps != 0) node->control_deps.resize(first[pos].num_control_deps);
    for (uint32_t nth = 0; nth < first[pos].num_control_deps; ++nth) {
      node->control_deps[nth] = nodes[*(*dep)++];
    }
  }
  for (NodeEntry& head : span(graph->outputs)) {
    head = NodeEntry(nodes[from->node], from->entry, from->version);
    ++from;
  }
  *edge = from;
}

PASSLIB_END_CODE

/// What the two readers of graphs in JSON share, that of hosts and that of libraries.
class ReaderParts {
 protected:
  typedef JsonReader::Slice Slice;

  ReaderParts(const char* text, std::size_t size, const JsonOptions& options)
      : reader_(text, size, options) {}
  ~ReaderParts() = default;

  [[noreturn]] void failTwice(const char* key) const {
    reader_._fail(kJsonDuplicateKey, reader_.offset(), "the key '%s' occurs twice in one object",
                  key);
  }

  void readText(std::string* target) {
    const Slice text = reader_.readString();
    target->assign(text.data, text.size);
  }

  /// Reads a member that the readers do not know, into an object.
  __attribute__((__noinline__)) void readOther(const Slice& key, JsonTree* object) {
    reader_._readItem(object, object->add(0, key, reader_.offset()));
  }

  /// Moves such members, if there are any, to a graph, or to a node, which has them as in the text.
  __attribute__((__noinline__)) void keepOthers(JsonTree* object, Graph* graph) const {
    reader_._sort(object, 0);
    JsonMembers members;
    object->print(&members);
    graph->attrs._setTexts(&members);
  }
  __attribute__((__noinline__)) void keepOthers(JsonTree* object, Node* node) const {
    object->print(&node->extra);
    reader_._sort(object, 0);
    object->clear(MAP);
  }

  /// `only_one`: no other object of attributes of the node was read; `give_way`: those of others
  /// take precedence.
  void parseAttributes(Node* node, bool only_one, bool give_way) {
    bool first = true;
    Slice key;
    pairs_.clear();
    decoded_.clear();
    reader_.beginObject();
    while (reader_.nextKey(&first, &key)) {
      key = kept(key);
      if (reader_.peek() != '"') {
        reader_._fail(kJsonType, reader_.offset(), "attribute '%s' of node '%s' must be a string",
                      key.str().c_str(), node->name.c_str());
      }
      pairs_.push(std::pair<Slice, Slice>(key, kept(reader_.readString())));
    }
    requireSpread(*node);
    if (only_one) {
      const Slice* const twice = node->attrs._pack(pairs_.begin(), pairs_.size());
      if (twice == nullptr) return;
      reader_._fail(kJsonDuplicateKey, reader_.offset(), "attribute '%s' occurs twice in node '%s'",
                    twice->str().c_str(), node->name.c_str());
    }
    for (const auto& pair : pairs_) {
      Slice former;
      if (give_way && node->attrs._find(pair.first.data, pair.first.size, &former)) continue;
      std::unordered_map<std::string, std::string>& attributes = node->attrs;
      setText(pair.first, pair.second, &attributes);
    }
  }

  /// Reads an entry of two or three numbers: node, output and, since 0.9, version.
  FlatEdge readEntry(const char* what) {
    int64_t numbers[3] = {0, 0, 0};
    int count = 0;
    bool first = true;
    reader_.peek();
    const std::size_t place = reader_.offset();
    reader_.beginList();
    while (reader_.nextItem(&first)) {
      if (count == 3) failShape(what, place);
      // The count of outputs, one more than the largest number, is an int too.
      const int64_t most = count == 1 ? kIntMax - 1 : kIntMax;
      numbers[count++] = reader_.readInteger("number of an entry", 0, most);
    }
    if (count < 2) failShape(what, place);
    return FlatEdge{static_cast<uint32_t>(numbers[0]), static_cast<int32_t>(numbers[1]),
                    static_cast<int32_t>(numbers[2])};
  }

  JsonReader reader_;

 private:
  /// A text that the reader returned, which is valid until all attributes of the node are read.
  Slice kept(const Slice& text) {
    if (!reader_.isDecoded(text)) return text;
    char* const copy = decoded_.room(text.size);
    decoded_.append(text.data, text.size);
    return Slice{copy, text.size};
  }

  /// Refuses keys chosen so that they collide in the node's table, whose hash has no key: each
  /// would be compared with all before it.
  void requireSpread(const Node& node) const {
    const std::size_t most = 64;  // by chance, a dozen in a million
    if (pairs_.size() <= most) return;
    const std::size_t room = node.attrs.size() + pairs_.size();
    NodeAttributes::Map table;
    table.reserve(room);
    PlainList<uint32_t> filled;
    filled.addZeros(table.bucket_count());
    for (const auto& pair : pairs_) {
      if (++filled[table.bucket(pair.first.str())] <= most) continue;
      reader_._fail(kJsonRange, reader_.offset(),
                    "the attributes of node '%s' have the same key many times, or keys chosen to "
                    "collide in a hash table",
                    node.name.c_str());
    }
  }

  [[noreturn]] void failShape(const char* what, std::size_t place) const {
    reader_._fail(kJsonType, place, "%s entries are [node, output] or [node, output, version]",
                  what);
  }

  PlainList<std::pair<Slice, Slice> > pairs_;  // of one node's attributes
  TextBuffer decoded_;                         // those with escapes
};

#ifdef PASSLIB_HOST

/// Offsets in a text, none below the one before it, in four bytes each: fresh memory is much of
/// what reading a large graph costs.
class TextOffsets {
 public:
  void push(std::size_t offset) {
    for (; offset >> 32 > turns_.size(); turns_.push(low_.size())) {
    }
    low_.push(static_cast<uint32_t>(offset));
  }
  std::size_t size() const { return low_.size(); }
  std::size_t operator[](std::size_t pos) const {
    std::size_t high = 0;
    while (high < turns_.size() && turns_[high] <= pos) ++high;
    return (high << 32) + low_[pos];
  }

 private:
  PlainList<uint32_t> low_;
  PlainList<std::size_t> turns_;  // the numbers of those from which on the higher half is one more
};

/// A graph being read. Edges are numbers of nodes that may not have been read yet.
struct GraphDraft {
  struct Dependency {
    std::size_t node;
    uint32_t other;
  };
  explicit GraphDraft(Graph* target) : graph(target) {}

  Graph* graph;
  PlainList<FlatEdge> edges;     // of all nodes in turn
  PlainList<uint32_t> edge_end;  // per node: one past its last edge
  PlainList<Dependency> control_deps;
  TextOffsets offsets;  // per node: its offset in the text
  PlainList<FlatEdge> heads;
  PlainList<uint32_t> arg_nodes;
  PlainList<uint32_t> row_ptr;
  PlainList<unsigned> uses;  // per node: its consumers, or those that know of it already
  PlainList<uint32_t> variables;
  NameTable names;        // of the variables
  std::size_t start = 0;  // offset of the graph in the text
  bool has_nodes = false;
  bool has_heads = false;
  bool has_arg_nodes = false;
  bool has_row_ptr = false;
  bool outputs_stated = false;  // by row_ptr
};

/// The members of a node's JSON object that mean something to the reader.
enum NodeMember {
  kMemberNone,  ///< before the first one
  kMemberOp,
  kMemberName,
  kMemberInputs,
  kMemberAttrs,
  kMemberAttr,
  kMemberParam,
  kMemberControlDeps,
  kMemberSubgraphs,
  kMemberSourceId,
  kMemberOther,
  kNodeMembers
};

/// What stood between the values of two members of a node. Files repeat it, and the same bytes at
/// the same place of the grammar mean the same: they are compared instead of parsed.
class KnownTexts {
 public:
  KnownTexts() { memset(known_, 0, sizeof(known_)); }

  /// Moves over the text behind the value of a member if it is known. Returns the member whose
  /// value comes next, or kMemberOther. Members that were `seen` are not looked for.
  PASSLIB_INLINE NodeMember skip(NodeMember last, const bool* seen, JsonReader* reader) const {
    const Known* const known = known_[last];
    for (int way = 0; way < kWays && known[way].size != 0; ++way) {
      const bool wanted = !seen[known[way].next];
      if (wanted && reader->_skipKnown(known[way].text, known[way].size)) return known[way].next;
    }
    return kMemberOther;
  }
  void learn(NodeMember last, const char* text, std::size_t size, NodeMember next) {
    Known* const known = known_[last];
    for (int way = kWays - 1; way > 0; --way) known[way] = known[way - 1];
    known[0] = Known{text, size, next};
  }

 private:
  enum { kWays = 3 };
  struct Known {
    const char* text;
    std::size_t size;
    NodeMember next;
  };
  Known known_[kNodeMembers][kWays];
};

/// A place in a table of 512 that may forget, so that bytes may be chosen to collide. Four products
/// at a time, since each waits for the one before it.
inline std::size_t smallHash(const char* bytes, std::size_t size) {
  const uint64_t factor = 0x9e3779b97f4a7c15ULL;
  uint64_t lanes[4] = {size, 1, 2, 3};
  char few[32] = {0};
  if (size < sizeof(few)) {
    memcpy(few, bytes, size);
    bytes = few;
    size = sizeof(few);
  }
  const char* const last = bytes + size - sizeof(few);
  for (;; bytes = (std::min)(bytes + sizeof(few), last)) {
    for (int lane = 0; lane < 4; ++lane) {
      uint64_t word = 0;
      memcpy(&word, bytes + 8 * lane, 8);
      lanes[lane] = (lanes[lane] ^ word) * factor;
    }
    if (bytes == last) break;
  }
  uint64_t sum = lanes[0];
  for (int lane = 1; lane < 4; ++lane) {
    sum ^= (lanes[lane] << (16 * lane)) | (lanes[lane] >> (64 - 16 * lane));
  }
  return static_cast<std::size_t>(sum * factor >> 55);
}

/// Attributes of nodes by the text of their JSON object. The layers of a model are of few kinds, so
/// that most such texts were read before. A later text may take the place of another.
class KnownAttributes {
 public:
  /// Returns a node with the attributes of the object at the beginning of a text, or null if the
  /// object was not read before. Sets its size, to 0 if it is never noted.
  const Node* find(const JsonReader::Slice& rest, std::size_t* size) {
    *size = objectSize(rest);
    if (*size == 0) return nullptr;
    if (slots_.empty()) slots_.addZeros(kSlots);
    slot_ = &slots_[smallHash(rest.data, *size)];
    if (slot_->size != *size || memcmp(slot_->text, rest.data, *size) != 0) return nullptr;
    std::size_t words = 0;
    return slot_->node->attrs._packed(&words) != nullptr ? slot_->node : nullptr;
  }
  /// Notes the object that was not found last. The node must keep its attributes.
  void learn(const char* text, std::size_t size, const Node* node) {
    *slot_ = Slot{text, size, node};
  }

 private:
  enum { kSlots = 512 };
  struct Slot {
    const char* text;
    std::size_t size;
    const Node* node;
  };
  /// Returns the size of an object at the beginning of a text, if it has no braces inside and is
  /// not large, and 0 otherwise.
  static std::size_t objectSize(const JsonReader::Slice& rest) {
    const std::size_t most = 4096;
    const void* const close = memchr(rest.data, '}', (std::min)(rest.size, most));
    if (close == nullptr) return 0;
    return static_cast<std::size_t>(static_cast<const char*>(close) - rest.data) + 1;
  }

  PlainList<Slot> slots_;
  Slot* slot_ = nullptr;
};

/// Reads NNVM's JSON into a Graph. Nested graphs are kept on a stack of their own. A host that
/// wants to know more about a graph overrides what is virtual.
class GraphReader : private ReaderParts {
 public:
  GraphReader(const char* text, std::size_t size, const JsonOptions& options)
      : ReaderParts(text, size, options) {}
  GraphReader(const GraphReader&) = delete;
  GraphReader& operator=(const GraphReader&) = delete;
  virtual ~GraphReader() {
    while (frame_ != nullptr) pop();
  }

  void read(Graph* graph) {
    push(graph);
    while (frame_ != nullptr) step();
    reader_.finish();
  }

 protected:
  /// Called for each node of a graph whose numbers of outputs are set, which are at hand.
  virtual void onNode(const Node& /*node*/) {}
  /// Called when a graph has all its edges. `ordered`: every producer comes before its consumers.
  virtual void onGraph(const GraphDraft& /*draft*/, bool /*ordered*/) {}

 private:
  enum State { kGraphKeys, kNodeList, kNodeKeys, kSubgraphList };
  struct Frame {
    explicit Frame(Graph* graph) : draft(graph) {}
    GraphDraft draft;
    State state = kGraphKeys;
    bool first_key = true;
    bool first_node = true;
    bool first_field = true;
    bool first_subgraph = true;
    Node* node = nullptr;
    NodeMember member = kMemberNone;    // the last one read
    bool seen[kNodeMembers] = {false};  // of the node
    JsonTree attrs{MAP};
    JsonTree extra{MAP};  // of the node
    int attribute_objects = 0;
    Frame* outer = nullptr;
  };

  void push(Graph* graph) {
    reader_.peek();
    Frame* const frame = new Frame(graph);
    frame->draft.start = reader_.offset();
    frame->outer = frame_;
    frame_ = frame;
    reader_.beginObject();
  }

  void pop() {
    Frame* const done = frame_;
    frame_ = done->outer;
    delete done;
  }

  void step() {
    Frame& frame = *frame_;
    JsonReader::Slice key;
    switch (frame.state) {
      case kGraphKeys:
        if (reader_.nextKey(&frame.first_key, &key)) {
          readGraphMember(&frame, key);
        } else {
          keepOthers(&frame.attrs, frame.draft.graph);
          finishGraph(&frame.draft);
          pop();
        }
        break;
      case kNodeList:
        if (reader_.nextItem(&frame.first_node)) {
          beginNode(&frame);
        } else {
          frame.state = kGraphKeys;
        }
        break;
      case kNodeKeys:
        if (nextMember(&frame, &key)) {
          readNodeMember(&frame, key);
        } else {
          finishNode(&frame);
          frame.state = kNodeList;
        }
        break;
      case kSubgraphList:
        if (reader_.nextItem(&frame.first_subgraph)) {
          Graph*& nested = append(&frame.node->subgraphs);
          nested = new Graph();
          push(nested);
        } else {
          frame.state = kNodeKeys;
        }
        break;
    }
  }

  void once(bool* seen, const char* key) const {
    if (*seen) failTwice(key);
    *seen = true;
  }

  void readGraphMember(Frame* frame, const JsonReader::Slice& key) {
    GraphDraft& draft = frame->draft;
    if (key == "nodes") {
      once(&draft.has_nodes, "nodes");
      reader_.beginList();
      frame->state = kNodeList;
    } else if (key == "heads") {
      once(&draft.has_heads, "heads");
      readEntries("head", &draft.heads);
    } else if (key == "arg_nodes") {
      once(&draft.has_arg_nodes, "arg_nodes");
      readIntegers("node number", &draft.arg_nodes);
    } else if (key == "node_row_ptr") {
      once(&draft.has_row_ptr, "node_row_ptr");
      readIntegers("row pointer", &draft.row_ptr);
    } else {
      readOther(key, &frame->attrs);
    }
  }

  void beginNode(Frame* frame) {
    reader_.peek();
    frame->draft.offsets.push(reader_.offset());
    reader_.beginObject();
    Graph* graph = frame->draft.graph;
    Node*& node = append(&graph->nodes);
    node = frame->node = new Node();
    frame->state = kNodeKeys;
    frame->first_field = true;
    frame->first_subgraph = true;
    frame->member = kMemberNone;
    memset(frame->seen, 0, sizeof(frame->seen));
    frame->attribute_objects = 0;
  }

  /// Moves to the value of the next member of a node, of which `key` is set for a kMemberOther
  /// alone. Returns false at the closing brace.
  bool nextMember(Frame* frame, JsonReader::Slice* key) {
    const NodeMember last = frame->member;
    frame->member = known_texts_.skip(last, frame->seen, &reader_);
    frame->first_field = frame->first_field && frame->member == kMemberOther;
    if (frame->member == kMemberOther) {
      const JsonReader::Slice rest = reader_._rest();
      if (!reader_.nextKey(&frame->first_field, key)) return false;
      frame->member = memberOf(*key);
      if (frame->member == kMemberOther) return true;
      // MXNet 0.8 wrote backward_source_id, unused since, which may be repeated.
      if (frame->member == kMemberSourceId) return true;
      once(&frame->seen[frame->member], nameOf(frame->member));
      reader_.peek();
      known_texts_.learn(last, rest.data, rest.size - reader_._rest().size, frame->member);
    }
    frame->seen[frame->member] = true;
    return true;
  }

  static const char* nameOf(NodeMember member) {
    static const char* const names[] = {
        "",     "op",    "name",         "inputs",    "attrs",
        "attr", "param", "control_deps", "subgraphs", "backward_source_id"};
    return names[member];
  }

  static NodeMember memberOf(const JsonReader::Slice& key) {
    for (int member = kMemberOp; member < kMemberOther; ++member) {
      if (key == nameOf(static_cast<NodeMember>(member))) return static_cast<NodeMember>(member);
    }
    return kMemberOther;
  }

  void readNodeMember(Frame* frame, const JsonReader::Slice& key) {
    Node* node = frame->node;
    bool first = true;
    const NodeMember member = frame->member;
    switch (member) {
      case kMemberOp:
        readText(&node->op);
        break;
      case kMemberName:
        readText(&node->name);
        break;
      case kMemberInputs:
        readEntries("input", &frame->draft.edges);
        break;
      case kMemberAttrs:
      case kMemberAttr:
      case kMemberParam:
        // Three spellings from three generations of files. MXNet 0.8 writes both "param" and
        // "attr"; "attr" takes precedence.
        readAttributes(frame, member == kMemberParam);
        break;
      case kMemberControlDeps:
        reader_.beginList();
        while (reader_.nextItem(&first)) {
          frame->draft.control_deps.push(GraphDraft::Dependency{
              frame->draft.graph->nodes.size() - 1,
              static_cast<uint32_t>(reader_.readInteger("node number", 0, kIntMax))});
        }
        break;
      case kMemberSubgraphs:
        reader_.beginList();
        frame->state = kSubgraphList;
        break;
      case kMemberSourceId:
        reader_.readInteger("backward_source_id", -1, kIntMax);
        break;
      default:
        readOther(key, &frame->extra);
    }
  }

  void readAttributes(Frame* frame, bool give_way) {
    Node* node = frame->node;
    const bool only_one = frame->attribute_objects++ == 0;
    reader_.peek();
    const JsonReader::Slice rest = reader_._rest();
    std::size_t size = 0;
    const bool may_know = only_one && reader_._mayEnter();
    const Node* const known = may_know ? known_attributes_.find(rest, &size) : nullptr;
    if (known != nullptr) {
      node->attrs = known->attrs;
      reader_._skip(size);
      return;
    }
    parseAttributes(node, only_one, give_way);
    const bool learns = size != 0 && rest.size - reader_._rest().size == size;
    if (learns && node->attrs._packed(&size) != nullptr) {
      known_attributes_.learn(rest.data, rest.size - reader_._rest().size, node);
    }
  }

  /// Moves to the next item of a list of numbers, or of lists of them.
  bool nextItem(bool* first, JsonReader::Slice* between) {
    const bool learn = !*first;
    if (learn && between->size != 0 && reader_._skipKnown(between->data, between->size))
      return true;
    const JsonReader::Slice rest = reader_._rest();
    if (!reader_.nextItem(first)) return false;
    if (learn) *between = JsonReader::Slice{rest.data, rest.size - reader_._rest().size};
    return true;
  }

  void readIntegers(const char* what, PlainList<uint32_t>* values) {
    bool first = true;
    int plain = 0;
    reader_.beginList();
    while (nextItem(&first, &between_numbers_)) {
      if (!reader_._readDigits(&plain)) {
        plain = static_cast<int>(reader_.readInteger(what, 0, kIntMax));
      }
      values->push(static_cast<uint32_t>(plain));
    }
  }

  void readEntries(const char* what, PlainList<FlatEdge>* edges) {
    bool first = true;
    int plain[3];
    reader_.beginList();
    while (nextItem(&first, &between_entries_)) {
      edges->push(reader_._readTuple(plain, 3)
                      ? FlatEdge{static_cast<uint32_t>(plain[0]), plain[1], plain[2]}
                      : readEntry(what));
    }
  }

  void finishNode(Frame* frame) const {
    if (frame->extra.size() > 1) keepOthers(&frame->extra, frame->node);
    const char* missing = nullptr;
    for (int member = kMemberInputs; member >= kMemberOp; --member) {
      if (!frame->seen[member]) missing = nameOf(static_cast<NodeMember>(member));
    }
    const std::size_t place = frame->draft.offsets[frame->draft.offsets.size() - 1];
    if (missing != nullptr && frame->seen[kMemberName]) {
      reader_._fail(kJsonMissingKey, place, "node '%s' has no '%s'", frame->node->name.c_str(),
                    missing);
    }
    if (missing != nullptr) {
      reader_._fail(kJsonMissingKey, place, "node number %zu has no '%s'",
                    frame->draft.offsets.size() - 1, missing);
    }
    PlainList<uint32_t>& ends = frame->draft.edge_end;
    const std::size_t first = ends.empty() ? 0 : ends.back();
    const std::size_t end = frame->draft.edges.size();
    if (end > (std::numeric_limits<uint32_t>::max)()) {
      reader_._fail(kJsonRange, place, "the graph has more than 4294967295 edges");
    }
    ends.push(static_cast<uint32_t>(end));
    if (frame->node->op == "null") {
      append(&frame->draft.graph->inputs) = frame->node;
      frame->draft.names.add(frame->node->name);
      frame->draft.variables.push(static_cast<uint32_t>(frame->draft.offsets.size() - 1));
    }
    if (end > first) frame->node->inputs.resize(end - first);  // next to the node: walks read both
  }

  void finishGraph(GraphDraft* draft) {
    const char* const missing = !draft->has_nodes       ? "nodes"
                                : !draft->has_arg_nodes ? "arg_nodes"
                                : !draft->has_heads     ? "heads"
                                                        : nullptr;
    if (missing != nullptr) {
      reader_._fail(kJsonMissingKey, draft->start, "the graph has no '%s'", missing);
    }
    const bool ordered = linkNodes(draft);
    checkVariables(*draft);
    draft->graph->outputs.resize(draft->heads.size());
    for (std::size_t pos = 0; pos < draft->heads.size(); ++pos) {
      const FlatEdge& head = draft->heads[pos];
      if (!inRange(*draft, head)) failEdge(*draft, head, printed("head %zu", pos), draft->start);
      draft->graph->outputs[pos] =
          NodeEntry(draft->graph->nodes[head.node], head.entry, head.version);
    }
    onGraph(*draft, ordered);
    if (ordered) return;
    try {
      const std::vector<Node*>& nodes = draft->graph->nodes;
      PlainList<Node*> order;
      orderNodes(nodes.data(), nodes.size(), NodeTable(nodes), &order);
    } catch (const GraphStructureError& error) {
      reader_._fail(kJsonCycle, draft->start, "%s", error.what());
    }
  }

  /// Sets the numbers of outputs, both sides of every edge, and the control dependencies. Returns
  /// whether every producer comes before its consumers. Then it takes one walk: in a large graph,
  /// walks wait for memory.
  bool linkNodes(GraphDraft* draft) {
    const std::size_t count = draft->graph->nodes.size();
    checkRows(draft);
    bool ordered = countUses(draft);
    if (ordered) {
      for (std::size_t pos = 0; pos < count; ++pos) {
        prefetchNode(draft->graph->nodes, pos, &Node::num_outputs);
        makeOutputs(draft, pos);
        linkInputs(draft, pos);
      }
    } else {
      for (std::size_t pos = 0; pos < count; ++pos) {
        prefetchNode(draft->graph->nodes, pos, &Node::num_outputs);
        makeOutputs(draft, pos);
      }
      for (std::size_t pos = 0; pos < count; ++pos) {
        prefetchNode(draft->graph->nodes, pos, &Node::outputs);
        linkInputs(draft, pos);
      }
    }
    for (const GraphDraft::Dependency& dep : draft->control_deps) {
      Node* node = draft->graph->nodes[dep.node];
      const FlatEdge edge = {dep.other, 0, 0};
      if (!inRange(*draft, edge)) {
        failEdge(*draft, edge, printed("a control dependency of node '%s'", node->name.c_str()),
                 draft->offsets[dep.node]);
      }
      append(&node->control_deps) = draft->graph->nodes[dep.other];
      ordered = ordered && dep.other < dep.node;
    }
    return ordered;
  }

  void checkRows(GraphDraft* draft) const {
    const std::vector<Node*>& nodes = draft->graph->nodes;
    const PlainList<uint32_t>& ptr = draft->row_ptr;
    // MXNet's lib_api writes 0..n-1: one number too few, and one output per node.
    draft->outputs_stated = draft->has_row_ptr && ptr.size() != nodes.size();
    if (!draft->outputs_stated) return;
    if (ptr.size() != nodes.size() + 1 || ptr[0] != 0) {
      reader_._fail(kJsonRange, draft->start,
                    "node_row_ptr must begin with 0 and have one number more than there are nodes");
    }
    for (std::size_t pos = 0; pos < nodes.size(); ++pos) {
      if (ptr[pos + 1] >= ptr[pos]) continue;
      reader_._fail(kJsonRange, draft->start, "node_row_ptr decreases at node '%s'",
                    nodes[pos]->name.c_str());
    }
  }

  /// Counts the consumers of every node. Returns whether each input comes from a node before.
  static bool countUses(GraphDraft* draft) {
    const std::size_t count = draft->graph->nodes.size();
    bool ordered = true;
    std::size_t next = 0;
    draft->uses.addZeros(count);
    for (std::size_t pos = 0; pos < count; ++pos) {
      for (; next < draft->edge_end[pos]; ++next) {
        const uint32_t producer = draft->edges[next].node;
        if (producer < count) ++draft->uses[producer];
        ordered = ordered && producer < pos;
      }
    }
    return ordered;
  }

  /// Sets the number of outputs of a node, and makes room for its consumers.
  void makeOutputs(GraphDraft* draft, std::size_t pos) {
    Node* const node = draft->graph->nodes[pos];
    const PlainList<uint32_t>& ptr = draft->row_ptr;
    if (draft->outputs_stated) node->_declareOutputs(static_cast<int>(ptr[pos + 1] - ptr[pos]));
    node->outputs.resize(draft->uses[pos]);
    draft->uses[pos] = 0;
    onNode(*node);
  }

  /// Sets both sides of the edges to a node, whose producers have room.
  void linkInputs(GraphDraft* draft, std::size_t pos) const {
    Node* const* const nodes = draft->graph->nodes.data();
    Node* const node = nodes[pos];
    const std::size_t first = pos == 0 ? 0 : draft->edge_end[pos - 1];
    NodeEntry* const inputs = node->inputs.data();
    for (std::size_t next = first; next < draft->edge_end[pos]; ++next) {
      const FlatEdge& edge = draft->edges[next];
      const std::size_t slot = next - first;
      if (!inRange(*draft, edge)) {
        failEdge(*draft, edge, printed("input %zu of node '%s'", slot, node->name.c_str()),
                 draft->offsets[pos]);
      }
      Node* const producer = nodes[edge.node];
      inputs[slot] = NodeEntry(producer, edge.entry, edge.version);
      producer->outputs[draft->uses[edge.node]++] = NodeEntry(node, static_cast<int>(slot));
    }
  }

  [[noreturn]] void failEdge(const GraphDraft& draft, const FlatEdge& edge, const std::string& what,
                             std::size_t place) const {
    const std::vector<Node*>& nodes = draft.graph->nodes;
    if (edge.node >= nodes.size()) {
      reader_._fail(kJsonRange, place, "%s refers to node %u, but there are %zu nodes",
                    what.c_str(), static_cast<unsigned>(edge.node), nodes.size());
    }
    const Node* node = nodes[edge.node];
    reader_._fail(kJsonRange, place, "%s refers to output %d of node '%s', which has %d",
                  what.c_str(), edge.entry, node->name.c_str(), node->num_outputs);
  }

  static bool inRange(const GraphDraft& draft, const FlatEdge& edge) {
    if (edge.node >= draft.graph->nodes.size()) return false;
    const int outputs = draft.graph->nodes[edge.node]->num_outputs;
    return outputs <= 0 || edge.entry < outputs;
  }

  void checkVariables(const GraphDraft& draft) const {
    const Graph* graph = draft.graph;
    const std::size_t repeated = draft.names.repeated(graph->inputs);
    if (repeated < graph->inputs.size()) {
      const Node* node = graph->inputs[repeated];
      std::size_t place = 0;
      while (graph->nodes[place] != node) ++place;
      reader_._fail(kJsonDuplicateName, draft.offsets[place], "two variables are named '%s'",
                    node->name.c_str());
    }
    for (std::size_t pos = 0; pos < draft.arg_nodes.size(); ++pos) {
      const uint32_t number = draft.arg_nodes[pos];
      if (pos < draft.variables.size() && draft.variables[pos] == number) continue;
      const FlatEdge edge = {number, 0, 0};
      if (!inRange(draft, edge)) failEdge(draft, edge, "arg_nodes", draft.start);
      const Node* node = graph->nodes[number];
      if (node->op == "null") continue;
      reader_._fail(kJsonType, draft.start,
                    "arg_nodes lists node '%s', which is not a variable but '%s'",
                    node->name.c_str(), node->op.c_str());
    }
  }

  KnownTexts known_texts_;
  // What stood between two items of a list.
  JsonReader::Slice between_numbers_{"", 0};
  JsonReader::Slice between_entries_{"", 0};
  KnownAttributes known_attributes_;
  Frame* frame_ = nullptr;  // of the innermost graph
};

typedef GraphReader TextReader;

#else

/// Reads NNVM's JSON into a Graph, in as little code as can be: libraries read it from MXNet, and
/// all compile this. It takes and refuses the same texts as the reader of hosts, with the same
/// errors. Edges are kept, and linked, as those of the flat form.
class TextReader : private ReaderParts {
 public:
  TextReader(const char* text, std::size_t size, const JsonOptions& options)
      : ReaderParts(text, size, options), frame_(nullptr) {}
  TextReader(const TextReader&) = delete;
  TextReader& operator=(const TextReader&) = delete;
  ~TextReader() {
    while (frame_ != nullptr) pop();
  }

  void read(Graph* graph) {
    push(graph);
    while (frame_ != nullptr) step(frame_);
    reader_.finish();
  }

 private:
  /// What comes next of a graph: a member, a node, a member of a node, or a subgraph of it.
  enum Part { kMember, kNode, kField, kSubgraph };
  /// The places where a node is named by its number.
  enum Use { kInput, kDependency, kArgument, kHead };
  struct Frame {
    explicit Frame(Graph* target) : graph(target) {}
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;
    ~Frame() {
      for (Graph* each : nested) delete each;
    }
    Graph* graph;
    Frame* outer = nullptr;
    std::size_t start = 0;  // offset of the graph in the text
    Part part = kMember;
    bool first[4] = {true, true, true, true};  // of each part
    unsigned members = 0;                      // a bit for each that was read
    unsigned fields = 0;
    Node* node = nullptr;
    PlainList<FlatNode> nodes;  // the numbers of their edges
    PlainList<std::size_t> offsets;
    PlainList<FlatEdge> edges;
    PlainList<uint32_t> control_deps;
    PlainList<FlatEdge> heads;
    PlainList<uint32_t> arg_nodes;
    PlainList<uint32_t> row_ptr;
    PlainList<Graph*> nested;  // in the node, which gets them when all are read
    JsonTree attrs{MAP};
    JsonTree extra{MAP};  // of the node
  };

  // The first three of each must be there.
  static const char* const* memberKeys() {
    static const char* const keys[] = {"nodes", "arg_nodes", "heads", "node_row_ptr", nullptr};
    return keys;
  }
  static const char* const* fieldKeys() {
    static const char* const keys[] = {"op",    "name",         "inputs",    "attrs", "attr",
                                       "param", "control_deps", "subgraphs", nullptr};
    return keys;
  }
  static const char* missing(const char* const* keys, unsigned seen) {
    for (int pos = 0; pos < 3; ++pos) {
      if ((seen >> pos & 1) == 0) return keys[pos];
    }
    return nullptr;
  }
  /// Returns the position of a key, which it notes, or that of the end.
  int find(const char* const* keys, const Slice& key, unsigned* seen) const {
    int pos = 0;
    while (keys[pos] != nullptr && !(key == keys[pos])) ++pos;
    if (keys[pos] == nullptr) return pos;
    if ((*seen >> pos & 1) != 0) failTwice(keys[pos]);
    *seen |= 1u << pos;
    return pos;
  }
  void push(Graph* graph) {
    reader_.peek();
    Frame* const frame = new Frame(graph);
    frame->start = reader_.offset();
    frame->outer = frame_;
    frame_ = frame;
    reader_.beginObject();
  }
  void pop() {
    Frame* const done = frame_;
    frame_ = done->outer;
    delete done;
  }
  static void enter(Frame* frame, Part part) {
    frame->part = part;
    frame->first[part] = true;
  }

  void step(Frame* frame) {
    Slice key;
    bool* const first = &frame->first[frame->part];
    const bool keyed = frame->part == kMember || frame->part == kField;
    const bool more = keyed ? reader_.nextKey(first, &key) : reader_.nextItem(first);
    switch (frame->part) {
      case kMember:
        if (more) return readMember(frame, key);
        finish(frame);
        return pop();
      case kNode:
        if (more) return beginNode(frame);
        frame->part = kMember;
        return;
      case kField:
        if (more) return readField(frame, key);
        return finishNode(frame);
      case kSubgraph:
        if (!more) return finishSubgraphs(frame);
        frame->nested.push(nullptr);
        push(frame->nested.back() = new Graph());
    }
  }

  void readMember(Frame* frame, const Slice& key) {
    switch (find(memberKeys(), key, &frame->members)) {
      case 0:
        reader_.beginList();
        return enter(frame, kNode);
      case 1:
        return readNumbers("node number", &frame->arg_nodes);
      case 2:
        return readEntries("head", &frame->heads);
      case 3:
        return readNumbers("row pointer", &frame->row_ptr);
      default:
        readOther(key, &frame->attrs);
    }
  }

  void beginNode(Frame* frame) {
    reader_.peek();
    frame->offsets.push(reader_.offset());
    reader_.beginObject();
    frame->nodes.push(FlatNode());
    Node*& node = append(&frame->graph->nodes);
    node = frame->node = new Node();
    frame->fields = 0;
    enter(frame, kField);
  }

  void readField(Frame* frame, const Slice& key) {
    const unsigned attributes = 7u << 3;  // the three spellings
    const bool only_one = (frame->fields & attributes) == 0;
    FlatNode* const node = &frame->nodes.back();
    const int field = find(fieldKeys(), key, &frame->fields);
    switch (field) {
      case 0:
        return readText(&frame->node->op);
      case 1:
        return readText(&frame->node->name);
      case 2: {
        const std::size_t before = frame->edges.size();
        readEntries("input", &frame->edges);
        node->num_inputs = static_cast<uint32_t>(frame->edges.size() - before);
        return;
      }
      case 6: {
        const std::size_t before = frame->control_deps.size();
        readNumbers("node number", &frame->control_deps);
        node->num_control_deps = static_cast<uint32_t>(frame->control_deps.size() - before);
        return;
      }
      case 7:
        reader_.beginList();
        return enter(frame, kSubgraph);
      case 8:
        if (!(key == "backward_source_id")) return readOther(key, &frame->extra);
        reader_.readInteger("backward_source_id", -1, kIntMax);  // of MXNet 0.8; unused since
        return;
      default:
        // Three spellings from three generations of files. MXNet 0.8 writes both "param" and
        // "attr"; "attr" takes precedence.
        parseAttributes(frame->node, only_one, field == 5);
    }
  }

  void readNumbers(const char* what, PlainList<uint32_t>* numbers) {
    bool first = true;
    reader_.beginList();
    while (reader_.nextItem(&first)) {
      numbers->push(static_cast<uint32_t>(reader_.readInteger(what, 0, kIntMax)));
    }
  }

  void readEntries(const char* what, PlainList<FlatEdge>* edges) {
    bool first = true;
    reader_.beginList();
    while (reader_.nextItem(&first)) edges->push(readEntry(what));
  }

  static void finishSubgraphs(Frame* frame) {
    makeItems(&frame->node->subgraphs, frame->nested.size());
    std::size_t pos = 0;
    for (Graph*& each : span(frame->node->subgraphs)) each = frame->nested[pos++];
    frame->nested.clear();
    frame->part = kField;
  }

  void finishNode(Frame* frame) const {
    if (frame->extra.size() > 1) keepOthers(&frame->extra, frame->node);
    const char* const lacks = missing(fieldKeys(), frame->fields);
    if (lacks != nullptr && (frame->fields >> 1 & 1) != 0) {
      reader_._fail(kJsonMissingKey, frame->offsets.back(), "node '%s' has no '%s'",
                    frame->node->name.c_str(), lacks);
    }
    if (lacks != nullptr) {
      reader_._fail(kJsonMissingKey, frame->offsets.back(), "node number %zu has no '%s'",
                    frame->offsets.size() - 1, lacks);
    }
    frame->part = kNode;
  }

  void finish(Frame* frame) {
    keepOthers(&frame->attrs, frame->graph);
    const char* const lacks = missing(memberKeys(), frame->members);
    if (lacks != nullptr) {
      reader_._fail(kJsonMissingKey, frame->start, "the graph has no '%s'", lacks);
    }
    Graph* const graph = frame->graph;
    PlainList<uint32_t> known;  // per node: the consumers that it knows of
    known.addZeros(graph->nodes.size());
    makeRoom(frame);
    const bool ordered = checkEdges(*frame);
    checkVariables(*frame);
    for (std::size_t pos = 0; pos < frame->heads.size(); ++pos) {
      require(*frame, frame->heads[pos], kHead, 0, pos);
      frame->edges.push(frame->heads[pos]);
    }
    makeItems(&graph->outputs, frame->heads.size());
    const FlatEdge* edge = frame->edges.begin();
    const uint32_t* dep = frame->control_deps.begin();
    linkNodes(frame->nodes.begin(), known.begin(), &edge, &dep, graph);
    if (ordered) return;
    try {
      PlainList<Node*> order;
      Node* const* const nodes = graph->nodes.data();
      orderNodes(nodes, graph->nodes.size(), NodeTable(nodes, graph->nodes.size()), &order);
    } catch (const GraphStructureError& error) {
      reader_._fail(kJsonCycle, frame->start, "%s", error.what());
    }
  }

  /// Sets the numbers of outputs, makes room for edges, and lists the variables.
  void makeRoom(Frame* frame) const {
    const std::vector<Node*>& nodes = frame->graph->nodes;
    const PlainList<uint32_t>& ptr = frame->row_ptr;
    // MXNet's lib_api writes 0..n-1: one number too few, and one output per node.
    const bool stated = (frame->members >> 3 & 1) != 0 && ptr.size() != nodes.size();
    if (stated && (ptr.size() != nodes.size() + 1 || ptr[0] != 0)) {
      reader_._fail(kJsonRange, frame->start,
                    "node_row_ptr must begin with 0 and have one number more than there are nodes");
    }
    PlainList<uint32_t> uses;
    uses.addZeros(nodes.size());
    for (const FlatEdge& edge : frame->edges) {
      if (edge.node < nodes.size()) ++uses[edge.node];
    }
    for (std::size_t pos = 0; pos < nodes.size(); ++pos) {
      Node* node = nodes[pos];
      if (stated && ptr[pos + 1] < ptr[pos]) {
        reader_._fail(kJsonRange, frame->start, "node_row_ptr decreases at node '%s'",
                      node->name.c_str());
      }
      if (stated) node->_declareOutputs(static_cast<int>(ptr[pos + 1] - ptr[pos]));
      makeItems(&node->inputs, frame->nodes[pos].num_inputs);
      makeItems(&node->outputs, uses[pos]);
      if (node->op == "null") append(&frame->graph->inputs) = node;
    }
  }

  /// Returns whether every producer comes before its consumers.
  bool checkEdges(const Frame& frame) const {
    bool ordered = true;
    const FlatEdge* edge = frame.edges.begin();
    for (std::size_t pos = 0; pos < frame.nodes.size(); ++pos) {
      for (uint32_t nth = 0; nth < frame.nodes[pos].num_inputs; ++nth, ++edge) {
        require(frame, *edge, kInput, pos, nth);
        ordered = ordered && edge->node < pos;
      }
    }
    const uint32_t* dep = frame.control_deps.begin();
    for (std::size_t pos = 0; pos < frame.nodes.size(); ++pos) {
      for (uint32_t nth = 0; nth < frame.nodes[pos].num_control_deps; ++nth, ++dep) {
        require(frame, FlatEdge{*dep, 0, 0}, kDependency, pos, nth);
        ordered = ordered && *dep < pos;
      }
    }
    return ordered;
  }

  /// `node`: the position of the consumer, if it is a node; `number`: that of its edge.
  void require(const Frame& frame, const FlatEdge& edge, Use use, std::size_t node,
               std::size_t number) const {
    const std::vector<Node*>& nodes = frame.graph->nodes;
    const Node* const other = edge.node < nodes.size() ? nodes[edge.node] : nullptr;
    if (other != nullptr && (other->num_outputs <= 0 || edge.entry < other->num_outputs)) return;
    const bool of_node = use == kInput || use == kDependency;
    const char* const name = of_node ? nodes[node]->name.c_str() : "";
    const std::size_t place = of_node ? frame.offsets[node] : frame.start;
    const std::string what = use == kInput  ? printed("input %zu of node '%s'", number, name)
                             : use == kHead ? printed("head %zu", number)
                             : of_node      ? printed("a control dependency of node '%s'", name)
                                            : std::string("arg_nodes");
    if (other == nullptr) {
      reader_._fail(kJsonRange, place, "%s refers to node %u, but there are %zu nodes",
                    what.c_str(), static_cast<unsigned>(edge.node), nodes.size());
    }
    reader_._fail(kJsonRange, place, "%s refers to output %d of node '%s', which has %d",
                  what.c_str(), static_cast<int>(edge.entry), other->name.c_str(),
                  other->num_outputs);
  }

  struct Variable {
    const Node* node;
    std::size_t position;
  };
  static int compare(const void* left, const void* right) {
    const Variable& first = *static_cast<const Variable*>(left);
    const Variable& second = *static_cast<const Variable*>(right);
    const int order = first.node->name.compare(second.node->name);
    return order != 0 ? order : first.position < second.position ? -1 : 1;
  }

  void checkVariables(const Frame& frame) const {
    const std::vector<Node*>& nodes = frame.graph->nodes;
    PlainList<Variable> variables;
    for (std::size_t pos = 0; pos < nodes.size(); ++pos) {
      if (nodes[pos]->op == "null") variables.push(Variable{nodes[pos], pos});
    }
    const std::size_t count = variables.size();
    if (count > 1) qsort(variables.begin(), count, sizeof(Variable), &compare);
    std::size_t twice = nodes.size();  // the first that has the name of another before it
    for (std::size_t pos = 1; pos < count; ++pos) {
      const Variable& variable = variables[pos];
      if (variable.position > twice || variables[pos - 1].node->name != variable.node->name) {
        continue;
      }
      twice = variable.position;
    }
    if (twice < nodes.size()) {
      reader_._fail(kJsonDuplicateName, frame.offsets[twice], "two variables are named '%s'",
                    nodes[twice]->name.c_str());
    }
    for (const uint32_t number : frame.arg_nodes) {
      require(frame, FlatEdge{number, 0, 0}, kArgument, 0, 0);
      const Node* const node = nodes[number];
      if (node->op == "null") continue;
      reader_._fail(kJsonType, frame.start,
                    "arg_nodes lists node '%s', which is not a variable but '%s'",
                    node->name.c_str(), node->op.c_str());
    }
  }

  Frame* frame_;  // of the innermost graph
};

#endif  // PASSLIB_HOST
