// ================================================================================================
// Patterns: what to look for in a graph, and what to put in its place, as text (docs/patterns.md)
// ================================================================================================

/// The text of a pattern or of a replacement is not well-formed.
class PatternError : public std::runtime_error {
 public:
  PatternError(const std::string& message, std::size_t error_line, std::size_t error_column)
      : std::runtime_error(message), line(error_line), column(error_column) {}
  std::size_t line;    ///< from 1
  std::size_t column;  ///< in bytes, from 1
};

class Match;

namespace detail {

/// A compared, bound or forbidden attribute of an operation.
struct PatternAttribute {
  enum Relation { kEqual, kDifferent, kAbsent, kBind, kSpread, kNumber };
  std::string key;
  Relation relation = kEqual;
  bool optional = false;            ///< a missing attribute fits too
  std::vector<std::string> values;  ///< one of these
  std::string variable;  ///< kBind: the name after $; kSpread, kNumber: that of the value
};

/// An input of the pattern, or one output of an operation.
struct PatternValue {
  enum Kind { kAny, kParameter, kInput };
  std::string name;
  int operation = -1;
  int output = 0;
  int outer = -1;  ///< in a replacement: the number of the pattern's value
  bool optional = false;
  bool variadic = false;
  bool listed = false;  ///< one of several names before the equal sign
  Kind kind = kAny;
  std::vector<int64_t> ranks;  ///< one of these, as the next ones
  std::vector<double> numbers;
  std::vector<int64_t> shapes;  ///< of each: its rank, then the sizes, -1 for any
  uint32_t types = 0;           ///< a bit for each; none: any
  int uses = 0;
  std::size_t place = 0;  ///< in the text
};

struct PatternOperation {
  std::vector<std::pair<std::string, std::string> > operators;  ///< domain, name; empty: any
  std::vector<PatternAttribute> attributes;
  std::vector<int> inputs;
  int variadic = -1;     ///< position of the variadic input
  bool ordered = false;  ///< has optional or variadic inputs, which are never permuted
  bool shared = false;
  int uses = 0;     ///< inputs of other operations of the pattern
  int outputs = 1;  ///< the highest one named, plus one
  int depth = 1;
  bool root = false;
  std::string text;  ///< for messages
};

/// The result of a pattern. Those after the first are searched upwards from a value that is known
/// by then: `climb` has the operations between them.
struct PatternRoot {
  int value = 0;
  int start = -1;
  std::vector<int> climb;
};

struct PatternGraph {
  std::string text;
  std::vector<PatternValue> values;
  std::vector<PatternOperation> operations;  ///< each after those it takes input from
  std::vector<PatternRoot> roots;
  std::vector<int> results;  ///< of a replacement: the new value for each root of the pattern

  /// The value of a name, or -1.
  int find(const std::string& name) const {
    for (std::size_t pos = 0; pos < values.size(); ++pos) {
      if (!name.empty() && values[pos].name == name) return static_cast<int>(pos);
    }
    return -1;
  }
  /// Whether an attribute of an operation is bound to $name.
  bool binds(const std::string& name) const {
    for (const PatternOperation& operation : operations) {
      for (const PatternAttribute& attribute : operation.attributes) {
        if (attribute.relation == PatternAttribute::kBind && attribute.variable == name)
          return true;
      }
    }
    return false;
  }
};

struct PatternCondition {
  std::string text;
  std::function<bool(const Match&)> holds;
};

struct PatternRule {
  PatternGraph pattern;
  std::unique_ptr<PatternGraph> replacement;
  std::vector<PatternCondition> conditions;
  std::function<void(Match&)> rewrite;
};

struct PatternBinding {
  enum State : char { kFree, kBound, kAbsent };
  std::vector<NodeEntry> values;
  PlainList<State> states;
  std::vector<std::vector<NodeEntry> > lists;  ///< of variadic inputs
  std::vector<Node*> nodes;                    ///< by operation
  std::vector<std::pair<std::string, std::string> > attributes;
};

class PatternSession;

}  // namespace detail

/// A place where a pattern matches. Names are those of the pattern; an unknown one throws
/// std::out_of_range.
class Match {
 public:
  Graph* graph() const;
  /// Whether an optional input is there, or an attribute with ? was found.
  bool has(const std::string& name) const;
  /// The value of a name. Throws std::out_of_range for an optional input that is absent.
  NodeEntry operator[](const std::string& name) const;
  /// Whether a name is that of a variadic input.
  bool isList(const std::string& name) const;
  /// The values of a variadic input.
  const std::vector<NodeEntry>& list(const std::string& name) const;
  /// The node that computes a value.
  Node* node(const std::string& name) const { return (*this)[name].node; }
  /// The operations, each after those it takes input from.
  const std::vector<Node*>& nodes() const { return binding_->nodes; }
  /// The results of the pattern, in its order.
  std::vector<NodeEntry> results() const;
  /// The text of an attribute that the pattern binds to $name; empty if it is missing.
  std::string attr(const std::string& name) const;
  /// All of them by name, without missing ones.
  const std::vector<std::pair<std::string, std::string> >& attrs() const {
    return binding_->attributes;
  }

  /// The same as a list of whole numbers, "[0, 1]" or "(0, 1)". Throws std::invalid_argument.
  std::vector<int64_t> integers(const std::string& name) const;
  /// The attributes of the operation that computes a value, without bookkeeping such as __id__.
  std::unordered_map<std::string, std::string> attributes(const std::string& name) const;
  /// Version of an operator set that the model imports; 0 if unknown.
  int64_t operatorSet(const std::string& domain = "") const;
  /// The options of the call of a PATTERN_PASS. Throws std::logic_error for other patterns.
  const OptionValues& options() const;

  /// Gets the shape of a value. Returns false if it is unknown; unknown sizes are -1.
  bool shape(const std::string& name, std::vector<int64_t>* sizes) const;
  /// The number of dimensions, or -1 if unknown.
  int rank(const std::string& name) const;
  /// The element type, or kUNSET if unknown.
  MXDType type(const std::string& name) const;
  /// Whether `from` is known to broadcast to the shape of `target` without enlarging it.
  bool broadcasts(const std::string& from, const std::string& target) const;
  /// Whether a value is a parameter whose array the caller lent, of the match's own graph or of one
  /// around it.
  bool isParameter(const std::string& name) const;
  /// The array of a parameter. Throws std::out_of_range for other values.
  const MXTensor& tensor(const std::string& name) const;
  /// Gets the number in a parameter of one element. Returns false for everything else.
  bool number(const std::string& name, double* value) const;
  /// The numbers in a dense parameter, row by row. Throws std::out_of_range for other values.
  std::vector<double> numbers(const std::string& name) const;

  /// Adds an operation, named after the result that is replaced. `op` may have a domain,
  /// "com.microsoft::Gelu". Returns output 0. Operations that nothing uses are dropped.
  NodeEntry op(const std::string& op, const std::vector<NodeEntry>& inputs,
               const std::unordered_map<std::string, std::string>& attrs =
                   (std::unordered_map<std::string, std::string>()),
               int num_outputs = 1);
  /// Adds a variable, named after the result that is replaced.
  Node* variable(const std::string& suffix);
  /// Adds a variable for a parameter. In a nested graph of an ONNX model, the parameter is the
  /// model's own, which the graphs on the way take from around them.
  Node* parameterVariable(const std::string& suffix);
  /// Adds a parameter with memory for its values: `tensor` of the node.
  Node* parameter(const std::string& suffix, const std::vector<int64_t>& shape, MXDType dtype);
  /// Adds a parameter with these values, rounded to its type.
  NodeEntry parameter(const std::string& suffix, const std::vector<int64_t>& shape, MXDType dtype,
                      const std::vector<double>& values);
  /// Sets what replaces a result of the pattern. A rewrite that sets none declines the match, and
  /// the graph stays as it was.
  void replace(const std::string& name, const NodeEntry& value);
  /// The same for a pattern with one result.
  void replace(const NodeEntry& value);
  /// The same for a result by its position in `results`.
  void replaceAt(std::size_t position, const NodeEntry& value);

 private:
  friend class detail::PatternSession;
  Match(detail::PatternSession* session, const detail::PatternRule* rule,
        const detail::PatternBinding* binding)
      : session_(session), rule_(rule), binding_(binding) {}
  int valueOf(const std::string& name) const;
  struct Replaced {
    std::size_t root;
    NodeEntry value;
  };

  detail::PatternSession* session_;
  const detail::PatternRule* rule_;
  const detail::PatternBinding* binding_;
  std::vector<Replaced> replaced_;
};

/// The text of a list in an attribute: "[1, 2]".
std::string listText(const std::vector<int64_t>& numbers);

/// A place in a list of matches.
struct FoundMatch {
  typedef std::pair<std::string, std::vector<NodeEntry> > Value;
  Graph* graph = nullptr;
  std::size_t rule = 0;  ///< number of the pattern
  std::vector<Node*> nodes;
  std::vector<Value> values;  ///< by name
  std::vector<std::pair<std::string, std::string> > attributes;
};

/// The host's functions for the steps of PatternSet::apply; each may be empty. `add_node` adds a
/// node of a name and operator, a variable to Graph::inputs too. `options` are those of
/// Match::options.
struct PatternHooks {
  std::function<Node*(Graph*, const std::string&, const std::string&)> add_node;
  std::function<void(Graph*, Node*)> remove_node;
  const OptionValues* options = nullptr;
  /// The number of users of a value that are tried as a later result of a pattern.
  std::size_t most_users = (std::numeric_limits<std::size_t>::max)();
};

/// One pattern with its conditions and what replaces it: a handle, copied freely.
class Pattern {
 public:
  /// Compiles a pattern. Inside PATTERN_PASS it becomes part of the pass. Throws PatternError.
  explicit Pattern(const std::string& text);
  /// A match counts only if this is true. `reason` says in `why` what was not met.
  Pattern& where(std::function<bool(const Match&)> condition, const std::string& reason = "");
  /// The replacement of a match, as text. Throws PatternError.
  Pattern& replace(const std::string& text);
  /// A function that makes what replaces a match.
  Pattern& rewrite(std::function<void(Match&)> function);

 private:
  friend class PatternSet;
  std::shared_ptr<detail::PatternRule> rule_;
};

/// Patterns that are searched in one walk over a graph.
class PatternSet {
 public:
  PatternSet() {}
  /// Takes the patterns that `fill` declares. Throws PatternError.
  explicit PatternSet(const std::function<void()>& fill);
  void add(const Pattern& pattern) { rules_.push_back(pattern.rule_); }

  /// Replaces matches, in nested graphs too, until there are none. Returns their number. Throws
  /// std::runtime_error if there is no end to it.
  std::size_t apply(Graph* graph, const PatternHooks& hooks = PatternHooks()) const;
  /// Lists all matches, overlapping ones too, and changes nothing.
  std::vector<FoundMatch> find(Graph* graph) const;
  /// Says why no pattern matches with its first result at a node: the condition that was not met
  /// after the most operations. Empty if one matches.
  std::string why(Graph* graph, Node* node) const;
  /// Whether a pattern may look at inferred shapes and types: it has a condition or a function, or
  /// asks for rank, shape or type of a value that is no parameter.
  bool needsShapes() const;

 private:
  std::vector<std::shared_ptr<const detail::PatternRule> > rules_;
};
