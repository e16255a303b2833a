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

/// The text of an attribute: a std::string that refuses the assignment of numbers, which a
/// std::string would take for characters. Use setAttr or std::to_string.
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

/// The functions that NodeAttributes and GraphAttributes share with the map that they stand for.
/// `Self` makes the map when one of them is first called. As with a map, several threads may read
/// at the same time.
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
  size_type max_size() const { return map().max_size(); }
  iterator begin() { return whole().begin(); }
  iterator end() { return map().end(); }
  const_iterator begin() const { return whole().begin(); }
  const_iterator end() const { return map().end(); }
  const_iterator cbegin() const { return whole().begin(); }
  const_iterator cend() const { return map().end(); }
  const mapped_type& at(const std::string& key) const { return map(key).at(key); }
  iterator find(const std::string& key) { return map(key).find(key); }
  const_iterator find(const std::string& key) const { return map(key).find(key); }
  std::pair<iterator, iterator> equal_range(const std::string& key) {
    return map(key).equal_range(key);
  }
  std::pair<const_iterator, const_iterator> equal_range(const std::string& key) const {
    return map(key).equal_range(key);
  }
  size_type erase(const std::string& key) {
    map(key);
    return changed().erase(key);
  }
  iterator erase(iterator place) { return changed().erase(place); }
  iterator erase(const_iterator place) { return changed().erase(place); }
  iterator erase(const_iterator first, const_iterator last) { return changed().erase(first, last); }
  std::pair<iterator, bool> insert(const value_type& item) { return changed().insert(item); }
  template <typename Pair, typename = typename std::enable_if<
                               std::is_constructible<value_type, Pair&&>::value>::type>
  std::pair<iterator, bool> insert(Pair&& item) {
    return changed().emplace(std::forward<Pair>(item));
  }
  iterator insert(const_iterator hint, const value_type& item) {
    return changed().insert(hint, item);
  }
  template <typename Iterator>
  void insert(Iterator first, Iterator last) {
    changed().insert(first, last);
  }
  void insert(std::initializer_list<value_type> items) { changed().insert(items); }
  template <typename... Arguments>
  std::pair<iterator, bool> emplace(Arguments&&... arguments) {
    return changed().emplace(std::forward<Arguments>(arguments)...);
  }
  template <typename... Arguments>
  iterator emplace_hint(const_iterator hint, Arguments&&... arguments) {
    return changed().emplace_hint(hint, std::forward<Arguments>(arguments)...);
  }

  friend bool operator!=(const Self& left, const Self& right) { return !(left == right); }
  friend bool operator==(const Self& left, const Map& right) { return left.whole() == right; }
  friend bool operator!=(const Self& left, const Map& right) { return !(left.whole() == right); }
  friend bool operator==(const Map& left, const Self& right) { return right.whole() == left; }
  friend bool operator!=(const Map& left, const Self& right) { return !(right.whole() == left); }
  friend void swap(Self& left, Self& right) noexcept { left.swap(right); }

 protected:
  const Self& self() const { return static_cast<const Self&>(*this); }
  Map& map() { return self().makeMap(); }
  const Map& map() const { return self().makeMap(); }
  /// The map for a use of one key, and for a walk over all.
  Map& map(const std::string& key) { return self().makeMap(key); }
  const Map& map(const std::string& key) const { return self().makeMap(key); }
  Map& whole() { return self().makeWhole(); }
  const Map& whole() const { return self().makeWhole(); }
  Map& changed() { return static_cast<Self&>(*this).changeMap(); }
};

/// The attributes of a node: use them as a std::unordered_map of texts, or through intAttr, setAttr
/// and the like below, which are faster on large graphs because they make no map.
///
/// __ext_shape__ and __ext_dtype__, the types of a node's outputs, may be inferred when somebody
/// first reads them.
class NodeAttributes
    : public MapFunctions<NodeAttributes, std::unordered_map<std::string, std::string> > {
  typedef MapFunctions<NodeAttributes, std::unordered_map<std::string, std::string> > Base;

 public:
  NodeAttributes() noexcept : map_(nullptr), has_types_(false) {}
  NodeAttributes(const Map& map) : map_(new Map(map)), has_types_(false) {}  // NOLINT: implicit
  NodeAttributes(Map&& map)
      : map_(new Map(std::move(map))), has_types_(false) {}  // NOLINT: implicit
  NodeAttributes(std::initializer_list<value_type> items)
      : map_(new Map(items)), has_types_(false) {}
  NodeAttributes(const NodeAttributes& other);
  NodeAttributes(NodeAttributes&& other) noexcept : map_(nullptr), has_types_(false) {
    swap(other);
  }
  NodeAttributes& operator=(NodeAttributes other) noexcept {
    swap(other);
    return *this;
  }
  ~NodeAttributes() { clear(); }

  size_type size() const;
  size_type count(const std::string& key) const;
  AttributeText& operator[](const std::string& key) {
    makeMap(key);
    return static_cast<AttributeText&>(changeMap()[key]);
  }
  AttributeText& at(const std::string& key) {
    return static_cast<AttributeText&>(makeMap(key).at(key));
  }
  using Base::at;
  /// Calls visit(key, text) with two std::strings for each attribute, in no fixed order.
  template <typename Visit>
  void forEach(Visit visit) const;
  void reserve(size_type count) { changeMap().reserve(count); }
  void clear() noexcept;
  void swap(NodeAttributes& other) noexcept;
  void swap(Map& other);
  friend bool operator==(const NodeAttributes& left, const NodeAttributes& right) {
    return left.equals(right);
  }

 private:
  friend Base;
  friend class detail::AttributeTexts;
  bool equals(const NodeAttributes& other) const;
  Map& makeMap() const;
  Map& makeMap(const std::string& key) const;
  Map& makeWhole() const;  // with the texts of the types
  Map& changeMap();
  mutable std::atomic<Map*> map_;     // once there is a map, it has the present attributes
  const uint32_t* packed_ = nullptr;  // the attributes as the host gave them
  detail::TypesPlace types_;
  mutable std::atomic<bool> has_types_;  // whether the map has their texts
  bool lent_ = false;                    // whether the host owns packed_
};

/// Members of a JSON object: keys, and values as JSON text.
typedef std::vector<std::pair<std::string, std::string> > JsonMembers;

/// The attributes of a graph: use them as a std::map of JSON values.
class GraphAttributes : public MapFunctions<GraphAttributes, std::map<std::string, JsonVal> > {
  typedef MapFunctions<GraphAttributes, std::map<std::string, JsonVal> > Base;

 public:
  GraphAttributes() noexcept : map_(nullptr) {}
  GraphAttributes(const Map& map);  // NOLINT: implicit
  GraphAttributes(std::initializer_list<value_type> items);
  GraphAttributes(const GraphAttributes& other);
  GraphAttributes(GraphAttributes&& other) noexcept : map_(nullptr) { swap(other); }
  GraphAttributes& operator=(GraphAttributes other) noexcept {
    swap(other);
    return *this;
  }
  ~GraphAttributes() { clear(); }

  size_type size() const;
  size_type count(const std::string& key) const;
  JsonVal& operator[](const std::string& key);
  JsonVal& at(const std::string& key);
  using Base::at;
  iterator lower_bound(const std::string& key);
  iterator upper_bound(const std::string& key);
  const_iterator lower_bound(const std::string& key) const;
  const_iterator upper_bound(const std::string& key) const;
  void clear() noexcept;
  void swap(GraphAttributes& other) noexcept;
  void swap(Map& other);
  friend bool operator==(const GraphAttributes& left, const GraphAttributes& right) {
    return left.equals(right);
  }

 private:
  friend Base;
  friend class detail::GraphAttributeTexts;
  bool equals(const GraphAttributes& other) const;
  Map& makeMap() const;
  Map& makeMap(const std::string&) const { return makeMap(); }
  Map& makeWhole() const { return makeMap(); }
  Map& changeMap() { return makeMap(); }
  mutable std::atomic<detail::GraphMap*> map_;  // the present attributes, once there is a map
  JsonMembers texts_;                           // as they were read, sorted by key
};

/// An operator, or a variable ("null"): an input or a parameter of the model.
class Node {
 public:
  Node() : tensor(nullptr), num_outputs(0), declared_op_(0) {}

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
  /// Members of the node's JSON object without a counterpart in this class.
  JsonMembers extra;

  /// Allocates a tensor for this variable and makes it a parameter of the model: a weight
  /// (alloc_arg) or an auxiliary state (alloc_aux). After the pass the caller's args or aux have it
  /// under this node's name. The host owns the memory, which is zero in passlib and uninitialised
  /// in MXNet. Each call returns another MXTensor, valid until the pass returns; the last one of a
  /// name is the parameter. Do not change the shape, dtype or data pointer of a tensor that the
  /// host lends: the pass fails if you do. Threads may call it for different nodes. Throws
  /// std::runtime_error if no pass runs, or if the caller gave no dictionary for new parameters.
  MXTensor* alloc_arg(const std::vector<int64_t>& shape, const MXContext& ctx, MXDType dtype);
  MXTensor* alloc_aux(const std::vector<int64_t>& shape, const MXContext& ctx, MXDType dtype);
  /// Returns `tensor` with its elements, or null if there is none. A pass that declares
  /// weightsOnDemand gets elements here, and only reads them. They stay valid until the pass
  /// returns. Threads may call it. Throws std::runtime_error if the host has no memory for them.
  const MXTensor* readTensor();
  /// Makes this variable a weight with the elements of `source`, which is on demand, multiplied by
  /// `factors`: each factor scales one of as many equal runs of elements. The host may compute them
  /// later, so that weights need not fit in memory; the tensor here has no elements. Returns false
  /// and changes nothing if the host cannot do that; use alloc_arg then.
  bool _scaleArg(const MXTensor& source, const std::vector<double>& factors);

  /// Returns what the host lends to the running pass, or null.
  PassResource* _passResource() const;
  /// Sets num_outputs for the present operator.
  void _declareOutputs(int count);
  /// Whether the operator may have an output of this number. False only if it is known not to.
  bool _hasOutput(int index) const;

  // Nodes that the host described lie in one block, which the graph's owner releases.
  static void* operator new(std::size_t size);
  static void* operator new(std::size_t size, const std::nothrow_t& nothrow) noexcept;
  static void* operator new(std::size_t, void* place) noexcept { return place; }
  static void operator delete(void* node) noexcept;

 private:
  friend class Graph;
  friend class detail::NodeMemory;
  uint32_t declared_op_;  // see _declareOutputs; the highest bit marks a node that is being deleted
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

  /// Calls visit(graph, node) for each node of this graph and of the graphs nested in it, a graph
  /// before the ones in its nodes. Visits each graph once. visit may add nodes, which are visited
  /// too.
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

  /// Lends parameters to the variables, and takes them back. For hosts.
  void _setParams(detail::ParamTable* args, detail::ParamTable* aux);
  void _endPass();

 private:
  friend class detail::PatternSession;
  void noteOrigin(Node* old, Node* made);
  void noteHeirs(const std::vector<Node*>& removed, const std::unordered_set<Node*>& gone);
  std::vector<Node*> removed_;  // owned, because passes may still point to them
  std::vector<Node*> heirs_;    // replaced nodes, each with the new node that stands for it
};
