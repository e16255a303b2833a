// ================================================================================================
// Helpers for passes: attributes as values, shapes, users, parameters
// ================================================================================================

/// An attribute is missing or has another type. what() names node, operator and attribute.
class AttributeError : public std::invalid_argument {
 public:
  explicit AttributeError(const std::string& message) : std::invalid_argument(message) {}
};

/// An attribute of a node as a value, in the spelling of any dialect: "1", "-0.5", "True", "true",
/// "(1, 1)", "[1, 1]"; a single number counts as a list of one. An attribute that is missing or
/// "None" has the value `preset`; without a preset it is an error. Throw AttributeError.
PASSLIB_ON_DEMAND int64_t intAttr(const Node* node, const char* key);
PASSLIB_ON_DEMAND int64_t intAttr(const Node* node, const char* key, int64_t preset);
PASSLIB_ON_DEMAND std::vector<int64_t> intsAttr(const Node* node, const char* key);
PASSLIB_ON_DEMAND std::vector<int64_t> intsAttr(const Node* node, const char* key,
                                                const std::vector<int64_t>& preset);
PASSLIB_ON_DEMAND double realAttr(const Node* node, const char* key);
PASSLIB_ON_DEMAND double realAttr(const Node* node, const char* key, double preset);
PASSLIB_ON_DEMAND bool boolAttr(const Node* node, const char* key);
PASSLIB_ON_DEMAND bool boolAttr(const Node* node, const char* key, bool preset);
/// The text as it is, "None" included.
PASSLIB_ON_DEMAND std::string textAttr(const Node* node, const char* key);
PASSLIB_ON_DEMAND std::string textAttr(const Node* node, const char* key,
                                       const std::string& preset);

/// The shape of a value. That of a scalar is known and has no extents.
struct ValueShape {
  ValueShape() : known(false) {}
  explicit ValueShape(std::vector<int64_t> sizes) : known(true), extents(std::move(sizes)) {}
  /// Whether rank and all extents are known.
  bool complete() const {
    bool all = known;
    for (std::size_t pos = 0; pos < extents.size(); ++pos) all = all && extents[pos] != -1;
    return all;
  }
  bool known;                    ///< whether the rank is known
  std::vector<int64_t> extents;  ///< -1: unknown. Empty if the rank is unknown, and for a scalar
};

/// Returns what is known of a value's shape: of a parameter that of its tensor, of others that
/// which the host inferred before the pass (see MX_STR_SHAPE), of variables otherwise that which
/// the model states.
PASSLIB_ON_DEMAND ValueShape shapeOf(const NodeEntry& value);
/// Returns the element type of a value in the same way; kUNSET if it is unknown.
PASSLIB_ON_DEMAND MXDType typeOf(const NodeEntry& value);

/// Whether a value, or any value of a node, is an output of the graph. Linear in its outputs.
PASSLIB_ON_DEMAND bool isOutput(const Graph* graph, const NodeEntry& value);
PASSLIB_ON_DEMAND bool isOutput(const Graph* graph, const Node* node);
/// Returns the inputs that take a value: consumer and number of its input.
PASSLIB_ON_DEMAND std::vector<NodeEntry> users(const NodeEntry& value);
/// Returns the node that takes a value, if a single input of a node does and it is no output of the
/// graph; otherwise null.
PASSLIB_ON_DEMAND Node* onlyUser(const Graph* graph, const NodeEntry& value);

/// Whether a node is a weight, a constant or a state of the model: a variable whose value is the
/// same in every run. False for inputs of the model, also where the caller gave arrays for them, as
/// far as the node or the operators that take it tell. True as well for parameters whose arrays the
/// pass does not get.
PASSLIB_ON_DEMAND bool isParameter(const Node* node);
/// Adds a parameter with a new tensor, see Node::alloc_arg. Its name is `name`, followed by a
/// number if a node has that name already. Throws std::runtime_error as alloc_arg does.
PASSLIB_ON_DEMAND Node* addParameter(Graph* graph, const std::string& name,
                                     const std::vector<int64_t>& shape, MXDType type,
                                     const MXContext& ctx = MXContext::CPU());
