// ================================================================================================
// Graph and nodes
// ================================================================================================

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
  /// of a BatchNorm. Always 0 in Node::outputs.
  int version;
};

/// The text of an attribute: a std::string that refuses numbers, which a std::string would take for
/// characters. Use setAttr or std::to_string for them.
class AttributeText : public std::string {
 public:
  AttributeText() {}
  AttributeText(const char* text) : std::string(text) {}             // NOLINT: implicit
  AttributeText(std::string text) : std::string(std::move(text)) {}  // NOLINT: implicit
  using std::string::operator=;
  using std::string::operator+=;
  void operator=(int number) = delete;
  void operator=(double number) = delete;
  void operator+=(int number) = delete;
  void operator+=(double number) = delete;
};

/// The functions of a std::unordered_map or std::map, which `Self` makes when one of them is first
/// called. As with a map, several threads may read at the same time.
template <typename Self, typename MapType>
class MapFunctions {
 public:
  typedef MapType Map;
  typedef typename Map::key_type key_type;
  typedef typename Map::mapped_type mapped_type;
  typedef typename Map::value_type value_type;
  typedef typename Map::size_type size_type;
  typedef typename Map::difference_type difference_type;
  typedef typename Map::reference reference;
  typedef typename Map::const_reference const_reference;
  typedef typename Map::iterator iterator;
  typedef typename Map::const_iterator const_iterator;

  operator Map&() { return whole(); }
  operator const Map&() const { return whole(); }
  bool empty() const { return self().size() == 0; }
  size_type max_size() const { return whole().max_size(); }
  iterator begin() { return whole().begin(); }
  iterator end() { return self().makeMap().end(); }
  const_iterator begin() const { return whole().begin(); }
  const_iterator end() const { return self().makeMap().end(); }
  const_iterator cbegin() const { return begin(); }
  const_iterator cend() const { return end(); }
  const mapped_type& at(const std::string& key) const { return self().makeMap(key).at(key); }
  iterator find(const std::string& key) { return self().makeMap(key).find(key); }
  const_iterator find(const std::string& key) const { return self().makeMap(key).find(key); }
  std::pair<iterator, iterator> equal_range(const std::string& key);
  std::pair<const_iterator, const_iterator> equal_range(const std::string& key) const;
  template <typename... Keys>  // a key, a place, or two places
  auto erase(const Keys&... keys) -> decltype(std::declval<Map&>().erase(keys...)) {
    return changed().erase(keys...);
  }
  std::pair<iterator, bool> insert(const value_type& item) { return changed().insert(item); }
  void insert(std::initializer_list<value_type> items) { changed().insert(items); }
  template <typename... Items>
  auto insert(Items&&... items)
      -> decltype(std::declval<Map&>().insert(std::forward<Items>(items)...)) {
    return changed().insert(std::forward<Items>(items)...);
  }
  template <typename... Parts>
  std::pair<iterator, bool> emplace(Parts&&... parts);
  template <typename... Parts>
  iterator emplace_hint(const_iterator hint, Parts&&... parts);
  friend bool operator==(const Self& left, const Self& right) { return same(left, right); }
  friend bool operator!=(const Self& left, const Self& right) { return !same(left, right); }
  friend bool operator==(const Self& left, const Map& right) { return left.whole() == right; }
  friend bool operator!=(const Self& left, const Map& right) { return !(left.whole() == right); }
  friend bool operator==(const Map& left, const Self& right) { return right.whole() == left; }
  friend bool operator!=(const Map& left, const Self& right) { return !(right.whole() == left); }
  friend void swap(Self& left, Self& right) noexcept { left.swap(right); }

 protected:
  static bool same(const Self& left, const Self& right) { return left.equals(right); }
  const Self& self() const { return static_cast<const Self&>(*this); }
  Map& whole() const { return self().makeWhole(); }
  Map& changed() { return static_cast<Self&>(*this).changeMap(); }
};

/// The attributes of a node: use them as a std::unordered_map of texts, or through intAttr, setAttr
/// and the like below, which are faster on large graphs because they make no map. __ext_shape__ and
/// __ext_dtype__, the types of the outputs, may be inferred when somebody first reads them.
class NodeAttributes
    : public MapFunctions<NodeAttributes, std::unordered_map<std::string, std::string> > {
 public:
  NodeAttributes() noexcept {}
  NodeAttributes(Map map) { changeMap().swap(map); }  // NOLINT: implicit
  NodeAttributes(std::initializer_list<value_type> items) : NodeAttributes(Map(items)) {}
  NodeAttributes(const NodeAttributes& other);
  NodeAttributes(NodeAttributes&& other) noexcept { swap(other); }
  NodeAttributes& operator=(NodeAttributes other) noexcept;
  ~NodeAttributes() { clear(); }

  size_type size() const;
  size_type count(const std::string& key) const;
  AttributeText& operator[](const std::string& key);
  AttributeText& at(const std::string& key);
  using MapFunctions::at;
  /// Calls visit(key, text) with two std::strings for each attribute, in no fixed order.
  template <typename Visit>
  void forEach(Visit visit) const;
  void reserve(size_type count) { changeMap().reserve(count); }
  void clear() noexcept;
  void swap(NodeAttributes& other) noexcept;
  void swap(Map& other);

 private:
  friend MapFunctions;
  friend class detail::AttributeTexts;
  bool equals(const NodeAttributes& other) const;
  Map& makeMap() const;
  Map& makeMap(const std::string& key) const;
  Map& makeWhole() const;  // with the texts of the types
  Map& changeMap();
  mutable std::atomic<Map*> map_{nullptr};      // if there is one, it has the present attributes
  const uint32_t* packed_ = nullptr;            // the attributes as the host gave them
  uint64_t types_ = 0;                          // as AttributeTexts::offerTypes sets it
  mutable std::atomic<bool> has_types_{false};  // whether the map has their texts
  bool lent_ = false;                           // whether the host owns packed_
};

/// Members of a JSON object: keys, and values as JSON text.
typedef std::vector<std::pair<std::string, std::string> > JsonMembers;

/// The attributes of a graph: use them as a std::map of JSON values.
class GraphAttributes : public MapFunctions<GraphAttributes, std::map<std::string, JsonVal> > {
 public:
  GraphAttributes() noexcept {}
  GraphAttributes(const Map& map);  // NOLINT: implicit
  GraphAttributes(std::initializer_list<value_type> items);
  GraphAttributes(const GraphAttributes& other);
  GraphAttributes(GraphAttributes&& other) noexcept { swap(other); }
  GraphAttributes& operator=(GraphAttributes other) noexcept;
  ~GraphAttributes() { clear(); }

  size_type size() const;
  size_type count(const std::string& key) const;
  JsonVal& operator[](const std::string& key);
  JsonVal& at(const std::string& key);
  using MapFunctions::at;
  iterator lower_bound(const std::string& key);
  iterator upper_bound(const std::string& key);
  const_iterator lower_bound(const std::string& key) const;
  const_iterator upper_bound(const std::string& key) const;
  void clear() noexcept;
  void swap(GraphAttributes& other) noexcept;
  void swap(Map& other);

 private:
  friend MapFunctions;
  friend class detail::GraphAttributeTexts;
  bool equals(const GraphAttributes& other) const;
  Map& makeMap() const;
  Map& makeMap(const std::string&) const { return makeMap(); }
  Map& makeWhole() const { return makeMap(); }
  Map& changeMap() { return makeMap(); }
  mutable std::atomic<detail::GraphMap*> map_{nullptr};  // as in NodeAttributes
  JsonMembers texts_;                                    // as they were read, sorted by key
};

/// An operator, or a variable ("null"): an input or a parameter of the model.
class Node {
 public:
  std::string op;
  std::string name;
  MXTensor* tensor = nullptr;  ///< data of a parameter while a pass runs, or null
  std::vector<NodeEntry> inputs;
  std::vector<NodeEntry> outputs;
  std::vector<Graph*> subgraphs;  ///< owned by the node's graph
  NodeAttributes attrs;
  std::vector<Node*> control_deps;  ///< nodes that must run before this one
  /// Number of outputs, hidden ones included; 0 if unknown. A lower bound after a change of `op`.
  int num_outputs = 0;
  JsonMembers extra;  ///< members of the node's JSON object without a counterpart here

  /// Allocates a tensor for this variable and makes it a parameter of the model: a weight
  /// (alloc_arg) or an auxiliary state (alloc_aux). After the pass the caller's args or aux have it
  /// under this node's name. The host owns the memory, which is zero in passlib and uninitialised
  /// in MXNet. Each call returns another MXTensor, valid until the pass returns; the last of a name
  /// is the parameter. The pass fails if it changes the shape, dtype or data pointer of a tensor.
  /// Threads may call it for different nodes. Throws std::runtime_error if no pass runs, or if the
  /// caller gave no dictionary for new parameters.
  MXTensor* alloc_arg(const std::vector<int64_t>& shape, const MXContext& ctx, MXDType dtype);
  MXTensor* alloc_aux(const std::vector<int64_t>& shape, const MXContext& ctx, MXDType dtype);
  /// Returns `tensor` with its elements, or null if there is none. A pass that declares
  /// weightsOnDemand gets elements here, and only reads them. They stay valid until the pass
  /// returns. Threads may call it. Throws std::runtime_error if the host has no memory for them.
  const MXTensor* readTensor();

  // A host puts many nodes into one block, which delete of one node does not release.
  static void* operator new(std::size_t size);
  static void* operator new(std::size_t size, const std::nothrow_t& nothrow) noexcept;
  static void* operator new(std::size_t, void* place) noexcept { return place; }
  static void operator delete(void* node) noexcept;

 private:
  friend class detail::NodeMarks;
  uint32_t marks_ = 0;
};

/// A model: nodes, and those of their outputs that are the model's.
///
/// The graph owns its nodes. An edge is stored on both sides: in `inputs` of the consumer and in
/// `outputs` of the producer. connect, replace, insertAfter and removeNode maintain both; code that
/// writes to the vectors directly must do the same.
///
/// Threads of a pass may read one graph at the same time. While one thread changes it, no other may
/// use it.
class Graph {
 public:
  Graph() {}
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  std::vector<Node*> nodes;
  std::vector<Node*> inputs;       ///< the variables
  std::vector<NodeEntry> outputs;  ///< the model's outputs ("heads")
  /// Top-level keys of the JSON other than nodes, arg_nodes, node_row_ptr and heads.
  GraphAttributes attrs;

  size_t size() const { return nodes.size(); }
  Node* getNode(size_t idx) { return nodes.at(idx); }
  const Node* getNode(size_t idx) const { return nodes.at(idx); }
  /// Throws std::out_of_range if there is no such attribute.
  const JsonVal& getAttr(const std::string& key) const;

  /// Adds a node without edges.
  Node* addNode(const std::string& name, const std::string& op);
  /// Connects output `producer_output` of `producer` to input `consumer_input` of `consumer`, whose
  /// former edge it replaces. A number equal to the count of inputs appends one. Throws
  /// std::out_of_range beyond that, and std::invalid_argument for a null node.
  void connect(Node* producer, int producer_output, Node* consumer, int consumer_input);
  /// Replaces `from` by `target` in inputs of nodes and outputs of the graph. Uses by the node of
  /// `target` itself stay, so a new node is inserted after an old one by connecting it first.
  /// Returns the number of replaced uses. Throws std::invalid_argument for a null node.
  std::size_t replace(const NodeEntry& from, const NodeEntry& target);
  /// Inserts a chain of new nodes behind a value: the first takes the value as input 0, each other
  /// takes output 0 of the one before it, and all former uses of the value take output 0 of the
  /// last. Returns the number of these uses. Throws std::invalid_argument for a null node.
  std::size_t insertAfter(const NodeEntry& value, const std::vector<Node*>& chain);
  /// Removes a node with all its edges: consumers lose that input, the graph loses those outputs.
  /// Call replace first to substitute another value. The node's memory lives as long as the graph.
  /// Throws std::invalid_argument for a node that is not in the graph. Linear in the size of the
  /// graph, as is removeNodes for any number of nodes.
  void removeNode(Node* node) { removeNodes(std::vector<Node*>(1, node)); }
  void removeNodes(const std::vector<Node*>& unwanted);

  /// Returns all nodes, each after the nodes it takes input from: in their own order if it is
  /// topological. Throws GraphStructureError for a cycle and for edges to nodes outside the graph.
  std::vector<Node*> sorted() const;
  /// Returns all nodes, each before the nodes it takes input from, as MXNet does.
  std::vector<Node*> topological_sort() const;
  /// Calls handler on each node after all consumers of its outputs.
  void DFS(std::function<void(Node*)> handler) const;
  void _dfs_util(Node* node, std::unordered_set<Node*>* to_visit,
                 std::function<void(Node*)> handler) const;

  /// Calls visit(graph, node) for each node of this graph and of the graphs nested in it: each
  /// graph once, outer graphs first. visit may add nodes, which are visited too.
  template <typename Visit>
  void forEachNode(Visit visit);
  /// Calls visit(graph) for this graph and each graph nested in it.
  template <typename Visit>
  void forEachGraph(Visit visit);

  /// Reads a graph in NNVM's JSON. The caller owns it. Throws JsonError: invalid JSON, a missing
  /// key, a wrong type, an edge out of range, a cycle, two variables of one name.
  static Graph* fromString(const std::string& json);
  static Graph* fromString(const char* text, std::size_t size, const JsonOptions& options);
  static Graph* fromJson(const JsonVal& val);
  /// Returns NNVM's JSON on one line. Nodes keep their order if each comes after its inputs. Throws
  /// GraphStructureError for a cycle and for edges to nodes outside the graph.
  std::string toString() const;
  JsonVal toJson() const;
  /// Appends the JSON to `out`, in the layout of MXNet's Symbol.tojson.
  void writePretty(std::string* out) const;
  /// Prints the graph to std::cout.
  void print(int indent = 0) const;

 private:
  friend class detail::PatternSession;
  void noteOrigin(Node* old, Node* made);
  void noteHeirs(const std::vector<Node*>& removed, const std::unordered_set<Node*>& gone);
  std::vector<Node*> removed_;  // owned, because passes may still point to them
  std::vector<Node*> heirs_;    // replaced nodes, each with the new node that stands for it
};
