// ---- attributes as texts -----------------------------------------------------------------------

namespace detail {

/// Returns __ext_shape__ and __ext_dtype__ of a node of the running call, which the host infers now
/// unless it did before; null if it cannot, and after the call.
inline const FlatText* readTypes(uint64_t place);

/// Whether a key is __ext_shape__ or __ext_dtype__.
inline bool isOfTypes(const char* key, std::size_t size) {
  return size == 13 &&
         (memcmp(key, "__ext_shape__", 13) == 0 || memcmp(key, "__ext_dtype__", 13) == 0);
}

/// The attributes of a node as texts, without a map.
///
/// Most nodes keep them packed, as FlatNode::packed describes. A packed block never changes, and
/// copies of a node share it: the number of its owners stands before it. Blocks that the host lent
/// have no owners; the host keeps them until the call of the pass ends.
class AttributeTexts {
 public:
  typedef JsonReader::Slice Slice;
  typedef NodeAttributes::Map Map;

  explicit AttributeTexts(const NodeAttributes& attributes) : attributes_(attributes) {}

  /// Adds the types, which are inferred when somebody reads them and leave with the call. `node`:
  /// its position as the host showed it, from 1.
  static void offerTypes(uint32_t node, uint16_t call, NodeAttributes* target) {
    target->types_ = static_cast<uint64_t>(call) << 32 | node;
  }
  bool hasTypes() const { return attributes_.types_ != 0; }
  /// Reads the types. Before all attributes are read.
  void readTypes() const {
    if (hasTypes()) attributes_.makeWhole();
  }

  /// Gets the text of an attribute. Returns false if there is none.
  bool find(const char* key, std::size_t size, Slice* text) const;
  bool has(const char* key) const {
    Slice text;
    return find(key, strlen(key), &text);
  }
  bool get(const char* key, std::string* copy) const {
    Slice text;
    if (!find(key, strlen(key), &text)) return false;
    copy->assign(text.data, text.size);
    return true;
  }
  /// Calls visit(key, text) with a Slice each: sorted by key, unless a map has been made.
  template <typename Visit>
  void visit(Visit visit) const {
    readTypes();
    visitPresent(visit);
  }
  /// The same without types that nobody has read.
  template <typename Visit>
  void visitPresent(Visit visit) const {
    if (const Map* map = mapOf(attributes_)) {
      for (const auto& pair : *map) visit(sliceOf(pair.first), sliceOf(pair.second));
      return;
    }
    const uint32_t* const block = attributes_.packed_;
    const char* cursor = block == nullptr ? nullptr : textsOf(block);
    for (std::size_t pos = 0; block != nullptr && pos < block[0]; ++pos) {
      const uint32_t* const sizes = &block[2 + 2 * pos];
      visit(Slice{cursor, sizes[0]}, Slice{cursor + sizes[0], sizes[1]});
      cursor += static_cast<std::size_t>(sizes[0]) + sizes[1];
    }
  }
  /// Returns the packed attributes and the number of words; null if there are none, or if a map has
  /// been made, which has the present attributes.
  const uint32_t* packed(std::size_t* words) const {
    const uint32_t* const block = mapOf(attributes_) == nullptr ? attributes_.packed_ : nullptr;
    *words = block == nullptr ? 0 : wordsOf(block);
    return block;
  }
  /// Whether the attributes are still those of a packed block: most passes make a map only to read.
  bool areStill(const uint32_t* block) const;
  /// Whether the host owns the packed attributes.
  bool areLent() const { return attributes_.lent_; }
  /// A hint to the processor that `packed` will be called.
  void prefetch() const { __builtin_prefetch(attributes_.packed_); }

  /// Replaces all attributes by these, which it sorts if they are few. Returns null, or a key that
  /// occurs twice; some attributes are missing then. Text: std::string or Slice.
  template <typename Text>
  static const Text* pack(std::pair<Text, Text>* items, std::size_t count, NodeAttributes* target);
  /// Replaces all attributes by a copy of a packed block, which is well-formed.
  static void copyPacked(const uint32_t* block, std::size_t words, NodeAttributes* target) {
    target->clear();
    uint32_t* const made = newBlock(words);
    memcpy(made, block, words * sizeof(uint32_t));
    target->packed_ = made;
  }
  /// Replaces all attributes by a packed block of the host, which outlives them.
  static void lendPacked(const uint32_t* block, NodeAttributes* target) {
    target->clear();
    target->packed_ = block;
    target->lent_ = true;
  }
  /// Makes `target`, which is empty, a copy.
  void copyTo(NodeAttributes* target) const;
  /// Drops the packed block.
  static void drop(NodeAttributes* target) noexcept;

  static std::size_t wordsOf(const uint32_t* block) {
    return 2 + 2 * static_cast<std::size_t>(block[0]) +
           (static_cast<std::size_t>(block[1]) + 3) / 4;
  }

 private:
  typedef std::atomic<uint32_t> Owners;
  static_assert(sizeof(Owners) == sizeof(uint32_t), "the number of owners takes one word");

  static Map* mapOf(const NodeAttributes& attributes) {
    return attributes.map_.load(std::memory_order_acquire);
  }
  static const char* textsOf(const uint32_t* block) {
    return reinterpret_cast<const char*>(&block[2 + 2 * block[0]]);
  }
  /// Returns memory for a block of one owner.
  static uint32_t* newBlock(std::size_t words) {
    uint32_t* const memory = new uint32_t[words + 1];
    ::new (memory) Owners(1);
    return memory + 1;
  }
  static Owners* ownersOf(const uint32_t* block) {
    return reinterpret_cast<Owners*>(const_cast<uint32_t*>(block) - 1);
  }

  const NodeAttributes& attributes_;
};

/// Sets an attribute or an option. Returns false if there was one of this key.
inline bool setText(const JsonReader::Slice& key, const JsonReader::Slice& text,
                    std::unordered_map<std::string, std::string>* texts) {
  const auto added = texts->emplace(key.str(), text.str());
  if (!added.second) added.first->second.assign(text.data, text.size);
  return added.second;
}

inline bool AttributeTexts::find(const char* key, std::size_t size, Slice* text) const {
  if (hasTypes() && isOfTypes(key, size)) {
    if (mapOf(attributes_) == nullptr) {
      const FlatText* const texts = detail::readTypes(attributes_.types_);
      if (texts == nullptr) return false;
      const FlatText& found = texts[key[6] == 's' ? 0 : 1];
      *text = Slice{found.data, static_cast<std::size_t>(found.size)};
      return true;
    }
    attributes_.makeWhole();
  }
  if (const Map* map = mapOf(attributes_)) {
    const Map::const_iterator found = map->find(std::string(key, size));
    if (found == map->end()) return false;
    *text = sliceOf(found->second);
    return true;
  }
  const uint32_t* const block = attributes_.packed_;
  const char* cursor = block == nullptr ? nullptr : textsOf(block);
  for (std::size_t pos = 0; block != nullptr && pos < block[0]; ++pos) {
    const uint32_t* const sizes = &block[2 + 2 * pos];
    if (sizes[0] == size && memcmp(cursor, key, size) == 0) {
      *text = Slice{cursor + size, sizes[1]};
      return true;
    }
    cursor += static_cast<std::size_t>(sizes[0]) + sizes[1];
  }
  return false;
}

inline bool AttributeTexts::areStill(const uint32_t* block) const {
  const Map* const map = mapOf(attributes_);
  if (map == nullptr) return attributes_.packed_ == block;
  const std::size_t types =
      hasTypes() ? map->count("__ext_shape__") + map->count("__ext_dtype__") : 0;
  if (map->size() != block[0] + types) return false;
  const char* cursor = textsOf(block);
  for (std::size_t pos = 0; pos < block[0]; ++pos) {
    const uint32_t* const sizes = &block[2 + 2 * pos];
    const Map::const_iterator found = map->find(std::string(cursor, sizes[0]));
    if (found == map->end() || found->second.size() != sizes[1]) return false;
    cursor += sizes[0];
    if (memcmp(found->second.data(), cursor, sizes[1]) != 0) return false;
    cursor += sizes[1];
  }
  return true;
}

template <typename Text>
const Text* AttributeTexts::pack(std::pair<Text, Text>* items, std::size_t count,
                                 NodeAttributes* target) {
  target->clear();
  std::size_t size = 0;
  for (std::size_t pos = 0; pos < count; ++pos) {
    size += sliceOf(items[pos].first).size + sliceOf(items[pos].second).size;
  }
  const std::size_t few = 64;
  if (count > few || size > (std::numeric_limits<uint32_t>::max)() / 2) {
    Map& map = target->changeMap();
    map.reserve(count);
    for (std::size_t pos = 0; pos < count; ++pos) {
      if (!setText(sliceOf(items[pos].first), sliceOf(items[pos].second), &map)) {
        return &items[pos].first;
      }
    }
    return nullptr;
  }
  if (count == 0) return nullptr;
  for (std::size_t pos = 1; pos < count; ++pos) {  // most files have them sorted
    for (std::size_t place = pos; place > 0; --place) {
      if (!(sliceOf(items[place].first) < sliceOf(items[place - 1].first))) break;
      items[place].swap(items[place - 1]);
    }
  }
  for (std::size_t pos = 1; pos < count; ++pos) {
    // Sorted: if it is not before the next one, it is the same.
    if (!(sliceOf(items[pos - 1].first) < sliceOf(items[pos].first))) return &items[pos].first;
  }
  uint32_t* const block = newBlock(2 + 2 * count + (size + 3) / 4);
  block[0] = static_cast<uint32_t>(count);
  block[1] = static_cast<uint32_t>(size);
  block[1 + 2 * count + (size + 3) / 4] = 0;  // the bytes behind the texts are compared, too
  char* cursor = reinterpret_cast<char*>(&block[2 + 2 * count]);
  for (std::size_t pos = 0; pos < count; ++pos) {
    const Slice texts[] = {sliceOf(items[pos].first), sliceOf(items[pos].second)};
    for (int part = 0; part < 2; ++part) {
      block[2 + 2 * pos + static_cast<std::size_t>(part)] = static_cast<uint32_t>(texts[part].size);
      if (texts[part].size != 0) memcpy(cursor, texts[part].data, texts[part].size);
      cursor += texts[part].size;
    }
  }
  target->packed_ = block;
  return nullptr;
}

inline void AttributeTexts::copyTo(NodeAttributes* target) const {
  const bool has_types = attributes_.has_types_.load(std::memory_order_acquire);
  if (const Map* map = mapOf(attributes_)) {
    target->map_.store(new Map(*map));
  } else if (attributes_.lent_) {
    copyPacked(attributes_.packed_, wordsOf(attributes_.packed_), target);
  } else if (attributes_.packed_ != nullptr) {
    ownersOf(attributes_.packed_)->fetch_add(1, std::memory_order_relaxed);
    target->packed_ = attributes_.packed_;
  }
  target->types_ = attributes_.types_;
  target->has_types_.store(has_types, std::memory_order_relaxed);
}

inline void AttributeTexts::drop(NodeAttributes* target) noexcept {
  const uint32_t* const block = target->packed_;
  const bool lent = target->lent_;
  target->packed_ = nullptr;
  target->lent_ = false;
  if (block == nullptr || lent) return;
  if (ownersOf(block)->fetch_sub(1, std::memory_order_acq_rel) == 1) delete[] (block - 1);
}

}  // namespace detail

template <typename Self, typename MapType>
std::pair<typename MapType::iterator, typename MapType::iterator>
MapFunctions<Self, MapType>::equal_range(const std::string& key) {
  return self().makeMap(key).equal_range(key);
}

template <typename Self, typename MapType>
std::pair<typename MapType::const_iterator, typename MapType::const_iterator>
MapFunctions<Self, MapType>::equal_range(const std::string& key) const {
  return self().makeMap(key).equal_range(key);
}

template <typename Self, typename MapType>
template <typename... Parts>
std::pair<typename MapType::iterator, bool> MapFunctions<Self, MapType>::emplace(Parts&&... parts) {
  return changed().emplace(std::forward<Parts>(parts)...);
}

template <typename Self, typename MapType>
template <typename... Parts>
typename MapType::iterator MapFunctions<Self, MapType>::emplace_hint(const_iterator hint,
                                                                     Parts&&... parts) {
  return changed().emplace_hint(hint, std::forward<Parts>(parts)...);
}

inline NodeAttributes::NodeAttributes(const NodeAttributes& other) {
  detail::AttributeTexts(other).copyTo(this);
}

inline NodeAttributes& NodeAttributes::operator=(NodeAttributes other) noexcept {
  swap(other);
  return *this;
}

inline AttributeText& NodeAttributes::operator[](const std::string& key) {
  makeMap(key);
  return static_cast<AttributeText&>(changeMap()[key]);
}

inline AttributeText& NodeAttributes::at(const std::string& key) {
  return static_cast<AttributeText&>(makeMap(key).at(key));
}

inline NodeAttributes::size_type NodeAttributes::size() const {
  const Map* const map = map_.load(std::memory_order_acquire);
  if (map != nullptr) return map->size();
  return (packed_ == nullptr ? 0 : packed_[0]) + (types_ == 0 ? 0 : 2);
}

inline NodeAttributes::size_type NodeAttributes::count(const std::string& key) const {
  JsonReader::Slice text;
  return detail::AttributeTexts(*this).find(key.data(), key.size(), &text) ? 1 : 0;
}

inline void NodeAttributes::clear() noexcept {
  if (const Map* map = map_.load(std::memory_order_acquire)) {
    delete map;
    map_.store(nullptr, std::memory_order_relaxed);
  }
  detail::AttributeTexts::drop(this);
  types_ = 0;
  has_types_.store(false, std::memory_order_relaxed);
}

inline void NodeAttributes::swap(Map& other) {
  makeWhole();
  changeMap().swap(other);
  types_ = 0;
}

inline void NodeAttributes::swap(NodeAttributes& other) noexcept {
  other.map_.store(map_.exchange(other.map_.load()));
  std::swap(packed_, other.packed_);
  std::swap(lent_, other.lent_);
  std::swap(types_, other.types_);
  other.has_types_.store(has_types_.exchange(other.has_types_.load()));
}

inline bool NodeAttributes::equals(const NodeAttributes& other) const {
  if (size() != other.size()) return false;
  if (size() == 0) return true;
  std::size_t words = 0;
  std::size_t others = 0;
  const uint32_t* const block = detail::AttributeTexts(*this).packed(&words);
  const uint32_t* const other_block = detail::AttributeTexts(other).packed(&others);
  if (block == nullptr || other_block == nullptr || types_ != other.types_) {
    return makeWhole() == other.makeWhole();
  }
  return block == other_block ||
         (words == others && memcmp(block, other_block, words * sizeof(uint32_t)) == 0);
}

inline NodeAttributes::Map& NodeAttributes::makeMap() const {
  if (Map* present = map_.load(std::memory_order_acquire)) return *present;
  detail::Owned<Map> made(new Map());
  detail::AttributeTexts(*this).visitPresent(
      [&made](const JsonReader::Slice& key, const JsonReader::Slice& text) {
        detail::setText(key, text, made.get());
      });
  if (types_ != 0) {  // their keys, with texts once somebody reads them
    (*made)["__ext_shape__"];
    (*made)["__ext_dtype__"];
  }
  Map* present = nullptr;  // another thread's, if that was faster
  return map_.compare_exchange_strong(present, made.get()) ? *made.release() : *present;
}

inline NodeAttributes::Map& NodeAttributes::makeMap(const std::string& key) const {
  const bool types = types_ != 0 && detail::isOfTypes(key.data(), key.size());
  return types ? makeWhole() : makeMap();
}

/// Other threads may read other attributes meanwhile: nothing moves in the map.
inline NodeAttributes::Map& NodeAttributes::makeWhole() const {
  static std::mutex& filling = *new std::mutex();
  Map& map = makeMap();
  if (types_ == 0 || has_types_.load(std::memory_order_acquire)) return map;
  const FlatText* const texts = detail::readTypes(types_);
  const std::lock_guard<std::mutex> lock(filling);
  if (has_types_.load(std::memory_order_relaxed)) return map;
  for (int which = 0; texts != nullptr && which < 2; ++which) {
    const Map::iterator found = map.find(which == 0 ? "__ext_shape__" : "__ext_dtype__");
    if (found == map.end()) continue;  // erased
    found->second.assign(texts[which].data, static_cast<std::size_t>(texts[which].size));
  }
  has_types_.store(true, std::memory_order_release);
  return map;
}

inline NodeAttributes::Map& NodeAttributes::changeMap() {
  Map& map = makeMap();
  detail::AttributeTexts::drop(this);
  return map;
}

namespace detail {

/// A reader of JSON that was read before.
inline JsonReader readAgain(const std::string& text) {
  JsonOptions reading;
  reading.max_depth = (std::numeric_limits<std::size_t>::max)();
  return JsonReader(text.data(), text.size(), reading);
}

/// The map of a graph's attributes. Only what makes one uses JsonGraphMap, so that a library that
/// never looks at the attributes contains no code for them.
class GraphMap {
 public:
  virtual ~GraphMap() {}
  virtual GraphMap* copy() const = 0;
  virtual std::size_t size() const = 0;
  virtual bool has(const std::string& key) const = 0;
  /// Gets a string. Returns false for other values, and if there is no such attribute.
  virtual bool getString(const char* key, std::string* text) const = 0;
  /// Appends the attributes as text, sorted by key.
  virtual void print(JsonMembers* members) const = 0;
};

class JsonGraphMap : public GraphMap {
 public:
  typedef GraphAttributes::Map Map;
  JsonGraphMap* copy() const override { return new JsonGraphMap(*this); }
  std::size_t size() const override { return map.size(); }
  bool has(const std::string& key) const override { return map.count(key) != 0; }
  bool getString(const char* key, std::string* text) const override {
    const Map::const_iterator found = map.find(key);
    if (found == map.end() || found->second.type != STR) return false;
    *text = found->second.str;
    return true;
  }
  void print(JsonMembers* members) const override {
    for (const auto& member : map) {
      TextBuffer out;
      printValue(member.second, ", ", ": ", &out);
      members->emplace_back(member.first, out.str());
    }
  }
  Map map;
};

/// The attributes of a graph as texts.
class GraphAttributeTexts {
 public:
  /// Returns the attributes as text, sorted by key; `room` has it if a map was made.
  static const JsonMembers& list(const GraphAttributes& attributes, JsonMembers* room) {
    const GraphMap* const map = attributes.map_.load();
    if (map == nullptr) return attributes.texts_;
    room->clear();
    map->print(room);
    return *room;
  }
  /// Replaces all attributes by these, which are sorted by key.
  static void set(JsonMembers* members, GraphAttributes* target) noexcept {
    target->clear();
    target->texts_.swap(*members);
  }
  /// Gets the value of an attribute without making a map. Returns false if there is none, or one
  /// that is no string.
  static bool getString(const GraphAttributes& attributes, const char* key, std::string* text) {
    if (const GraphMap* map = attributes.map_.load()) return map->getString(key, text);
    const std::string* const json = find(attributes.texts_, key);
    if (json == nullptr || json->empty() || (*json)[0] != '"') return false;
    *text = readAgain(*json).readString().str();
    return true;
  }
  static const std::string* find(const JsonMembers& members, const std::string& key) {
    for (const auto& member : members) {
      if (member.first == key) return &member.second;
    }
    return nullptr;
  }
};

}  // namespace detail

inline GraphAttributes::GraphAttributes(const GraphAttributes& other) : texts_(other.texts_) {
  if (const detail::GraphMap* map = other.map_.load()) map_.store(map->copy());
}

inline GraphAttributes& GraphAttributes::operator=(GraphAttributes other) noexcept {
  swap(other);
  return *this;
}

inline GraphAttributes::size_type GraphAttributes::size() const {
  const detail::GraphMap* const map = map_.load();
  return map == nullptr ? texts_.size() : map->size();
}

inline GraphAttributes::size_type GraphAttributes::count(const std::string& key) const {
  const detail::GraphMap* const map = map_.load();
  const bool present =
      map != nullptr ? map->has(key) : detail::GraphAttributeTexts::find(texts_, key) != nullptr;
  return present ? 1 : 0;
}

inline GraphAttributes::GraphAttributes(const Map& map) { makeMap() = map; }
inline GraphAttributes::GraphAttributes(std::initializer_list<value_type> items) {
  makeMap() = items;
}

inline JsonVal& GraphAttributes::operator[](const std::string& key) { return makeMap()[key]; }
inline JsonVal& GraphAttributes::at(const std::string& key) { return makeMap().at(key); }
inline GraphAttributes::iterator GraphAttributes::lower_bound(const std::string& key) {
  return makeMap().lower_bound(key);
}
inline GraphAttributes::iterator GraphAttributes::upper_bound(const std::string& key) {
  return makeMap().upper_bound(key);
}
inline GraphAttributes::const_iterator GraphAttributes::lower_bound(const std::string& key) const {
  return makeMap().lower_bound(key);
}
inline GraphAttributes::const_iterator GraphAttributes::upper_bound(const std::string& key) const {
  return makeMap().upper_bound(key);
}
inline void GraphAttributes::swap(Map& other) { makeMap().swap(other); }

inline void GraphAttributes::clear() noexcept {
  delete map_.exchange(nullptr);
  texts_.clear();
}

inline void GraphAttributes::swap(GraphAttributes& other) noexcept {
  texts_.swap(other.texts_);
  other.map_.store(map_.exchange(other.map_.load()));
}

inline bool GraphAttributes::equals(const GraphAttributes& other) const {
  const bool texts = map_.load() == nullptr && other.map_.load() == nullptr;
  return texts ? texts_ == other.texts_ : makeMap() == other.makeMap();
}

inline GraphAttributes::Map& GraphAttributes::makeMap() const {
  detail::GraphMap* present = map_.load();
  if (present == nullptr) {
    detail::Owned<detail::JsonGraphMap> made(new detail::JsonGraphMap());
    for (const auto& member : texts_) {
      made->map.emplace_hint(made->map.end(), member.first,
                             detail::readAgain(member.second).readValue());
    }
    // Unless another thread was faster.
    if (map_.compare_exchange_strong(present, made.get())) present = made.release();
  }
  return static_cast<detail::JsonGraphMap*>(present)->map;
}
