// ================================================================================================
// Uses of values, orders
// ================================================================================================

#define MX_STR_SUBGRAPH_SYM_JSON "subgraph_sym_json"
#define MX_STR_DTYPE "__ext_dtype__"
#define MX_STR_SHAPE "__ext_shape__"
#define MX_STR_EXTRA_INPUTS "__ext_extra_inputs__"
/// On new nodes: the names of the nodes that they stand for, as a JSON list. replace sets it.
#define MX_STR_ORIGIN "__origin__"
/// On nodes that rules made: the names of the rules, the last one last, as a JSON list. Files have
/// it where they have the origin.
#define MX_STR_RULES "__rules__"

namespace detail {
class AddressTable;
}  // namespace detail

/// Whether a value, or any value of a node, is an output of the graph. Linear in its outputs.
/// Threads may call these functions.
bool isOutput(const Graph* graph, const NodeEntry& value);
bool isOutput(const Graph* graph, const Node* node);
/// Returns the inputs that take a value: each the consumer and the number of its input.
std::vector<NodeEntry> users(const NodeEntry& value);
/// Returns the only consumer of a value; null if there are several or none, or if the value is an
/// output of the graph.
Node* onlyUser(const Graph* graph, const NodeEntry& value);

/// Positions of the nodes of a graph, by address. Built in linear time; never dereferences nodes,
/// so that any pointer can be looked up. Threads may call find.
class NodeTable {
 public:
  /// Throws GraphStructureError if a node is null or listed twice.
  explicit NodeTable(const std::vector<Node*>& nodes);
  NodeTable(Node* const* nodes, std::size_t count);
  /// Returns the position, or -1.
  int64_t find(const Node* node) const;
  /// Adds a node that is not in the table at the next position, which it returns.
  std::size_t add(const Node* node);
  /// Returns the number of nodes.
  std::size_t size() const;
  ~NodeTable();

 private:
  std::unique_ptr<detail::AddressTable> table_;
};

/// Returns the nodes in topological order, control dependencies included: the given order if it is
/// topological, otherwise depth first from `nodes` in turn. Throws GraphStructureError with the
/// nodes of a cycle, or the consumer of an edge to a node that is not in `table`.
std::vector<Node*> sortNodes(const std::vector<Node*>& nodes, const NodeTable& table);

/// Returns entry `index` of an __ext_shape__ attribute: getShapeAt("[[2,4],[4]]", 0) is "[2,4]".
/// Unknown shapes are "None". Throws std::out_of_range.
std::string getShapeAt(const std::string& shape, unsigned index);
/// Returns entry `index` of an __ext_dtype__ attribute: getDtypeAt("[0,6]", 1) is "6".
std::string getDtypeAt(const std::string& dtype, unsigned index);
