// ================================================================================================
// The graph
// ================================================================================================

class PassResource;
struct FlatModel;

/// A text, not terminated. `data` may be null if `size` is 0.
struct FlatText {
  const char* data;
  uint64_t size;
};

namespace detail {

/// The types of a call are those of a node only as long as the call runs.
struct TypesPlace {
  uint32_t node = 0;  // its position as the host showed it, from 1; 0 for a node without
  uint16_t call = 0;
};

/// Returns __ext_shape__ and __ext_dtype__ of a node of the running call, which the host infers now
/// unless it did before; null if it cannot, and after the call.
const FlatText* readTypes(const TypesPlace& place);
/// Whether a key is one of these two.
bool isOfTypes(const char* key, std::size_t size);

/// Lends a resource to the pass that runs in this thread. Nodes ask for it here, so that none has
/// to be told: in a large graph, each walk over the nodes costs. Threads that a pass starts get
/// that of the pass that began last.
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
    last().replace(resource_, outer_);
  }
  /// Returns null while no pass runs.
  static PassResource* resource() { return mine() != nullptr ? mine() : last().load(); }

 private:
  static PassResource*& mine() {
    static thread_local PassResource* resource = nullptr;
    return resource;
  }
  static AtomicPointer<PassResource>& last() {
    static AtomicPointer<PassResource> resource(nullptr);
    return resource;
  }

  PassResource* resource_;
  PassResource* outer_;
};

}  // namespace detail

/// One end of an edge. In Node::inputs and Graph::outputs: the producer and the number of its
/// output. In Node::outputs: the consumer and the number of its input.
struct NodeEntry {
  NodeEntry() : node(nullptr), entry(0), version(0) {}
  NodeEntry(Node* other, int index, int mutations = 0)
      : node(other), entry(index), version(mutations) {}
  bool operator==(const NodeEntry& other) const {
    return node == other.node && entry == other.entry && version == other.version;
  }

  Node* node;
  int entry;
  /// The number of in-place writes to the value before this use: usually 0, 1 for the running mean
  /// of a BatchNorm. In Node::outputs always 0.
  int version;
};

/// The text of an attribute, as operator[] and at() of NodeAttributes return it: a std::string to
/// which no number can be assigned, since a std::string would take it for a character.
class AttributeText : public std::string {
  template <typename Value>
  struct IsNumber {
    typedef typename std::decay<Value>::type Plain;
    static constexpr bool value =
        (std::is_arithmetic<Plain>::value || std::is_enum<Plain>::value) &&
        !std::is_same<Plain, char>::value;
  };

 public:
  AttributeText() = default;
  AttributeText(const AttributeText&) = default;
  AttributeText(AttributeText&&) = default;
  AttributeText(const char* text) : std::string(text) {}             // NOLINT: implicit
  AttributeText(std::string text) : std::string(std::move(text)) {}  // NOLINT: implicit
  AttributeText& operator=(const AttributeText&) = default;
  AttributeText& operator=(AttributeText&&) = default;
  template <typename Value, typename = typename std::enable_if<!IsNumber<Value>::value>::type>
  AttributeText& operator=(Value&& value) {
    std::string::operator=(std::forward<Value>(value));
    return *this;
  }
  /// Write std::to_string(value).
  template <typename Value, typename std::enable_if<IsNumber<Value>::value, int>::type = 0>
  AttributeText& operator=(Value value) = delete;
  template <typename Value, typename = typename std::enable_if<!IsNumber<Value>::value>::type>
  AttributeText& operator+=(Value&& value) {
    std::string::operator+=(std::forward<Value>(value));
    return *this;
  }
  template <typename Value, typename std::enable_if<IsNumber<Value>::value, int>::type = 0>
  AttributeText& operator+=(Value value) = delete;
};

/// The attributes of a node: a std::unordered_map that is made when somebody first uses it as one.
/// Until then the texts lie in one block of memory, sorted by key, which is read, copied, compared
/// and written as a whole.
///
/// Converts to and from such a map. What is not declared here is called on the map:
/// `std::unordered_map<std::string, std::string>& map = node->attrs`. As with a map, several
/// threads may read at the same time.
///
/// __ext_shape__ and __ext_dtype__, the types of a node's outputs, may be inferred when somebody
/// first reads them: the map then has both keys, with texts from the moment when one is asked for,
/// or the attributes are gone over.
class NodeAttributes {
 public:
  typedef std::unordered_map<std::string, std::string> Map;
  typedef Map::key_type key_type;
  typedef Map::mapped_type mapped_type;
  typedef Map::value_type value_type;
  typedef Map::size_type size_type;
  typedef Map::difference_type difference_type;
  typedef Map::reference reference;
  typedef Map::const_reference const_reference;
  typedef Map::iterator iterator;
  typedef Map::const_iterator const_iterator;

  NodeAttributes() noexcept : map_(nullptr) {}
  PASSLIB_ON_DEMAND NodeAttributes(const Map& map) : map_(new Map(map)) {}
  PASSLIB_ON_DEMAND NodeAttributes(Map&& map) : map_(new Map(std::move(map))) {}
  PASSLIB_ON_DEMAND NodeAttributes(std::initializer_list<value_type> items)
      : map_(new Map(items)) {}
  NodeAttributes(const NodeAttributes& other) : map_(nullptr) { copy(other); }
  NodeAttributes(NodeAttributes&& other) noexcept : map_(nullptr) { swap(other); }
  ~NodeAttributes() {
    delete known();
    dropBlock();
  }

  NodeAttributes& operator=(const NodeAttributes& other) {
    if (this != &other) NodeAttributes(other).swap(*this);
    return *this;
  }
  NodeAttributes& operator=(NodeAttributes&& other) noexcept {
    NodeAttributes(std::move(other)).swap(*this);
    return *this;
  }
  PASSLIB_ON_DEMAND NodeAttributes& operator=(const Map& map) {
    return *this = NodeAttributes(map);
  }
  PASSLIB_ON_DEMAND NodeAttributes& operator=(Map&& map) {
    return *this = NodeAttributes(std::move(map));
  }
  PASSLIB_ON_DEMAND NodeAttributes& operator=(std::initializer_list<value_type> items) {
    return *this = NodeAttributes(items);
  }
  operator Map&() { return whole(); }
  operator const Map&() const { return whole(); }

  bool empty() const { return size() == 0; }
  size_type size() const {
    if (known() != nullptr) return known()->size();
    return (shared_ == nullptr ? 0 : shared_[0]) + (types_.node == 0 ? 0 : 2);
  }
  PASSLIB_ON_DEMAND size_type max_size() const { return read().max_size(); }
  PASSLIB_ON_DEMAND iterator begin() { return whole().begin(); }
  PASSLIB_ON_DEMAND const_iterator begin() const { return cbegin(); }
  PASSLIB_ON_DEMAND const_iterator cbegin() const { return whole().cbegin(); }
  PASSLIB_ON_DEMAND iterator end() { return read().end(); }
  PASSLIB_ON_DEMAND const_iterator end() const { return cend(); }
  PASSLIB_ON_DEMAND const_iterator cend() const { return read().cend(); }

  PASSLIB_ON_DEMAND AttributeText& operator[](const std::string& key) {
    return static_cast<AttributeText&>(write(key)[key]);
  }
  PASSLIB_ON_DEMAND AttributeText& operator[](std::string&& key) {
    return static_cast<AttributeText&>(write(key)[std::move(key)]);
  }
  PASSLIB_ON_DEMAND AttributeText& at(const std::string& key) {
    return static_cast<AttributeText&>(read(key).at(key));
  }
  PASSLIB_ON_DEMAND const std::string& at(const std::string& key) const {
    return read(key).at(key);
  }
  PASSLIB_ON_DEMAND iterator find(const std::string& key) { return read(key).find(key); }
  PASSLIB_ON_DEMAND const_iterator find(const std::string& key) const {
    return static_cast<const Map&>(read(key)).find(key);
  }
  size_type count(const std::string& key) const {
    JsonReader::Slice text;
    return _find(key.c_str(), key.size(), &text) ? 1 : 0;
  }
  PASSLIB_ON_DEMAND std::pair<iterator, iterator> equal_range(const std::string& key) {
    return read(key).equal_range(key);
  }
  PASSLIB_ON_DEMAND std::pair<const_iterator, const_iterator> equal_range(
      const std::string& key) const {
    return static_cast<const Map&>(read(key)).equal_range(key);
  }

  void clear() noexcept {
    delete known();
    map_.storeAlone(nullptr);
    dropBlock();
    types_ = detail::TypesPlace();
  }
  void swap(NodeAttributes& other) noexcept;
  PASSLIB_ON_DEMAND void swap(Map& other) {
    whole();
    write().swap(other);
    types_ = detail::TypesPlace();
  }
  PASSLIB_ON_DEMAND void reserve(size_type count) { write().reserve(count); }
  PASSLIB_ON_DEMAND size_type erase(const std::string& key) { return write(key).erase(key); }
  PASSLIB_ON_DEMAND iterator erase(const_iterator place) { return write().erase(place); }
  PASSLIB_ON_DEMAND iterator erase(iterator place) { return write().erase(place); }
  PASSLIB_ON_DEMAND iterator erase(const_iterator first, const_iterator last) {
    return write().erase(first, last);
  }
  PASSLIB_ON_DEMAND std::pair<iterator, bool> insert(const value_type& item) {
    return write().insert(item);
  }
  template <typename Pair, typename = typename std::enable_if<
                               std::is_constructible<value_type, Pair&&>::value>::type>
  std::pair<iterator, bool> insert(Pair&& item) {
    return write().emplace(std::forward<Pair>(item));
  }
  PASSLIB_ON_DEMAND iterator insert(const_iterator hint, const value_type& item) {
    return write().insert(hint, item);
  }
  template <typename Iterator>
  void insert(Iterator first, Iterator last) {
    write().insert(first, last);
  }
  PASSLIB_ON_DEMAND void insert(std::initializer_list<value_type> items) { write().insert(items); }
  template <typename... Arguments>
  std::pair<iterator, bool> emplace(Arguments&&... arguments) {
    return write().emplace(std::forward<Arguments>(arguments)...);
  }
  template <typename... Arguments>
  iterator emplace_hint(const_iterator hint, Arguments&&... arguments) {
    return write().emplace_hint(hint, std::forward<Arguments>(arguments)...);
  }

  friend bool operator==(const NodeAttributes& left, const NodeAttributes& right) {
    return left.equals(right);
  }
  friend bool operator!=(const NodeAttributes& left, const NodeAttributes& right) {
    return !left.equals(right);
  }
  PASSLIB_ON_DEMAND friend bool operator==(const NodeAttributes& left, const Map& right) {
    return left.whole() == right;
  }
  PASSLIB_ON_DEMAND friend bool operator!=(const NodeAttributes& left, const Map& right) {
    return left.whole() != right;
  }
  PASSLIB_ON_DEMAND friend bool operator==(const Map& left, const NodeAttributes& right) {
    return right == left;
  }
  PASSLIB_ON_DEMAND friend bool operator!=(const Map& left, const NodeAttributes& right) {
    return right != left;
  }
  friend void swap(NodeAttributes& left, NodeAttributes& right) noexcept { left.swap(right); }

  /// Gets the text of an attribute without making the map. Returns false if there is none.
  bool _find(const char* key, std::size_t size, JsonReader::Slice* text) const;
  bool _has(const char* key) const {
    JsonReader::Slice text;
    return _find(key, strlen(key), &text);
  }
  /// Copies the text of an attribute.
  bool _get(const char* key, std::string* copy) const {
    JsonReader::Slice text;
    if (!_find(key, strlen(key), &text)) return false;
    copy->assign(text.data, text.size);
    return true;
  }
  /// Goes over the attributes, sorted by key unless the map has been made. After _readTypes().
  class Walk {
   public:
    explicit Walk(const NodeAttributes& attributes)
        : map_(attributes.known()), block_(attributes.shared_), cursor_(nullptr), pos_(0) {
      if (map_ != nullptr) place_ = map_->begin();
      if (map_ == nullptr && block_ != nullptr) cursor_ = attributes.texts();
    }
    bool next(JsonReader::Slice* key, JsonReader::Slice* text);

   private:
    const Map* map_;
    Map::const_iterator place_;
    const uint32_t* block_;
    const char* cursor_;
    std::size_t pos_;
  };
  /// Calls visit(key, text) with a slice each, in that order.
  template <typename Visit>
  void _visit(Visit visit) const {
    _readTypes();
    JsonReader::Slice key;
    JsonReader::Slice text;
    for (Walk walk(*this); walk.next(&key, &text);) visit(key, text);
  }
  /// Replaces all attributes by these, which it sorts if they are few. Returns null, or a key that
  /// occurs twice; some of the attributes are missing then.
  template <typename Text>  // std::string or JsonReader::Slice
  const Text* _pack(std::pair<Text, Text>* items, std::size_t count);
  /// Returns the attributes as they lie in memory, see shared_, and the number of words; null if
  /// there are none, or if a map has been made, which has what counts.
  const uint32_t* _packed(std::size_t* count) const {
    const bool packed = known() == nullptr && shared_ != nullptr;
    *count = packed ? words() : 0;
    return packed ? shared_ : nullptr;
  }
  /// Replaces all attributes by a copy of such words, which are well-formed.
  void _setPacked(const uint32_t* packed, std::size_t count) {
    clear();
    shared_ = newBlock(count);
    memcpy(shared_, packed, count * sizeof(uint32_t));
  }
  /// Whether these are still the words that were lent, or a map has just what they have: most
  /// passes make one and only read it.
  bool _isStill(const uint32_t* packed) const;
  /// A hint to the processor: _packed will be called.
  void _prefetch() const { __builtin_prefetch(shared_); }
  /// Replaces all attributes by such words of the host, which outlive this object.
  void _lendPacked(const uint32_t* packed) {
    clear();
    shared_ = const_cast<uint32_t*>(packed);  // nobody writes to a block
    lent_ = true;
  }
  /// Whether the words that _packed returns are the host's.
  bool _isLent() const { return lent_; }
  /// Adds the types, which are inferred when somebody reads them and leave with the call.
  void _offerTypes(uint32_t node, uint16_t call) {
    types_.node = node;
    types_.call = call;
  }
  bool _hasTypes() const { return types_.node != 0; }
  /// Before all attributes are read.
  void _readTypes() const {
    if (types_.node != 0) whole();
  }

 private:
  Map* known() const { return map_.load(); }
  const char* texts() const { return reinterpret_cast<const char*>(&shared_[2 + 2 * shared_[0]]); }
  std::size_t words() const {
    return 2 + 2 * static_cast<std::size_t>(shared_[0]) +
           (static_cast<std::size_t>(shared_[1]) + 3) / 4;
  }
  bool equals(const NodeAttributes& other) const;
  void copy(const NodeAttributes& other);
  Map& read() const;
  /// The map with all texts.
  Map& whole() const;
  /// The map for a use of one attribute.
  Map& read(const std::string& key) const {
    return types_.node != 0 && detail::isOfTypes(key.data(), key.size()) ? whole() : read();
  }
  Map& write() {
    Map& map = read();
    dropBlock();
    return map;
  }
  Map& write(const std::string& key) {
    read(key);
    return write();
  }
  void dropBlock() noexcept {
    uint32_t* const words = shared_;
    const bool lent = lent_;
    shared_ = nullptr;
    lent_ = false;
    if (words == nullptr || lent) return;
    if (__atomic_sub_fetch(words - 1, 1, __ATOMIC_ACQ_REL) == 0) delete[] (words - 1);
  }
  /// Returns memory for a block of one owner.
  static uint32_t* newBlock(std::size_t words) {
    uint32_t* const owners = new uint32_t[words + 1];
    *owners = 1;
    return owners + 1;
  }

  // The map, once there is one, has what counts: it may have been changed through an iterator. The
  // block goes with the first call that cannot be a concurrent reader's.
  mutable detail::AtomicPointer<Map> map_;
  // Of n attributes, at most 64 and sorted by key: n, the size of all texts, n sizes of key and
  // value, and the texts in turn; zeros fill the last word. It never changes. Nodes share it, the
  // number of them stands before it, unless it is lent.
  uint32_t* shared_ = nullptr;
  detail::TypesPlace types_;
  mutable bool has_types_ = false;  // whether the map has their texts
  bool lent_ = false;
};

/// Members of a JSON object as text, in the order in which they were added: keys, and values as
/// JSON on one line, with ", " and ": " as separators. They lie in one piece of memory, which is
/// copied and compared as a whole.
class JsonMembers {
 public:
  typedef JsonReader::Slice Slice;

  PASSLIB_INLINE JsonMembers() noexcept : texts_(nullptr) {}
  JsonMembers(const JsonMembers& other);
  JsonMembers(JsonMembers&& other) noexcept : texts_(nullptr) { swap(other); }
  PASSLIB_INLINE ~JsonMembers() {
    if (texts_ != nullptr) clear();
  }
  JsonMembers& operator=(JsonMembers other) noexcept {
    swap(other);
    return *this;
  }

  PASSLIB_INLINE bool empty() const { return texts_ == nullptr; }
  /// Linear in their number.
  std::size_t size() const;
  void clear() noexcept;
  PASSLIB_INLINE void swap(JsonMembers& other) noexcept {
    Texts* const texts = texts_;
    texts_ = other.texts_;
    other.texts_ = texts;
  }
  friend bool operator==(const JsonMembers& left, const JsonMembers& right) {
    return left.equals(right);
  }
  friend bool operator!=(const JsonMembers& left, const JsonMembers& right) {
    return !left.equals(right);
  }

  /// Adds a member. Its key must be new, its value be JSON as above.
  void add(const Slice& key, const Slice& text) {
    memcpy(add(key, text.size), text.data, text.size);
  }
  /// The same. Returns the place for the value, which the caller sets.
  char* add(const Slice& key, std::size_t size);
  /// Gets the value of a key. Returns false if there is none. Linear in the number of members.
  bool find(const Slice& key, Slice* text) const;
  /// Goes over the members.
  class Walk {
   public:
    PASSLIB_INLINE explicit Walk(const JsonMembers& members)
        : cursor_(members.empty() ? nullptr : members.texts_->begin()),
          end_(members.empty() ? nullptr : members.texts_->end()) {}
    bool next(Slice* key, Slice* text);

   private:
    const char* cursor_;
    const char* end_;
  };

 private:
  typedef detail::PlainList<char> Texts;

  bool equals(const JsonMembers& other) const;

  Texts* texts_;  // of each member in turn: the sizes of key and value, and both; null if none
};

namespace detail {

/// The attributes of a graph as a map, and what that needs: set where the map is made, so that
/// nothing else compiles any of it.
struct GraphValues {
  typedef GraphValues* (*Copy)(const GraphValues& values);
  /// Adds all attributes, sorted by key.
  typedef void (*Print)(const GraphValues& values, JsonMembers* members);
  /// See GraphAttributes::_getString.
  typedef bool (*GetString)(const GraphValues& values, const char* key, std::string* text);
  typedef void (*Destroy)(GraphValues* values);

  Copy copy;
  Print print;
  GetString get_string;
  Destroy destroy;
};

template <typename Unused>
struct GraphMap;

}  // namespace detail

/// The attributes of a graph: a std::map that is made when somebody first uses it as one. Until
/// then they are text.
///
/// Converts to and from such a map. What is not declared here is called on the map:
/// `std::map<std::string, JsonVal>& map = graph->attrs`. As with a map, several threads may read at
/// the same time.
class GraphAttributes {
 public:
  typedef std::map<std::string, JsonVal> Map;
  typedef Map::key_type key_type;
  typedef Map::mapped_type mapped_type;
  typedef Map::value_type value_type;
  typedef Map::size_type size_type;
  typedef Map::difference_type difference_type;
  typedef Map::reference reference;
  typedef Map::const_reference const_reference;
  typedef Map::iterator iterator;
  typedef Map::const_iterator const_iterator;

  PASSLIB_INLINE GraphAttributes() noexcept : values_(nullptr) {}
  PASSLIB_ON_DEMAND GraphAttributes(const Map& map) : values_(Made<Unused>::make(Map(map))) {}
  PASSLIB_ON_DEMAND GraphAttributes(Map&& map) : values_(Made<Unused>::make(std::move(map))) {}
  PASSLIB_ON_DEMAND GraphAttributes(std::initializer_list<value_type> items)
      : values_(Made<Unused>::make(Map(items))) {}
  GraphAttributes(const GraphAttributes& other);
  GraphAttributes(GraphAttributes&& other) noexcept : values_(nullptr) { swap(other); }
  PASSLIB_INLINE ~GraphAttributes() {
    if (values_.load() != nullptr) drop(values_.load());
  }

  GraphAttributes& operator=(const GraphAttributes& other) {
    if (this != &other) GraphAttributes(other).swap(*this);
    return *this;
  }
  GraphAttributes& operator=(GraphAttributes&& other) noexcept {
    GraphAttributes(std::move(other)).swap(*this);
    return *this;
  }
  PASSLIB_ON_DEMAND GraphAttributes& operator=(const Map& map) {
    return *this = GraphAttributes(map);
  }
  PASSLIB_ON_DEMAND GraphAttributes& operator=(Map&& map) {
    return *this = GraphAttributes(std::move(map));
  }
  PASSLIB_ON_DEMAND GraphAttributes& operator=(std::initializer_list<value_type> items) {
    return *this = GraphAttributes(items);
  }
  PASSLIB_ON_DEMAND operator Map&() { return read<Unused>(); }
  PASSLIB_ON_DEMAND operator const Map&() const { return read<Unused>(); }

  PASSLIB_ON_DEMAND bool empty() const { return size<Unused>() == 0; }
  PASSLIB_ON_DEMAND size_type size() const {
    return values_.load() == nullptr ? texts_.size() : read<Unused>().size();
  }
  PASSLIB_ON_DEMAND size_type max_size() const { return read<Unused>().max_size(); }
  PASSLIB_ON_DEMAND iterator begin() { return read<Unused>().begin(); }
  PASSLIB_ON_DEMAND const_iterator begin() const { return read<Unused>().cbegin(); }
  PASSLIB_ON_DEMAND const_iterator cbegin() const { return read<Unused>().cbegin(); }
  PASSLIB_ON_DEMAND iterator end() { return read<Unused>().end(); }
  PASSLIB_ON_DEMAND const_iterator end() const { return read<Unused>().cend(); }
  PASSLIB_ON_DEMAND const_iterator cend() const { return read<Unused>().cend(); }

  PASSLIB_ON_DEMAND JsonVal& operator[](const std::string& key) { return read<Unused>()[key]; }
  PASSLIB_ON_DEMAND JsonVal& operator[](std::string&& key) {
    return read<Unused>()[std::move(key)];
  }
  PASSLIB_ON_DEMAND JsonVal& at(const std::string& key) { return read<Unused>().at(key); }
  PASSLIB_ON_DEMAND const JsonVal& at(const std::string& key) const {
    return read<Unused>().at(key);
  }
  PASSLIB_ON_DEMAND iterator find(const std::string& key) { return read<Unused>().find(key); }
  PASSLIB_ON_DEMAND const_iterator find(const std::string& key) const {
    return constant<Unused>().find(key);
  }
  PASSLIB_ON_DEMAND size_type count(const std::string& key) const {
    JsonReader::Slice text;
    if (values_.load() != nullptr) return read<Unused>().count(key);
    return texts_.find(JsonReader::Slice{key.data(), key.size()}, &text) ? 1 : 0;
  }
  PASSLIB_ON_DEMAND iterator lower_bound(const std::string& key) {
    return read<Unused>().lower_bound(key);
  }
  PASSLIB_ON_DEMAND const_iterator lower_bound(const std::string& key) const {
    return constant<Unused>().lower_bound(key);
  }
  PASSLIB_ON_DEMAND iterator upper_bound(const std::string& key) {
    return read<Unused>().upper_bound(key);
  }
  PASSLIB_ON_DEMAND const_iterator upper_bound(const std::string& key) const {
    return constant<Unused>().upper_bound(key);
  }
  PASSLIB_ON_DEMAND std::pair<iterator, iterator> equal_range(const std::string& key) {
    return read<Unused>().equal_range(key);
  }
  PASSLIB_ON_DEMAND std::pair<const_iterator, const_iterator> equal_range(
      const std::string& key) const {
    return constant<Unused>().equal_range(key);
  }

  void clear() noexcept { GraphAttributes().swap(*this); }
  void swap(GraphAttributes& other) noexcept {
    texts_.swap(other.texts_);
    other.values_.store(values_.exchange(other.values_.load()));
  }
  PASSLIB_ON_DEMAND void swap(Map& other) { read<Unused>().swap(other); }
  PASSLIB_ON_DEMAND size_type erase(const std::string& key) { return read<Unused>().erase(key); }
  PASSLIB_ON_DEMAND iterator erase(const_iterator place) { return read<Unused>().erase(place); }
  PASSLIB_ON_DEMAND iterator erase(iterator place) { return read<Unused>().erase(place); }
  PASSLIB_ON_DEMAND iterator erase(const_iterator first, const_iterator last) {
    return read<Unused>().erase(first, last);
  }
  PASSLIB_ON_DEMAND std::pair<iterator, bool> insert(const value_type& item) {
    return read<Unused>().insert(item);
  }
  template <typename Pair, typename = typename std::enable_if<
                               std::is_constructible<value_type, Pair&&>::value>::type>
  std::pair<iterator, bool> insert(Pair&& item) {
    return read<void>().emplace(std::forward<Pair>(item));
  }
  PASSLIB_ON_DEMAND iterator insert(const_iterator hint, const value_type& item) {
    return read<Unused>().insert(hint, item);
  }
  template <typename Iterator>
  void insert(Iterator first, Iterator last) {
    read<void>().insert(first, last);
  }
  PASSLIB_ON_DEMAND void insert(std::initializer_list<value_type> items) {
    read<Unused>().insert(items);
  }
  template <typename... Arguments>
  std::pair<iterator, bool> emplace(Arguments&&... arguments) {
    return read<void>().emplace(std::forward<Arguments>(arguments)...);
  }
  template <typename... Arguments>
  iterator emplace_hint(const_iterator hint, Arguments&&... arguments) {
    return read<void>().emplace_hint(hint, std::forward<Arguments>(arguments)...);
  }

  PASSLIB_ON_DEMAND friend bool operator==(const GraphAttributes& left,
                                           const GraphAttributes& right) {
    const bool texts = left.values_.load() == nullptr && right.values_.load() == nullptr;
    return texts ? left.texts_ == right.texts_ : left.read<Unused>() == right.read<Unused>();
  }
  PASSLIB_ON_DEMAND friend bool operator!=(const GraphAttributes& left,
                                           const GraphAttributes& right) {
    return !(left == right);
  }
  PASSLIB_ON_DEMAND friend bool operator==(const GraphAttributes& left, const Map& right) {
    return left.read<Unused>() == right;
  }
  PASSLIB_ON_DEMAND friend bool operator!=(const GraphAttributes& left, const Map& right) {
    return !(left == right);
  }
  PASSLIB_ON_DEMAND friend bool operator==(const Map& left, const GraphAttributes& right) {
    return right == left;
  }
  PASSLIB_ON_DEMAND friend bool operator!=(const Map& left, const GraphAttributes& right) {
    return !(right == left);
  }
  friend void swap(GraphAttributes& left, GraphAttributes& right) noexcept { left.swap(right); }

  /// Returns the attributes as text, sorted by key; `room` has it if a map was made, which counts.
  const JsonMembers& _texts(JsonMembers* room) const;
  /// Replaces all attributes by these, which are sorted by key.
  void _setTexts(JsonMembers* members) noexcept {
    clear();
    texts_.swap(*members);
  }
  /// Copies the value of an attribute without making the map. Returns false if there is none, or
  /// one that is no string.
  bool _getString(const char* key, std::string* text) const;

 private:
  template <typename Unused>
  using Made = detail::GraphMap<Unused>;

  template <typename Unused>
  Map& read() const;
  template <typename Unused>
  const Map& constant() const {
    return read<Unused>();
  }
  static void drop(detail::GraphValues* values) noexcept;

  JsonMembers texts_;  // as they were read
  // The map, once there is one, has what counts.
  mutable detail::AtomicPointer<detail::GraphValues> values_;
};

/// An operator, or a variable ("null"): an input or a parameter of the model.
class Node {
 public:
  Node() : tensor(nullptr), num_outputs(0), declared_op_(0) {}
  /// Nodes that a host described lie in one piece of memory, which is released as a whole: a word
  /// before each node tells.
  static void* operator new(std::size_t size) { return mark(::operator new(size + kMark), false); }
  static void* operator new(std::size_t size, const std::nothrow_t& nothrow) noexcept {
    void* const memory = ::operator new(size + kMark, nothrow);
    return memory == nullptr ? nullptr : mark(memory, false);
  }
  static void* operator new(std::size_t, void* place) noexcept { return place; }
  static void operator delete(void* node) noexcept {
    if (node == nullptr) return;
    void* const memory = static_cast<char*>(node) - kMark;
    if (*static_cast<uint64_t*>(memory) == 0) ::operator delete(memory);
  }

  /// Allocates a tensor for this variable and makes it a parameter of the model: a weight
  /// (alloc_arg) or an auxiliary state (alloc_aux). After the pass the caller's args or aux have it
  /// under this node's name. The host owns the memory, which is zero in passlib and uninitialised
  /// in MXNet. Each call returns another MXTensor, which lives until the pass returns, so that a
  /// weight can be computed from the former one; the last of a name is the parameter. Its shape,
  /// dtype and data pointer, like those of all tensors that the host lends, must stay as they are:
  /// else the pass fails. Throws std::runtime_error if no pass is running, or if the caller gave no
  /// dictionary for new parameters.
  PASSLIB_ON_DEMAND MXTensor* alloc_arg(const std::vector<int64_t>& shape, const MXContext& ctx,
                                        MXDType dtype);
  PASSLIB_ON_DEMAND MXTensor* alloc_aux(const std::vector<int64_t>& shape, const MXContext& ctx,
                                        MXDType dtype);
  /// Returns `tensor` with its elements, which a pass that takes weights on demand asks for here
  /// and only reads; null if there is none. They stay valid until the pass returns, which fails in
  /// passlib if it wrote to them. Throws std::runtime_error if the host has no memory for them.
  PASSLIB_ON_DEMAND const MXTensor* readTensor();
  /// Makes this variable a weight whose elements are those of `source`, each of as many equal runs
  /// of them as there are factors multiplied by one, in double precision. The host may compute
  /// them when somebody needs them, so that weights need not fit in memory; the tensor here has no
  /// elements. Returns false, and changes nothing, where the host cannot do that: `source` is not
  /// on demand, or not of float32 or float64. Then alloc_arg is the way.
  PASSLIB_ON_DEMAND bool _scaleArg(const MXTensor& source, const std::vector<double>& factors);

  std::string op;
  std::string name;
  MXTensor* tensor;  ///< data of a parameter while a pass runs, or null
  std::vector<NodeEntry> inputs;
  std::vector<NodeEntry> outputs;
  std::vector<Graph*> subgraphs;  ///< owned by the node's graph
  NodeAttributes attrs;
  std::vector<Node*> control_deps;  ///< nodes that must run before this one
  /// Number of outputs, hidden ones included; 0 if unknown. After a change of `op` only a lower
  /// bound.
  int num_outputs;

  /// Sets num_outputs for the present operator.
  void _declareOutputs(int count) {
    num_outputs = count;
    declared_op_ = hashOf(op);
  }
  /// Whether the operator may have an output of this number. False only if it is known not to.
  bool _hasOutput(int index) const {
    return index >= 0 && (index < num_outputs || num_outputs <= 0 || declared_op_ != hashOf(op));
  }

  /// What the host lends for the running pass, or null.
  PassResource* _passResource() const { return detail::RunningPass::resource(); }

 private:
  friend class Graph;
  static uint32_t hashOf(const std::string& op) {
    return static_cast<uint32_t>(std::hash<std::string>()(op)) & ~kDoomed;
  }
  // Being deleted: faulty passes may list a node twice. A bit of declared_op_, since walks over
  // large graphs wait for the memory of nodes.
  static constexpr uint32_t kDoomed = 0x80000000;
  friend class detail::NodeMemory;
  static constexpr std::size_t kMark = sizeof(uint64_t);
  static void* mark(void* memory, bool lent) {
    ::new (memory) uint64_t(lent ? 1 : 0);
    return static_cast<char*>(memory) + kMark;
  }
  uint32_t declared_op_;

 public:
  /// Members of the node's JSON object without a counterpart in this class.
  JsonMembers extra;
};

namespace detail {

/// The parameters of a call. Hosts list them in the order of the graph's variables, so most are
/// found by one comparison of names.
class ParamTable {
 public:
  /// The parameters are added by the caller, as many as announced.
  explicit ParamTable(std::size_t count) : tensors_(nullptr) {
    names_.reserve(count);
    lent_.reserve(count);
    tensors_ = new MXTensor[count];
  }
  ParamTable(const ParamTable&) = delete;
  ParamTable& operator=(const ParamTable&) = delete;
  ~ParamTable() { delete[] tensors_; }
  /// `shape` must live as long as the table.
  void add(const char* name, void* data, MXDType type, const int64_t* shape, int dims,
           size_t number, MXContext context) {
    MXTensor* const tensor = &tensors_[names_.size()];
    names_.push(Named{name, tensor});
    lent_.push(Lent{name, data, type, shape, static_cast<std::size_t>(dims), number, nullptr});
    tensor->setTensor(data, type, shape, dims, number, std::move(context));
  }
  bool empty() const { return names_.empty(); }
  /// Sets `tensor` of the variables that are parameters.
  void assign(const std::vector<Node*>& variables);

  /// What the host lent as a tensor.
  struct Lent {
    const char* name;
    void* data;  ///< null on demand, until the pass asks for it
    MXDType type;
    const int64_t* shape;
    std::size_t dims;
    size_t number;
    const Node* node;  ///< the variable that got the tensor, or null
  };
  /// Returns what one of the table's tensors was lent as; null for another tensor.
  Lent* find(const MXTensor* tensor) const {
    const std::less<const MXTensor*> less;
    if (less(tensor, tensors_) || !less(tensor, tensors_ + lent_.size())) return nullptr;
    return &lent_[static_cast<std::size_t>(tensor - tensors_)];
  }
  /// Throws std::runtime_error if a tensor was changed in what the host does not see.
  void requireAsLent() const;

 private:
  struct Named {
    const char* name;
    MXTensor* tensor;
  };
  void lend(MXTensor* tensor, Node* node) {
    node->tensor = tensor;
    lent_[static_cast<std::size_t>(tensor - tensors_)].node = node;
  }
  static int compare(const void* left, const void* right) {
    return strcmp(static_cast<const Named*>(left)->name, static_cast<const Named*>(right)->name);
  }

  PlainList<Named> names_;
  PlainList<Lent> lent_;  // in the order of the tensors
  MXTensor* tensors_;
};

}  // namespace detail

/// A model: nodes, and those of their outputs that are the model's.
///
/// The graph owns its nodes. An edge is stored on both sides: in `inputs` of the consumer and in
/// `outputs` of the producer. connect, replace and removeNode maintain both; code that writes to
/// the vectors directly must do the same.
class Graph {
 public:
  Graph() {}
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Reads a graph in NNVM's JSON. The caller owns it. Throws JsonError: invalid JSON, a missing
  /// key, a wrong type, an edge out of range, a cycle, two variables of one name.
  PASSLIB_ON_DEMAND static Graph* fromString(const std::string& json);
  static Graph* fromString(const char* text, std::size_t size, const JsonOptions& options);
  PASSLIB_ON_DEMAND static Graph* fromJson(const JsonVal& val);

  /// Returns NNVM's JSON on one line. Nodes keep their order if each comes after its inputs. Throws
  /// GraphStructureError for a cycle and for edges to nodes outside the graph.
  std::string toString() const;
  PASSLIB_ON_DEMAND JsonVal toJson() const;
  /// Appends the JSON to `out`, in the layout of MXNet's Symbol.tojson.
  PASSLIB_ON_DEMAND void writePretty(std::string* out) const;

  /// Adds a node without edges.
  PASSLIB_ON_DEMAND Node* addNode(const std::string& name, const std::string& op);
  /// Connects output `producer_output` of `producer` to input `consumer_input` of `consumer`, whose
  /// former edge it replaces. A number equal to the count of inputs appends one. Throws
  /// std::out_of_range beyond that, and std::invalid_argument for a null node.
  PASSLIB_ON_DEMAND void connect(Node* producer, int producer_output, Node* consumer,
                                 int consumer_input);
  /// Replaces `from` by `target` in inputs of nodes and outputs of the graph. Uses by the node of
  /// `target` itself stay, so a new node is inserted after an old one by connecting it first.
  /// Returns the number of replaced uses. Throws std::invalid_argument for a null node.
  PASSLIB_ON_DEMAND std::size_t replace(const NodeEntry& from, const NodeEntry& target);
  /// Removes a node with all its edges: consumers lose that input, the graph loses those outputs.
  /// Call replace first to substitute another value. The node's memory lives as long as the graph.
  /// Throws std::invalid_argument for a node that is not in the graph. Linear in the size of the
  /// graph, as is removeNodes for any number of nodes.
  PASSLIB_ON_DEMAND void removeNode(Node* node) { removeNodes(std::vector<Node*>(1, node)); }
  PASSLIB_ON_DEMAND void removeNodes(const std::vector<Node*>& unwanted);

  /// Returns all nodes, each after the nodes it takes input from: in their own order if it is like
  /// that. Throws GraphStructureError as sortNodes does.
  PASSLIB_ON_DEMAND std::vector<Node*> sorted() const;
  /// Returns all nodes, each before the nodes it takes input from, as MXNet does.
  PASSLIB_ON_DEMAND std::vector<Node*> topological_sort() const;
  /// Calls handler on each node after all consumers of its outputs.
  PASSLIB_ON_DEMAND void DFS(std::function<void(Node*)> handler) const;
  PASSLIB_ON_DEMAND void _dfs_util(Node* node, std::unordered_set<Node*>* to_visit,
                                   std::function<void(Node*)> handler) const;
  /// Prints the graph to std::cout.
  PASSLIB_ON_DEMAND void print(int indent = 0) const;

  Node* getNode(size_t idx) { return nodes.at(idx); }
  const Node* getNode(size_t idx) const { return nodes.at(idx); }
  /// Throws std::out_of_range with the key if there is no such attribute.
  PASSLIB_ON_DEMAND const JsonVal& getAttr(const std::string& key) const;
  size_t size() const { return nodes.size(); }

  /// Sets `tensor` of the variables whose names are in args or aux.
  void _setParams(detail::ParamTable* args, detail::ParamTable* aux);
  /// Clears the tensors of all nodes, whose lifetime ends with the call of a pass.
  void _endPass();
  PassResource* _passResource() const { return detail::RunningPass::resource(); }

  std::vector<Node*> nodes;
  std::vector<Node*> inputs;       ///< the variables
  std::vector<NodeEntry> outputs;  ///< the model's outputs ("heads")
  /// Top-level keys of the JSON other than nodes, arg_nodes, node_row_ptr and heads.
  GraphAttributes attrs;

 private:
  friend class detail::PatternSession;
  std::vector<Node*> removed_;
};

namespace detail {

/// Addresses in the order in which they were added, each once. Never dereferences them.
class AddressTable {
 public:
  explicit AddressTable(std::size_t count = 0) { reserve(count); }
  /// Returns the position, or -1.
  int64_t find(const void* address) const {
    const Slot wanted = slotFor(address);
    for (std::size_t pos = home(address);; pos = (pos + 1) & mask_) {
      const Slot& slot = slots_[pos];
      if (slot.next == 0) return -1;
      if (slot.tag == wanted.tag && addresses_[slot.next - 1] == address) return slot.next - 1;
    }
  }
  /// Adds an address at the next position. Returns false if it is there already.
  bool add(const void* address);
  /// Removes what was added last.
  void removeLast();
  /// A hint to the processor: the address will be added.
  void prefetch(const void* address) const { __builtin_prefetch(&slots_[home(address)], 1); }
  const void* operator[](std::size_t pos) const { return addresses_[pos]; }
  std::size_t size() const { return addresses_.size(); }

 private:
  struct Slot {
    uint32_t tag;   // bits of the address
    uint32_t next;  // the position plus one; 0: empty
  };
  static Slot slotFor(const void* address) {
    return Slot{static_cast<uint32_t>(reinterpret_cast<uintptr_t>(address) >> 4), 0};
  }
  // Graphs are read mostly in the order in which their nodes were allocated. Nodes of one page of
  // 4 KB share 16 slots, two lines of the cache, in the order of their addresses. Pages are spread
  // by the golden ratio, so that no two regions of memory meet in one run of slots.
  std::size_t home(const void* object) const {
    const uint64_t address = reinterpret_cast<uintptr_t>(object);
    const uint64_t page = ((address >> 12) * 0x9E3779B97F4A7C15ull) >> shift_;
    return static_cast<std::size_t>(page * 16 + ((address >> 8) & 15));
  }
  void reserve(std::size_t count);
  bool insert(std::size_t position);

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

}  // namespace detail

/// Positions of the nodes of a graph, by address. Built in linear time; never dereferences nodes,
/// so that any pointer can be looked up.
class NodeTable {
 public:
  /// Throws GraphStructureError if a node is null or listed twice.
  explicit NodeTable(const std::vector<Node*>& nodes) : NodeTable(nodes.data(), nodes.size()) {}
  NodeTable(Node* const* nodes, std::size_t count);
  /// Returns the position, or -1.
  int64_t find(const Node* node) const { return table_.find(node); }
  /// Adds a node that is not in the table at the next position, which it returns.
  std::size_t add(const Node* node);
  /// The number of nodes.
  std::size_t size() const { return table_.size(); }

 private:
  detail::AddressTable table_;
};

/// Returns the nodes in topological order, control dependencies included: the given order if it is
/// topological, otherwise depth first from `nodes` in turn. Throws GraphStructureError with the
/// nodes of a cycle, or the consumer of an edge to a node that is not in `table`.
PASSLIB_ON_DEMAND std::vector<Node*> sortNodes(const std::vector<Node*>& nodes,
                                               const NodeTable& table);

/// Returns entry `index` of an __ext_shape__ attribute: getShapeAt("[[2,4],[4]]", 0) is "[2,4]".
/// Unknown shapes are "None". Throws std::out_of_range.
PASSLIB_ON_DEMAND std::string getShapeAt(const std::string& shape, unsigned index);
/// Returns entry `index` of an __ext_dtype__ attribute: getDtypeAt("[0,6]", 1) is "6".
PASSLIB_ON_DEMAND std::string getDtypeAt(const std::string& dtype, unsigned index);

#define MX_STR_SUBGRAPH_SYM_JSON "subgraph_sym_json"
#define MX_STR_DTYPE "__ext_dtype__"
#define MX_STR_SHAPE "__ext_shape__"
#define MX_STR_EXTRA_INPUTS "__ext_extra_inputs__"
/// On nodes that patterns made: the names of the nodes that they stand for, as a JSON list.
#define MX_STR_ORIGIN "__origin__"
