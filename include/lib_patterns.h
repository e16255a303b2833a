/*
 * lib_patterns.h: passes in text, with Pattern, Match and PATTERN_PASS (docs/patterns.md).
 *
 *     #include "lib_patterns.h"
 *
 *     using namespace mxnet::ext;
 *
 *     PATTERN_PASS(fuseMatMulAdd, "MatMul and Add become Gemm", "onnx") {
 *       Pattern p("y = Add(MatMul(x, w:param), b:param)");
 *       p.replace("y = Gemm(x, w, b)");
 *     }
 *
 *     MXReturnValue initialize(int) { return MX_SUCCESS; }
 *
 * It includes lib_api.h, which needs nothing else; passes without patterns compile faster with that
 * alone. The file is made of the parts in header/ by `make header`.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MXNET_LIB_PATTERNS_H_
#define MXNET_LIB_PATTERNS_H_

#include "lib_api.h"

#ifdef MX_LIBRARY_VERSION  // else lib_api.h said what the compiler lacks

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#pragma GCC visibility push(hidden)

namespace mxnet {
namespace ext {
inline namespace passlib_api {

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

/// Registers a pass of patterns, which the block after it declares:
///
///     PATTERN_PASS(fuseMatMulAdd, "MatMul and Add become Gemm", "onnx") {
///       Pattern p("y = Add(MatMul(x, w:param), b:param)");
///       p.where([](const Match& m) { return m.rank("x") == 2 && m.broadcasts("b", "y"); });
///       p.replace("y = Gemm(x, w, b)");
///     }
///
/// After the description come the dialects, none for all. Both are declared, as by
/// CustomPass::describe and dialects. In the block, `pass` is the pass: pass.option("level", 1,
/// "How far to go.", 1, 3) declares an option, which conditions and functions read as
/// m.options().integer("level"). Patterns are compiled when the library is loaded; a host of
/// passlib refuses a library with one that is not well-formed.
#undef PATTERN_PASS
#define PATTERN_PASS(Name, ...)                                                   \
  static void MXNet_PatternsOf_##Name(mxnet::ext::CustomPass& pass);              \
  static mxnet::ext::MXReturnValue MXNet_RunPatterns_##Name(                      \
      mxnet::ext::Graph* graph, const mxnet::ext::OptionValues& options);         \
  static const mxnet::ext::detail::PatternPass MXNet_PatternPass_##Name(          \
      #Name, &MXNet_PatternsOf_##Name, &MXNet_RunPatterns_##Name, {__VA_ARGS__}); \
  static mxnet::ext::MXReturnValue MXNet_RunPatterns_##Name(                      \
      mxnet::ext::Graph* graph, const mxnet::ext::OptionValues& options) {        \
    return MXNet_PatternPass_##Name.run(graph, options);                          \
  }                                                                               \
  static void MXNet_PatternsOf_##Name(mxnet::ext::CustomPass& pass __attribute__((unused)))

// ---- patterns: text ----------------------------------------------------------------------------

namespace detail {

inline bool isWordStart(char character) {
  return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
         character == '_';
}

inline bool isWordPart(char character) {
  return isWordStart(character) || isDigit(character) || character == '.';
}

/// Appends a pair to a list. One function: each way to make a pair is one to enlarge the list.
inline void addTexts(const std::string& first, const std::string& second,
                     std::vector<std::pair<std::string, std::string> >* list) {
  list->emplace_back(first, second);
}

/// Reads the text of a number without surroundings.
inline bool parseReal(const std::string& text, double* value) {
  if (text.empty() || !(isDigit(text.back()) || text.back() == '.')) return false;
  return scanDouble(text, value) && std::isfinite(*value);
}

/// Reads the text of a pattern, or of its replacement, which refers to the pattern's names.
class PatternParser {
 public:
  /// `made`: becomes what the text says.
  PatternParser(const std::string& text, const PatternGraph* outer, PatternGraph* made)
      : text_(text), outer_(outer), graph_(*made), cursor_(0), depth_(0) {
    graph_.text = text;
    const int none = -1;
    for (std::size_t root = 0; outer != nullptr && root < outer->roots.size(); ++root) {
      graph_.results.push_back(none);
    }
  }

  void parse() {
    for (;;) {
      while (peek() == ';' || peek() == '\n') ++cursor_;
      if (cursor_ == text_.size()) break;
      statement();
      const char next = peek();
      if (next != ';' && next != '\n' && next != '\0')
        expected("an operator or the end of the statement");
    }
    if (outer_ == nullptr) {
      if (graph_.operations.empty()) expected("an operation such as Relu(x)");
      finishPattern();
    } else {
      finishReplacement();
    }
  }

 private:
  [[noreturn]] __attribute__((__cold__)) void fail(const char* message, std::size_t place) const {
    std::size_t line = 1;
    std::size_t start = 0;
    for (std::size_t pos = 0; pos < place && pos < text_.size(); ++pos) {
      if (text_[pos] != '\n') continue;
      ++line;
      start = pos + 1;
    }
    throw PatternError(printed("line %zu, column %zu of the %s: %s, in '%s'", line,
                               place - start + 1, outer_ == nullptr ? "pattern" : "replacement",
                               message, around(start, place).c_str()),
                       line, place - start + 1);
  }

  /// `form`: as of printf, has '%s' in the places of a text of the pattern, at most two.
  [[noreturn]] __attribute__((__cold__)) void failAbout(const char* form, const std::string& text,
                                                        std::size_t place) const {
    std::string message(form);
    for (std::size_t gap = 0; (gap = message.find("%s", gap)) != std::string::npos;
         gap += text.size()) {
      message.replace(gap, 2, text);
    }
    fail(message.c_str(), place);
  }

  /// The line from `start`, or some of it on either side of a place.
  std::string around(std::size_t start, std::size_t place) const {
    const std::size_t most = 60;
    const std::size_t end = (std::min)(text_.find('\n', start), text_.size());
    std::size_t first = place > start + most ? place - most : start;
    std::size_t last = end > place + most ? place + most : end;
    while (first < place && isInside(first)) ++first;
    while (last < end && isInside(last)) ++last;
    std::string text = text_.substr(first, last - first);
    if (first != start) text.insert(0, "...");
    return last == end ? text : text + "...";
  }

  /// Whether a byte belongs to the character of the byte before it.
  bool isInside(std::size_t place) const {
    return place < text_.size() && (static_cast<unsigned char>(text_[place]) & 0xC0U) == 0x80U;
  }

  [[noreturn]] __attribute__((__cold__)) void expected(const char* what) const {
    std::size_t next = cursor_ + 1;
    while (isInside(next)) ++next;
    const std::string found = cursor_ < text_.size() ? text_.substr(cursor_, next - cursor_) : "";
    const char* const form = found.empty()   ? "expected %s, not the end"
                             : found == "\n" ? "expected %s, not the end of the line"
                                             : "expected %s, not '%s'";
    fail(printed(form, what, found.c_str()).c_str(), cursor_);
  }

  /// Skips white space and comments; inside parentheses line ends too.
  char peek() {
    while (cursor_ < text_.size()) {
      const char next = text_[cursor_];
      if (next == '#') {
        while (cursor_ < text_.size() && text_[cursor_] != '\n') ++cursor_;
      } else if (next == ' ' || next == '\t' || next == '\r' || (next == '\n' && depth_ > 0)) {
        ++cursor_;
      } else {
        return next;
      }
    }
    return '\0';
  }

  std::size_t nextPlace() {
    peek();
    return cursor_;
  }

  bool take(char character) {
    if (peek() != character) return false;
    ++cursor_;
    return true;
  }

  bool takeBoth(const char* two) {
    if (peek() != two[0] || text_.compare(cursor_, 2, two) != 0) return false;
    cursor_ += 2;
    return true;
  }

  void require(char character, const char* what) {
    if (!take(character)) expected(what);
  }

  std::string word(const char* what) {
    if (!isWordStart(peek())) expected(what);
    const std::size_t start = cursor_;
    while (cursor_ < text_.size() && isWordPart(text_[cursor_])) ++cursor_;
    return text_.substr(start, cursor_ - start);
  }

  double number() {
    const char first = peek();
    const std::size_t start = cursor_;
    if (first == '-' || first == '+') ++cursor_;
    while (cursor_ < text_.size() && (isWordPart(text_[cursor_]) ||
                                      ((text_[cursor_] == '-' || text_[cursor_] == '+') &&
                                       (text_[cursor_ - 1] == 'e' || text_[cursor_ - 1] == 'E')))) {
      ++cursor_;
    }
    double value = 0;
    if (!parseReal(text_.substr(start, cursor_ - start), &value)) {
      cursor_ = start;
      expected("a number");
    }
    return value;
  }

  bool atNumber() {
    const char first = peek();
    const std::size_t next = cursor_ + (first == '-' || first == '+' ? 1 : 0);
    return next < text_.size() &&
           (isDigit(text_[next]) ||
            (text_[next] == '.' && next + 1 < text_.size() && isDigit(text_[next + 1])));
  }

  // ---- statements ----

  /// The names before an equal sign with their places; none if the statement has no equal sign.
  std::vector<std::pair<std::string, std::size_t> > targets() {
    const std::size_t start = cursor_;
    std::vector<std::pair<std::string, std::size_t> > names;
    do {
      if (!isWordStart(peek())) break;
      const std::size_t place = cursor_;
      names.emplace_back(word("a name"), place);
    } while (take(','));
    if (!names.empty() && take('=')) {
      while (peek() == '\n') ++cursor_;
      return names;
    }
    if (names.size() > 1) expected("= after the names of results");
    cursor_ = start;
    return {};
  }

  void statement() {
    const auto names = targets();
    const std::size_t start = cursor_;
    const int value = argument(true);
    const PatternValue& made = graph_.values[static_cast<std::size_t>(value)];
    if (made.operation < 0 && (outer_ == nullptr || names.size() > 1)) {
      fail("expected an operation such as Relu(x)", start);
    }
    if (made.variadic || made.optional) fail("expected one value", start);
    if (names.size() > 1) {
      const int operation = made.operation;
      if (made.output != 0) fail("several results are the outputs of an operation in order", start);
      for (std::size_t pos = 0; pos < names.size(); ++pos) {
        if (names[pos].first == "_") continue;
        const int output = outputOf(operation, static_cast<int>(pos));
        graph_.values[static_cast<std::size_t>(output)].listed = true;
        define(names[pos].first, names[pos].second, output);
      }
    } else if (names.size() == 1 && names[0].first != "_") {
      define(names[0].first, names[0].second, value);
    } else if (outer_ == nullptr) {
      unnamed_.push_back(value);
    } else {
      if (outer_->roots.size() != 1)
        fail("expected a name and =, as the pattern has several results", start);
      setResult(0, value, start);
    }
  }

  void define(const std::string& name, std::size_t place, int value) {
    if (known(name) >= 0) {
      failAbout("'%s' has a meaning already: define a name once, before its use", name, place);
    }
    if (outer_ != nullptr) {
      const int replaced = outer_->find(name);
      std::size_t root = 0;
      while (root < outer_->roots.size() && outer_->roots[root].value != replaced) ++root;
      if (replaced >= 0 && root == outer_->roots.size()) {
        failAbout("'%s' is no result of the pattern, and cannot be replaced", name, place);
      }
      if (replaced >= 0) setResult(root, value, place);
      local_.emplace_back(name, static_cast<std::size_t>(value));
      return;
    }
    PatternValue& defined = graph_.values[static_cast<std::size_t>(value)];
    if (!defined.name.empty()) {
      failAbout("this value has a name already, '%s'", defined.name, place);
    }
    defined.name = name;
  }

  /// The value that a name of this text has, or -1.
  int known(const std::string& name) const {
    if (outer_ == nullptr) return graph_.find(name);
    for (const auto& each : local_) {
      if (each.first == name) return static_cast<int>(each.second);
    }
    return -1;
  }

  void setResult(std::size_t root, int value, std::size_t place) {
    if (graph_.results[root] >= 0) fail("this result is replaced twice", place);
    graph_.results[root] = value;
  }

  // ---- values ----

  int addValue(PatternValue* value) {
    graph_.values.push_back(std::move(*value));
    return static_cast<int>(graph_.values.size()) - 1;
  }

  int outputOf(int operation, int output) {
    for (std::size_t pos = 0; pos < graph_.values.size(); ++pos) {
      const PatternValue& value = graph_.values[pos];
      if (value.operation == operation && value.output == output) return static_cast<int>(pos);
    }
    PatternOperation& owner = graph_.operations[static_cast<std::size_t>(operation)];
    owner.outputs = (std::max)(owner.outputs, output + 1);
    PatternValue value;
    value.operation = operation;
    value.output = output;
    value.place = cursor_;
    return addValue(&value);
  }

  int outputNumber() {
    if (peek() != ':' || cursor_ + 1 >= text_.size() || !isDigit(text_[cursor_ + 1])) return -1;
    ++cursor_;
    int64_t output = 0;
    const std::size_t start = cursor_;
    while (cursor_ < text_.size() && isDigit(text_[cursor_])) ++cursor_;
    if (!parseInteger(text_.data() + start, cursor_ - start, &output) || output > 9999) {
      fail("an output has a number below 10000", start);
    }
    return static_cast<int>(output);
  }

  /// An argument of an operation, or the right side of a statement (`outermost`).
  int argument(bool outermost) {
    const std::size_t start = nextPlace();
    if (!outermost && take('*')) {
      PatternValue value;
      value.variadic = true;
      value.place = start;
      return reference(word("a name after *"), &value, false);
    }
    if (atNumber()) {
      if (outer_ != nullptr)
        fail("a replacement cannot make a constant: use a rewrite function", start);
      PatternValue value;
      value.kind = PatternValue::kParameter;
      value.place = start;
      value.numbers.push_back(number());
      return addValue(&value);
    }
    std::string name = word(outermost ? "an operation such as Relu(x)"
                                      : "an input: an operation, a name, a number, or *name");
    bool shared = false;
    if (name == "shared" && isWordStart(peek())) {
      if (outer_ != nullptr) fail("a replacement has no shared operations", start);
      shared = true;
      name = word("an operator");
    }
    const char next = peek();
    const bool domain = next == ':' && text_.compare(cursor_, 2, "::") == 0;
    if (shared || domain || next == '(' || next == '[' || next == '|')
      return operation(name, shared);
    PatternValue value;
    value.place = start;
    const int output = outputNumber();
    if (output >= 0) {
      const int found = known(name);
      const int owner = found < 0 ? -1 : graph_.values[static_cast<std::size_t>(found)].operation;
      if (owner < 0) failAbout("'%s' is no operation, and has no outputs", name, start);
      return outputOf(owner, output);
    }
    bool constrained = false;
    if (outer_ == nullptr) {
      value.optional = take('?');
      constrained = take(':');
      if (constrained) constraint(&value);
    }
    return reference(name, &value, constrained);
  }

  /// A name: one that has a meaning, or a new input.
  int reference(const std::string& name, PatternValue* wanted, bool constrained) {
    const int found = name == "_" && outer_ == nullptr ? -1 : known(name);
    const std::size_t place = wanted->place;
    if (outer_ != nullptr) {
      if (found >= 0) {
        if (wanted->variadic) failAbout("'%s' is one value", name, place);
        return found;
      }
      wanted->outer = outer_->find(name);
      if (wanted->outer < 0) failAbout("the pattern has no value '%s'", name, place);
      if (outer_->values[static_cast<std::size_t>(wanted->outer)].variadic != wanted->variadic) {
        failAbout(wanted->variadic ? "'%s' is one value" : "'%s' is variadic: write *%s", name,
                  place);
      }
      wanted->name = name;
      return addValue(wanted);
    }
    if (found < 0) {
      if (name != "_") wanted->name = name;
      return addValue(wanted);
    }
    const PatternValue& earlier = graph_.values[static_cast<std::size_t>(found)];
    if (earlier.variadic != wanted->variadic) {
      failAbout("'%s' is both one value and several", name, place);
    }
    if (earlier.operation >= 0 && (wanted->optional || constrained)) {
      failAbout("'%s' is the result of an operation, and cannot be optional or constrained", name,
                place);
    }
    if (constrained || (wanted->optional && !earlier.optional)) {
      failAbout("say at the first use of '%s' what it must be", name, place);
    }
    return found;
  }

  /// `param`, `input` or `value`, and what is wanted of it in brackets.
  void constraint(PatternValue* value) {
    const std::size_t start = nextPlace();
    const std::string kind = word("param, input or value");
    if (kind == "param") {
      value->kind = PatternValue::kParameter;
    } else if (kind == "input") {
      value->kind = PatternValue::kInput;
    } else if (kind != "value") {
      failAbout("expected param, input or value, not '%s'", kind, start);
    }
    if (!take('[')) return;
    ++depth_;
    do {
      const std::size_t place = nextPlace();
      const std::string key = word("rank, type, shape or value");
      require('=', "=");
      do {
        if (key == "rank") {
          const std::size_t at = nextPlace();
          const double rank = number();
          if (rank < 0 || rank > 100 || rank != std::floor(rank))
            fail("a rank is a whole number", at);
          value->ranks.push_back(static_cast<int64_t>(rank));
        } else if (key == "type") {
          value->types |= 1u << typeName();
        } else if (key == "value") {
          if (value->kind != PatternValue::kParameter)
            fail("only a param has a known value", place);
          value->numbers.push_back(number());
        } else if (key == "shape") {
          addShape(&value->shapes);
        } else {
          failAbout("expected rank, type, shape or value, not '%s'", key, place);
        }
      } while (take('|'));
    } while (take(','));
    --depth_;
    require(']', "] or ,");
  }

  MXDType typeName() {
    static const char* const names[] = {"float32", "float64", "float16", "uint8", "int32",
                                        "int8",    "int64",   "bool",    "int16", "uint16",
                                        "uint32",  "uint64",  "bfloat16"};
    const std::size_t start = nextPlace();
    const std::string name = word("a type such as float32");
    for (int code = 0; code <= kBfloat16; ++code) {
      if (name == names[code]) return static_cast<MXDType>(code);
    }
    failAbout("expected a type such as float32, not '%s'", name, start);
  }

  /// Appends the number of sizes and the sizes.
  void addShape(std::vector<int64_t>* shapes) {
    const std::size_t rank = shapes->size();
    shapes->push_back(0);
    require('[', "[ and sizes, _ for any");
    if (take(']')) return;
    do {
      ++(*shapes)[rank];
      if (take('_')) {
        shapes->push_back(-1);
        continue;
      }
      const std::size_t at = nextPlace();
      const double size = number();
      if (size < 0 || size > 9e15 || size != std::floor(size)) fail("a size is a whole number", at);
      shapes->push_back(static_cast<int64_t>(size));
    } while (take(','));
    require(']', "] or ,");
  }

  // ---- operations ----

  int operation(const std::string& first, bool shared) {
    const std::size_t start = cursor_;
    if (++nesting_ > 200)
      fail("operations are nested more than 200 deep: name parts of them", start);
    PatternOperation made;
    made.shared = shared;
    operatorName(first, &made);
    while (take('|')) operatorName(word("an operator"), &made);
    bool any = false;
    for (const auto& op : made.operators) any = any || (op.second == "_" && op.first.empty());
    if (any && (outer_ != nullptr || made.operators.size() > 1)) {
      fail("_ stands for any operator of a pattern, and has no alternatives", start);
    }
    if (outer_ != nullptr && made.operators.size() > 1) {
      fail("a replacement needs one operator", start);
    }
    made.text = first;
    for (std::size_t pos = 1; pos < made.operators.size(); ++pos) {
      made.text += "|" + made.operators[pos].second;
    }
    if (any) made.operators.clear();
    ++depth_;
    if (take('[')) attributes(&made);
    require('(', "( and the inputs");
    if (!take(')')) {
      do {
        addArgument(&made);
      } while (take(','));
      if (peek() != ')') expected(") or ,");
      ++cursor_;
    }
    --depth_;
    --nesting_;
    graph_.operations.push_back(std::move(made));
    const int number = static_cast<int>(graph_.operations.size()) - 1;
    const int output = outputNumber();
    return outputOf(number, output < 0 ? 0 : output);
  }

  void operatorName(const std::string& first, PatternOperation* made) {
    if (takeBoth("::")) {
      addTexts(first, word("an operator"), &made->operators);
    } else {
      addTexts(std::string(), first, &made->operators);
    }
  }

  void addArgument(PatternOperation* made) {
    const std::size_t start = nextPlace();
    const int input = argument(false);
    PatternValue& value = graph_.values[static_cast<std::size_t>(input)];
    if (value.operation >= 0 && value.outer < 0) {
      PatternOperation& producer = graph_.operations[static_cast<std::size_t>(value.operation)];
      ++producer.uses;
      made->depth = (std::max)(made->depth, producer.depth + 1);
    }
    ++value.uses;
    if (value.variadic && outer_ == nullptr) {
      if (made->variadic >= 0) fail("an operation has one variadic input", start);
      made->variadic = static_cast<int>(made->inputs.size());
    }
    made->ordered = made->ordered || value.variadic || value.optional;
    made->inputs.push_back(input);
  }

  void attributes(PatternOperation* made) {
    do {
      PatternAttribute attribute;
      const std::size_t start = nextPlace();
      if (take('!')) {
        if (outer_ != nullptr)
          fail("a replacement leaves out attributes by not naming them", start);
        attribute.key = word("the name of an attribute");
        attribute.relation = PatternAttribute::kAbsent;
      } else if (take('*')) {
        if (outer_ == nullptr) fail("a pattern cannot spread attributes", start);
        attribute.variable = word("the name of an operation");
        const int found = outer_->find(attribute.variable);
        if (found < 0 || outer_->values[static_cast<std::size_t>(found)].operation < 0) {
          failAbout("the pattern has no operation '%s'", attribute.variable, start);
        }
        attribute.relation = PatternAttribute::kSpread;
      } else {
        attribute.key = word("the name of an attribute, !name or *operation");
        attribute.optional = take('?');
        if (outer_ != nullptr && attribute.optional)
          fail("a replacement has no optional attributes", start);
        if (takeBoth("!=")) {
          if (outer_ != nullptr) fail("a replacement sets attributes with =", start);
          attribute.relation = PatternAttribute::kDifferent;
        } else {
          require('=', "= and a value");
        }
        attributeValues(&attribute);
      }
      made->attributes.push_back(std::move(attribute));
    } while (take(','));
    if (peek() != ']') expected("] or ,");
    ++cursor_;
  }

  void attributeValues(PatternAttribute* attribute) {
    const std::size_t start = nextPlace();
    if (take('$')) {
      if (attribute->relation == PatternAttribute::kDifferent) fail("expected a value", start);
      attribute->relation = PatternAttribute::kBind;
      attribute->variable = word("a name after $");
      if (outer_ != nullptr && !outer_->binds(attribute->variable)) {
        const int found = outer_->find(attribute->variable);
        if (found < 0 ||
            outer_->values[static_cast<std::size_t>(found)].kind != PatternValue::kParameter) {
          failAbout("the pattern has no attribute $%s and no param %s", attribute->variable, start);
        }
        attribute->relation = PatternAttribute::kNumber;
      }
      return;
    }
    do {
      attribute->values.push_back(attributeText());
    } while (take('|'));
    if (outer_ != nullptr && attribute->values.size() > 1)
      fail("a replacement needs one value", start);
  }

  std::string attributeText() {
    const char first = peek();
    const std::size_t start = cursor_;
    if (first == '\'' || first == '"') {
      const std::size_t end = text_.find(first, start + 1);
      if (end == std::string::npos) fail("the quotation mark is not closed", start);
      cursor_ = end + 1;
      return text_.substr(start + 1, end - start - 1);
    }
    if (first == '[' || first == '(') {
      const char close = first == '[' ? ']' : ')';
      const std::size_t end = text_.find(close, start);
      if (end == std::string::npos) fail("the list is not closed", start);
      cursor_ = end + 1;
      return text_.substr(start, cursor_ - start);
    }
    while (cursor_ < text_.size() &&
           (isWordPart(text_[cursor_]) || text_[cursor_] == '-' || text_[cursor_] == '+')) {
      ++cursor_;
    }
    if (cursor_ == start) expected("a value: a number, a word, text in quotes, or a list");
    return text_.substr(start, cursor_ - start);
  }

  // ---- the end ----

  void finishPattern() {
    PlainList<char> known;
    PlainList<char> reached;
    known.resize(graph_.operations.size());
    reached.resize(graph_.values.size());
    for (std::size_t pos = 0; pos < graph_.values.size(); ++pos) {
      const PatternValue& value = graph_.values[pos];
      if (value.operation < 0) continue;
      const std::size_t owner = static_cast<std::size_t>(value.operation);
      bool named = !value.name.empty();
      for (const int each : unnamed_) named = named || each == static_cast<int>(pos);
      const bool used = value.uses > 0 || (!value.listed && graph_.operations[owner].uses > 0);
      if (used || !named) continue;
      graph_.operations[owner].root = true;
      graph_.roots.emplace_back();
      PatternRoot& root = graph_.roots.back();
      root.value = static_cast<int>(pos);
      if (graph_.roots.size() > 1 && known[owner] == 0) connectRoot(reached, &root);
      markReached(value.operation, &known, &reached);
    }
    for (std::size_t pos = 0; pos < graph_.operations.size(); ++pos) {
      if (known[pos] == 0) {
        failAbout("no result of the pattern needs the operation '%s'", graph_.operations[pos].text,
                  0);
      }
    }
  }

  /// Finds the way from a value that is known to a root that is searched from it.
  void connectRoot(const PlainList<char>& reached, PatternRoot* root) {
    const int owner = graph_.values[static_cast<std::size_t>(root->value)].operation;
    PlainList<int> pending;
    pending.push_back(owner);
    std::vector<int> above(graph_.operations.size(), -1);
    for (std::size_t next = 0; next < pending.size(); ++next) {
      const int operation = pending[next];
      for (const int input : graph_.operations[static_cast<std::size_t>(operation)].inputs) {
        const PatternValue& value = graph_.values[static_cast<std::size_t>(input)];
        if (reached[static_cast<std::size_t>(input)] != 0 && !value.variadic && !value.optional) {
          root->start = input;
          for (int step = operation; step >= 0; step = above[static_cast<std::size_t>(step)]) {
            root->climb.push_back(step);
          }
          return;
        }
        if (value.operation < 0 || above[static_cast<std::size_t>(value.operation)] >= 0) continue;
        above[static_cast<std::size_t>(value.operation)] = operation;
        pending.push_back(value.operation);
      }
    }
    fail("this result shares no value with the results before it",
         graph_.values[static_cast<std::size_t>(root->value)].place);
  }

  void markReached(int operation, PlainList<char>* known, PlainList<char>* reached) {
    PlainList<int> pending;
    pending.push_back(operation);
    while (!pending.empty()) {
      const int each = pending.back();
      pending.pop_back();
      if ((*known)[static_cast<std::size_t>(each)] != 0) continue;
      (*known)[static_cast<std::size_t>(each)] = 1;
      for (std::size_t pos = 0; pos < graph_.values.size(); ++pos) {
        if (graph_.values[pos].operation == each) (*reached)[pos] = 1;
      }
      for (const int input : graph_.operations[static_cast<std::size_t>(each)].inputs) {
        const PatternValue& value = graph_.values[static_cast<std::size_t>(input)];
        if (value.kind != PatternValue::kParameter || !value.name.empty())
          (*reached)[static_cast<std::size_t>(input)] = 1;
        if (value.operation >= 0) pending.push_back(value.operation);
      }
    }
  }

  void finishReplacement() {
    for (std::size_t pos = 0; pos < outer_->roots.size(); ++pos) {
      if (graph_.results[pos] >= 0) continue;
      const int root = outer_->roots[pos].value;
      failAbout("nothing replaces the result '%s'",
                outer_->values[static_cast<std::size_t>(root)].name, text_.size());
    }
  }

  const std::string& text_;
  const PatternGraph* outer_;
  PatternGraph& graph_;
  std::vector<std::pair<std::string, std::size_t> > local_;  // names that a replacement defines
  PlainList<int> unnamed_;
  std::size_t cursor_;
  int depth_;
  int nesting_ = 0;
};

}  // namespace detail
// ---- patterns: facts of nodes ------------------------------------------------------------------

namespace detail {

/// Operators whose inputs may be exchanged, with a space on either side. DLPrimitives' Elementwise
/// is one without coefficients.
inline const char* commutativeOperators(const std::string& dialect) {
  if (dialect == "onnx") {
    return " Add Mul Max Min Sum Mean And Or Xor Equal BitwiseAnd BitwiseOr BitwiseXor ";
  }
  if (dialect == "mxnet") {
    return " elemwise_add _add _plus _Plus broadcast_add broadcast_plus add_n ElementWiseSum "
           "elemwise_mul _mul _Mul broadcast_mul _maximum _Maximum broadcast_maximum _minimum "
           "_Minimum broadcast_minimum _equal _Equal broadcast_equal _not_equal _Not_Equal "
           "broadcast_not_equal _logical_and _Logical_And broadcast_logical_and _logical_or "
           "_Logical_Or broadcast_logical_or _logical_xor _Logical_Xor broadcast_logical_xor "
           "_hypot _Hypot broadcast_hypot _npi_add _npi_multiply _npi_maximum _npi_minimum "
           "_npi_equal _npi_not_equal _npi_hypot _npi_logical_and _npi_logical_or "
           "_npi_logical_xor _npi_bitwise_and _npi_bitwise_or _npi_bitwise_xor ";
  }
  if (dialect == "nnvm") {
    return " elemwise_add elemwise_mul elemwise_sum broadcast_add broadcast_mul broadcast_max "
           "broadcast_min broadcast_equal broadcast_not_equal ";
  }
  if (dialect == "ark") return " Add Mul ";
  return dialect == "dlprim" ? " Elementwise " : "";
}

/// Whether a list of words, with a space on either side of each, has a word.
inline bool hasWord(const char* words, const std::string& word) {
  if (word.empty() || strcspn(word.c_str(), " ") != word.size()) return false;
  for (const char* found = words; (found = strstr(found, word.c_str())) != nullptr; ++found) {
    if (found > words && found[-1] == ' ' && found[word.size()] == ' ') return true;
  }
  return false;
}

/// Whether a node stands for an omitted optional input of ONNX.
inline bool isAbsentInput(const Node& node) {
  return node.op == "null" && node.name == "__absent__";
}

/// Whether a variable is a weight or constant whose array the caller lent: no input of the model,
/// nor the default of one.
inline bool isWeight(const Node& node, const std::string& dialect) {
  return node.tensor != nullptr && node.op == "null" && !isModelInput(node, dialect);
}

inline double halfToDouble(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const double fraction = bits & 1023;
  const double size = exponent == 0    ? std::ldexp(fraction, -24)
                      : exponent == 31 ? (fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                                                        : std::numeric_limits<double>::infinity())
                                       : std::ldexp(fraction + 1024, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

/// The bits of a number in half precision, rounded to the nearest, ties to even.
inline uint16_t doubleToHalf(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::fabs(value);
  if (!(size < 65520)) return static_cast<uint16_t>(sign | (std::isnan(value) ? 0x7e00 : 0x7c00));
  int exponent = 0;
  std::frexp(size, &exponent);
  exponent = (std::max)(exponent - 11, -24);  // of the last bit
  const int bits = static_cast<int>(std::nearbyint(std::ldexp(size, -exponent)));
  return static_cast<uint16_t>(sign | (exponent == -24 ? bits : ((exponent + 24) << 10) + bits));
}

/// The bits of a number in bfloat16, rounded likewise.
inline uint16_t doubleToBfloat(double value) {
  const float number = static_cast<float>(value);
  uint32_t bits = 0;
  memcpy(&bits, &number, sizeof(bits));
  if (std::isnan(number)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

template <typename ValueType>
double elementOf(const MXTensor& tensor, std::size_t pos) {
  ValueType value;
  memcpy(&value, static_cast<const char*>(tensor.data_ptr) + pos * sizeof(value), sizeof(value));
  return static_cast<double>(value);
}

template <typename ValueType>
void setElement(MXTensor* tensor, std::size_t pos, ValueType value) {
  memcpy(static_cast<char*>(tensor->data_ptr) + pos * sizeof(value), &value, sizeof(value));
}

/// One element of a dense tensor in the machine's memory.
inline double elementAt(const MXTensor& tensor, std::size_t pos) {
  switch (tensor.dtype) {
    case kFloat32:
      return elementOf<float>(tensor, pos);
    case kFloat64:
      return elementOf<double>(tensor, pos);
    case kFloat16:
      return halfToDouble(static_cast<uint16_t>(elementOf<uint16_t>(tensor, pos)));
    case kUint8:
      return elementOf<uint8_t>(tensor, pos);
    case kInt32:
      return elementOf<int32_t>(tensor, pos);
    case kInt8:
      return elementOf<int8_t>(tensor, pos);
    case kInt64:
      return elementOf<int64_t>(tensor, pos);
    case kBool:
      return elementOf<uint8_t>(tensor, pos) != 0 ? 1 : 0;
    case kInt16:
      return elementOf<int16_t>(tensor, pos);
    case kUint16:
      return elementOf<uint16_t>(tensor, pos);
    case kUint32:
      return elementOf<uint32_t>(tensor, pos);
    case kUint64:
      return elementOf<uint64_t>(tensor, pos);
    case kBfloat16: {
      const uint32_t bits = static_cast<uint32_t>(elementOf<uint16_t>(tensor, pos)) << 16;
      float number = 0;
      memcpy(&number, &bits, sizeof(number));
      return number;
    }
    case kUNSET:
      break;
  }
  throw std::invalid_argument("the element type of a parameter is unknown");
}

inline void setElementAt(MXTensor* tensor, std::size_t pos, double value) {
  switch (tensor->dtype) {
    case kFloat32:
      return setElement(tensor, pos, static_cast<float>(value));
    case kFloat64:
      return setElement(tensor, pos, value);
    case kFloat16:
      return setElement(tensor, pos, doubleToHalf(value));
    case kUint8:
      return setElement(tensor, pos, static_cast<uint8_t>(value));
    case kInt32:
      return setElement(tensor, pos, static_cast<int32_t>(value));
    case kInt8:
      return setElement(tensor, pos, static_cast<int8_t>(value));
    case kInt64:
      return setElement(tensor, pos, static_cast<int64_t>(value));
    case kBool:
      return setElement(tensor, pos, static_cast<uint8_t>(value != 0 ? 1 : 0));
    case kInt16:
      return setElement(tensor, pos, static_cast<int16_t>(value));
    case kUint16:
      return setElement(tensor, pos, static_cast<uint16_t>(value));
    case kUint32:
      return setElement(tensor, pos, static_cast<uint32_t>(value));
    case kUint64:
      return setElement(tensor, pos, static_cast<uint64_t>(value));
    case kBfloat16:
      return setElement(tensor, pos, doubleToBfloat(value));
    case kUNSET:
      break;
  }
  throw std::invalid_argument("the element type of a new parameter is unknown");
}

/// Whether a tensor is dense, in the machine's memory, and of a known type.
inline bool isReadable(const MXTensor& tensor) {
  return tensor.data_ptr != nullptr && tensor.stype == kDefaultStorage && tensor.dtype != kUNSET &&
         tensor.ctx.dev_type.compare(0, 3, "cpu") == 0;
}

/// Gets the number in a dense tensor of one element in the machine's memory.
inline bool numberIn(const MXTensor& tensor, double* value) {
  if (!isReadable(tensor) || tensor.size() != 1) return false;
  *value = elementAt(tensor, 0);
  return true;
}

/// Whether a number is one that a pattern names, up to the precision of its type.
inline bool isNumber(double value, double wanted, MXDType type) {
  const double precision = type == kFloat16 ? 1e-3 : type == kBfloat16 ? 8e-3 : 1e-5;
  if (!std::isfinite(value) || !std::isfinite(wanted)) return value == wanted;
  return std::fabs(value - wanted) <= precision * (std::max)(std::fabs(value), std::fabs(wanted));
}

/// Adds the attributes of a node without bookkeeping such as __id__.
inline void addAttributes(const Node& node, options_map_t* attrs) {
  AttributeTexts(node.attrs)
      .visit([attrs](const JsonReader::Slice& key, const JsonReader::Slice& text) {
        const bool hidden = key.size > 4 && memcmp(key.data, "__", 2) == 0 &&
                            memcmp(key.data + key.size - 2, "__", 2) == 0;
        if (!hidden) attrs->emplace(key.str(), text.str());
      });
}

/// One item of an attribute's text without spaces and quotes; True is 1, False is 0.
inline std::string plainItem(const std::string& text, std::size_t from, std::size_t end) {
  while (from < end && strchr(" \t\n'\"", text[from]) != nullptr) ++from;
  while (from < end && strchr(" \t\n'\"", text[end - 1]) != nullptr) --end;
  std::string item = text.substr(from, end - from);
  if (item == "True" || item == "true") return "1";
  if (item == "False" || item == "false") return "0";
  if (item.size() > 1 && item.back() == 'L' && isDigit(item[item.size() - 2])) item.pop_back();
  return item;
}

inline std::vector<std::string> itemsOf(const std::string& text) {
  std::vector<std::string> items;
  const std::string whole = plainItem(text, 0, text.size());
  if (whole.size() < 2 || (whole[0] != '[' && whole[0] != '(')) {
    items.push_back(whole);
    return items;
  }
  std::size_t pos = 1;
  while (pos < whole.size()) {
    const std::size_t end = (std::min)(whole.find(',', pos), whole.size() - 1);
    items.push_back(plainItem(whole, pos, end));
    pos = end + 1;
  }
  if (!items.empty() && items.back().empty()) items.pop_back();  // "()" and "(2,)"
  items.push_back("]");                                          // a list of one is no scalar
  return items;
}

/// Whether two texts are the same attribute in the spellings of all dialects: "(1, 1)" and
/// "[1,1]", "True" and "1", "0.10" and "0.1".
inline bool sameAttribute(const std::string& one, const std::string& other) {
  if (one == other) return true;
  const std::vector<std::string> left = itemsOf(one);
  const std::vector<std::string> right = itemsOf(other);
  if (left.size() != right.size()) return false;
  for (std::size_t pos = 0; pos < left.size(); ++pos) {
    double first = 0;
    double second = 0;
    if (left[pos] == right[pos]) continue;
    if (!parseReal(left[pos], &first) || !parseReal(right[pos], &second)) return false;
    if (first != second && static_cast<float>(first) != static_cast<float>(second)) return false;
  }
  return true;
}

/// Names, by their hashes: one may seem taken that is not.
class NameTable {
 public:
  bool empty() const { return names_.size() == 0; }
  bool add(const std::string& name) { return names_.add(addressOf(name)); }
  void addAll(const std::vector<Node*>& nodes) {
    for (const Node* node : nodes) add(node->name);
  }
  /// Adds a name, or the first free one of it with a number behind.
  std::string addFree(const std::string& wanted) {
    if (add(wanted)) return wanted;
    const std::size_t known = static_cast<std::size_t>(names_.find(addressOf(wanted)));
    if (numbers_.size() <= known) numbers_.resize(known + 1);
    for (;;) {
      const std::string name = printed("%s_%d", wanted.c_str(), ++numbers_[known]);
      if (add(name)) return name;
    }
  }

 private:
  static const void* addressOf(const std::string& name) {
    return reinterpret_cast<const void*>(std::hash<std::string>()(name));
  }
  AddressTable names_;
  PlainList<int> numbers_;  // the last one of each name
};

/// The graphs of a model, while patterns are searched in it. Captured variables of nested graphs,
/// which ONNX has, get the arrays of the parameters around them that they stand for.
class NestedGraphs {
 public:
  explicit NestedGraphs(Graph* root) : dialect_(dialectOf(root)) {
    places_.push_back(Place{root, 0, nullptr});
    table_.add(root);
    for (std::size_t pos = 0; pos < places_.size(); ++pos) {
      Graph* const graph = places_[pos].graph;
      for (std::size_t nth = 0; nth < graph->nodes.size(); ++nth) {
        prefetchNode(graph->nodes, nth, &Node::subgraphs);
        Node* const node = graph->nodes[nth];
        if (node == nullptr) continue;
        has_control_ = has_control_ || !node->control_deps.empty();
        for (Graph* nested : node->subgraphs) {
          if (nested == nullptr || !table_.add(nested)) continue;
          places_.push_back(Place{nested, pos, node});
          lend(*node, nested);
        }
      }
    }
  }
  ~NestedGraphs() {
    for (Node* node : lent_) node->tensor = nullptr;
  }
  NestedGraphs(const NestedGraphs&) = delete;
  NestedGraphs& operator=(const NestedGraphs&) = delete;

  /// The number of graphs: the model first, each other graph after the one around it.
  std::size_t size() const { return places_.size(); }
  Graph* operator[](std::size_t place) const { return places_[place].graph; }
  Graph* root() const { return places_[0].graph; }
  const std::string& dialect() const { return dialect_; }
  /// Whether any node waits for another without using its results.
  bool hasControl() const { return has_control_; }
  /// Whether new parameters of a graph can be those of the model.
  bool canCapture(std::size_t place) const { return place != 0 && dialect_ == "onnx"; }

  /// A name that no graph of the model has.
  std::string freeName(const std::string& wanted) {
    for (std::size_t pos = 0; names_.empty() && pos < size(); ++pos) {
      names_.addAll(places_[pos].graph->nodes);
    }
    return names_.addFree(wanted);
  }

  /// Makes a new variable of a nested graph one that stands for a new parameter of the model.
  void capture(std::size_t place, Node* variable, const PatternHooks& hooks) {
    PlainList<std::size_t> way;  // from the variable's graph outwards
    for (std::size_t each = place; each != 0; each = places_[each].outer) way.push_back(each);
    Node* outer = addVariable(root(), variable->name, hooks);
    for (; !way.empty(); way.pop_back()) {
      const Place& nested = places_[way.back()];
      Node* inner = way.size() == 1 ? variable : addVariable(nested.graph, variable->name, hooks);
      setAttr(nested.graph, inner, "__outer__",
              takeIn(places_[nested.outer].graph, outer, nested.owner));
      outer = inner;
    }
  }

 private:
  struct Place {
    Graph* graph;
    std::size_t outer;  // the graph around it
    Node* owner;        // the node there that has the graph
  };

  /// Lends the arrays of the parameters that a nested graph takes from around it.
  void lend(const Node& owner, Graph* nested) {
    std::string outer;
    for (Node* variable : nested->nodes) {
      int64_t slot = -1;
      if (variable->op != "null" || variable->tensor != nullptr) continue;
      if (!AttributeTexts(variable->attrs).get("__outer__", &outer) || !readInteger(outer, &slot) ||
          slot < 0 || slot >= static_cast<int64_t>(owner.inputs.size())) {
        continue;
      }
      const Node& source = *owner.inputs[static_cast<std::size_t>(slot)].node;
      if (!isWeight(source, dialect_)) continue;
      variable->tensor = source.tensor;
      lent_.push_back(variable);
    }
  }

  static Node* addVariable(Graph* graph, const std::string& name, const PatternHooks& hooks) {
    if (hooks.add_node) return hooks.add_node(graph, name, "null");
    Node* node = graph->addNode(name, "null");
    graph->inputs.push_back(node);
    return node;
  }

  /// Adds a captured input to a node with nested graphs; returns its number.
  static int64_t takeIn(Graph* graph, Node* source, Node* owner) {
    const int64_t slot = static_cast<int64_t>(owner->inputs.size());
    int64_t captured = 0;
    std::string stated;
    if (AttributeTexts(owner->attrs).get("__captured_inputs__", &stated))
      readInteger(stated, &captured);
    if (!AttributeTexts(owner->attrs).has("__formal_inputs__")) {
      setAttr(graph, owner, "__formal_inputs__", slot);
    }
    setAttr(graph, owner, "__captured_inputs__", captured + 1);
    graph->connect(source, 0, owner, static_cast<int>(slot));
    return slot;
  }

  std::string dialect_;
  PlainList<Place> places_;
  GraphTable table_;
  PlainList<Node*> lent_;
  NameTable names_;
  bool has_control_ = false;
};

/// Why a place does not match. Most passes never ask: the text is made in PatternSet::why alone.
struct Refusal {
  enum Reason {
    kAbsentOnce,
    kTwoValues,
    kOtherOutput,
    kTwoNodes,
    kOtherOperator,
    kSameNode,
    kNoOutput,
    kPinned,
    kUsedElsewhere,
    kComputesOutput,
    kInputCount,
    kAbsentAtOnePlace,
    kOtherList,
    kNoAttribute,
    kOtherAttribute,
    kNoParameter,
    kNoInput,
    kAbsent,
    kOtherNumber,
    kOtherType,
    kUnknownShape,
    kOtherRank,
    kOtherShape,
    kOtherUser,
    kNoUser,
    kDependsOnResult,
    kCondition
  };
  Reason reason;
  /// The PatternOperation, PatternValue, PatternAttribute or PatternCondition that is not met.
  const void* wanted;
  NodeEntry found;
  NodeEntry other;
};

/// A graph while patterns are searched and replaced in it.
class PatternSession {
 public:
  typedef std::vector<std::shared_ptr<const PatternRule> > Rules;

  /// `place`: the graph's in the model.
  PatternSession(NestedGraphs* model, std::size_t place, const Rules& rules,
                 const PatternHooks& hooks)
      : model_(*model),
        place_(place),
        root_(*model->root()),
        graph_((*model)[place]),
        dialect_(model->dialect()),
        rules_(rules),
        hooks_(hooks),
        commutative_(commutativeOperators(dialect_)),
        table_(graph_->nodes),
        // Hosts of passlib say the dialect, and keep the attribute out of files; MXNet does not.
        with_origins_(root_.attrs.count("dialect") != 0) {
    starts_.resize(256);
    for (std::size_t pos = 0; pos < rules.size(); ++pos) indexRule(pos);
    states_.resize(graph_->nodes.size());
    heads_.resize(graph_->outputs.size());
    for (std::size_t pos = heads_.size(); pos > 0; --pos) {
      addHead(static_cast<uint32_t>(pos), graph_->outputs[pos - 1].node);
    }
  }
  std::size_t apply() {
    limit_ = 8 * graph_->nodes.size() + 1000;
    enterNodes(!several_results_ && !model_.hasControl());
    for (bool again = true; again;) {
      const std::size_t before = count_;
      while (next_ < queue_.size()) {
        Node* node = takeNext();
        State& state = stateOf(node);
        state.queued = false;
        if (!state.dead) replaceAt(node);
      }
      // The other results of a pattern with several may change without their first.
      again = count_ > before && several_results_;
      if (again) {
        for (Node* node : graph_->nodes) {
          State& state = stateOf(node);
          if (!state.dead && mayBegin(*node)) enqueue(node, &state);
        }
      }
    }
    finish();
    return count_;
  }

  void find(std::vector<FoundMatch>* found) {
    std::set<std::pair<std::size_t, std::vector<Node*> > > known;
    enterNodes(false);
    for (Node* node : queue_) {
      for (const RuleStart* start = startOf(*node); start != nullptr; start = nextStart(start)) {
        const PatternRule& rule = *rules_[start->rule];
        if (!start->isFor(node->op) || !matches(rule, node)) continue;
        std::vector<Node*> nodes = binding_.nodes;
        std::sort(nodes.begin(), nodes.end());
        if (known.insert(std::make_pair(start->rule, nodes)).second) {
          found->push_back(describe(rule, start->rule));
        }
      }
    }
  }

  std::string why(Node* node) {
    enterNodes(false);
    tracing_ = true;
    for (const auto& rule : rules_) {
      if (matches(*rule, node)) return std::string();
    }
    return refusalText();
  }

 private:
  friend class mxnet::ext::Match;

  struct State {
    double position;
    uint32_t round;      // the last replacement that reached it
    uint32_t dead_uses;  // edges to dead nodes, which stay in the list for a while
    uint32_t head;       // the first output of the graph that it computes, from 1
    bool entered : 1;    // has a position, and was looked at or is in the queue
    bool queued : 1;
    bool dead : 1;
    bool pinned : 1;  // has control dependencies
    bool named : 1;   // a created node that has the name of what it replaces
    bool given : 1;   // what replaced it has its name
  };
  struct NewNode {
    State state;
    std::vector<Node*> origin;  // the nodes that it stands for
    bool origin_written;
  };
  /// New nodes, which stay where they are when others join them.
  class NewNodes {
   public:
    NewNodes() : size_(0) {}
    NewNodes(const NewNodes&) = delete;
    NewNodes& operator=(const NewNodes&) = delete;
    ~NewNodes() {
      for (NewNode* block : blocks_) delete[] block;
    }
    std::size_t size() const { return size_; }
    NewNode& operator[](std::size_t pos) const { return blocks_[pos / kBlock][pos % kBlock]; }
    void add() {
      if (size_ % kBlock == 0) {
        blocks_.push_back(nullptr);
        blocks_.back() = new NewNode[kBlock]();
      }
      ++size_;
    }

   private:
    static const std::size_t kBlock = 64;
    PlainList<NewNode*> blocks_;  // owned
    std::size_t size_;
  };
  /// A rule at whose first result a node may be, in a list of those alike.
  struct RuleStart {
    const std::string* op;  // null: any
    std::size_t rule;
    std::size_t next;  // from 1
    bool isFor(const std::string& other) const { return op == nullptr || *op == other; }
  };
  struct StartList {
    std::size_t first;  // from 1
    std::size_t last;
  };
  struct Goal {
    int value;
    NodeEntry entry;
  };
  struct Mark {
    std::size_t trail;
    std::size_t goals;
    std::size_t attributes;
  };
  struct Exchange {
    NodeEntry from;
    NodeEntry target;
  };
  struct Reached {
    Node* node;
    int steps;
  };
  struct Placed {
    double position;
    std::size_t order;  // of nodes at one position
    Node* node;
  };

  /// Ten times what nested sums of sixteen inputs take; more is a hang that nothing ends.
  static const std::size_t kMostAttempts = 1000000;

  /// Replaces the match that begins at a node, if there is one.
  void replaceAt(Node* node) {
    if (++steps_ % 4096 == 0 && passInterrupted()) throw std::runtime_error("interrupted");
    for (const RuleStart* start = startOf(*node); start != nullptr; start = nextStart(start)) {
      if (!start->isFor(node->op)) continue;
      const PatternRule& rule = *rules_[start->rule];
      if (!hasSources(rule.pattern, *node) || !matches(rule, node) || !replaceMatch(rule)) continue;
      if (++count_ <= limit_) return;
      failCall(
          "replacing '%s' does not end, after %zu replacements: what replaces it matches again",
          rule.pattern.text.c_str(), limit_);
    }
  }

  void enqueue(Node* node, State* state) {
    state->queued = true;
    queue_.push_back(node);
  }

  Node* takeNext() {
    Node* const node = queue_[next_++];
    if (queue_.size() - next_ > 8) {
      __builtin_prefetch(&queue_[next_ + 8]->op);
      __builtin_prefetch(&queue_[next_ + 8]->inputs);
    }
    if (next_ * 2 > queue_.size() + 1024) {
      queue_.removeFirst(next_);
      next_ = 0;
    }
    return node;
  }

  /// Makes the states of the nodes of the graph in a topological order, and queues those at which a
  /// match may begin. `now`: replaces these at once, which may replace what stands before them. One
  /// walk then: large graphs do not fit into the processor's cache.
  void enterNodes(bool now) {
    for (std::size_t pos = 0; pos < states_.size(); ++pos) {
      prefetchNode(graph_->nodes, pos, &Node::op);
      Node* node = graph_->nodes[pos];
      if (followsDependencies(*node, pos)) {
        enter(node, &states_[pos], static_cast<double>(pos), now);
        continue;
      }
      for (Node* each : restoreOrder()) {
        State& state = stateOf(each);
        if (!state.entered) enter(each, &state, state.position, now);
      }
      break;
    }
    if (!model_.hasControl()) return;
    for (Node* node : graph_->nodes) {
      if (node->control_deps.empty()) continue;
      stateOf(node).pinned = true;
      for (Node* other : node->control_deps) stateOf(other).pinned = true;
    }
  }

  void enter(Node* node, State* state, double position, bool now) {
    state->entered = true;
    state->position = position;
    if (state->dead || !mayBegin(*node)) return;
    if (now) {
      replaceAt(node);
    } else {
      enqueue(node, state);
    }
  }

  /// Whether all that the node at a position needs has a state already.
  bool followsDependencies(const Node& node, std::size_t pos) {
    const std::size_t first = pos < 8 ? 0 : pos - 8;
    const std::size_t inputs = node.inputs.size();
    const std::size_t count = model_.hasControl() ? countDependencies(node) : inputs;
    for (std::size_t nth = 0; nth < count; ++nth) {
      // Most inputs are the last nodes: no need to look them up.
      std::size_t place = nth < inputs ? pos : first;
      while (place > first && graph_->nodes[place - 1] != node.inputs[nth].node) --place;
      if (place > first) continue;
      const std::size_t other = dependency(node, nth, table_);
      if (other < states_.size() && !states_[other].entered) return false;
    }
    return true;
  }

  // ---- which rules ----

  void indexRule(std::size_t pos) {
    const PatternGraph& pattern = rules_[pos]->pattern;
    const PatternOperation& root = operationOf(pattern, pattern.roots[0].value);
    for (const auto& op : root.operators) addStart(beginningOf(op.second), &op.second, pos);
    for (std::size_t each = 0; root.operators.empty() && each < 256; ++each) {
      addStart(each, nullptr, pos);
    }
    several_results_ = several_results_ || pattern.roots.size() > 1;
    for (const PatternOperation& operation : pattern.operations) {
      depth_ = (std::max)(depth_, operation.depth);
      most_uses_ = (std::max)(most_uses_, static_cast<std::size_t>(operation.uses));
      has_shared_ = has_shared_ || operation.shared;
    }
  }

  void addStart(std::size_t beginning, const std::string* op, std::size_t rule) {
    rule_starts_.push_back(RuleStart{op, rule, 0});
    StartList& list = starts_[beginning];
    (list.first == 0 ? list.first : rule_starts_[list.last - 1].next) = rule_starts_.size();
    list.last = rule_starts_.size();
  }

  /// The rules whose first result has an operator that begins alike, in their order.
  const RuleStart* startOf(const Node& node) const {
    const std::size_t first = starts_[beginningOf(node.op)].first;
    return first == 0 || node.op == "null" ? nullptr : &rule_starts_[first - 1];
  }
  const RuleStart* nextStart(const RuleStart* start) const {
    return start->next == 0 ? nullptr : &rule_starts_[start->next - 1];
  }
  bool mayBegin(const Node& node) const { return startOf(node) != nullptr; }

  static std::size_t beginningOf(const std::string& op) {
    if (op.empty()) return 0;
    return (static_cast<unsigned char>(op[0]) * 8u + op.size()) % 256u;
  }

  /// Whether the inputs of a node have the operators that a rule needs there, at whatever places:
  /// a look at few nodes spares most of the matching.
  static bool hasSources(const PatternGraph& pattern, const Node& node) {
    for (const int number : operationOf(pattern, pattern.roots[0].value).inputs) {
      const PatternValue& value = pattern.values[static_cast<std::size_t>(number)];
      if (value.operation < 0 || value.optional) continue;
      const PatternOperation& source = operationOf(pattern, number);
      bool found = source.operators.empty();
      for (std::size_t input = 0; !found && input < node.inputs.size(); ++input) {
        for (const auto& op : source.operators) {
          found = found || op.second == node.inputs[input].node->op;
        }
      }
      if (!found) return false;
    }
    return true;
  }

  static const PatternOperation& operationOf(const PatternGraph& pattern, int value) {
    return pattern.operations[static_cast<std::size_t>(
        pattern.values[static_cast<std::size_t>(value)].operation)];
  }

  // ---- matching ----

  const PatternValue& valueAt(int value) const {
    return rule_->pattern.values[static_cast<std::size_t>(value)];
  }

  /// Notes why a place does not match, if asked, and returns false.
  /// `close`: the place is at least of the kind that is wanted.
  bool refuse(Refusal::Reason reason, const void* wanted, const NodeEntry& found = NodeEntry(),
              bool close = false, const NodeEntry& other = NodeEntry()) {
    if (__builtin_expect(!tracing_, true)) return false;
    const std::size_t progress = 2 * trail_.size() + (close ? 2 : 1);
    if (progress <= best_) return false;
    best_ = progress;
    refusal_ = Refusal{reason, wanted, found, other};
    return false;
  }

  static NodeEntry entryOf(const Node& node) { return NodeEntry(const_cast<Node*>(&node), 0); }

  bool matches(const PatternRule& rule, Node* node) {
    rule_ = &rule;
    const PatternGraph& pattern = rule.pattern;
    binding_.values.assign(pattern.values.size(), NodeEntry());
    binding_.states.clear();
    binding_.states.resize(pattern.values.size());
    binding_.lists.resize(pattern.values.size());
    binding_.nodes.assign(pattern.operations.size(), nullptr);
    binding_.attributes.clear();
    trail_.clear();
    goals_.clear();
    const int first = pattern.roots[0].value;
    goals_.push_back(Goal{first, NodeEntry(node, valueAt(first).output)});
    next_root_ = 1;
    attempts_ = 0;
    return solve(0);
  }

  Mark mark() const { return Mark{trail_.size(), goals_.size(), binding_.attributes.size()}; }

  void undo(const Mark& earlier) {
    while (trail_.size() > earlier.trail) {
      const int bound = trail_.back();
      trail_.pop_back();
      if (bound < 0) {
        binding_.nodes[static_cast<std::size_t>(-bound - 1)] = nullptr;
      } else {
        binding_.states[static_cast<std::size_t>(bound)] = PatternBinding::kFree;
      }
    }
    goals_.resize(earlier.goals);
    while (binding_.attributes.size() > earlier.attributes) binding_.attributes.pop_back();
  }

  void bindValue(int value, const NodeEntry& entry, PatternBinding::State state) {
    binding_.values[static_cast<std::size_t>(value)] = entry;
    binding_.states[static_cast<std::size_t>(value)] = state;
    trail_.push_back(value);
  }

  /// Meets the goals from `pos` on, and then the other results. Recurses at most once for each
  /// value of the pattern.
  bool solve(std::size_t pos) {
    if (pos == goals_.size()) return nextRoot();
    const Goal goal = goals_[pos];
    const PatternValue& value = valueAt(goal.value);
    const PatternBinding::State state = binding_.states[static_cast<std::size_t>(goal.value)];
    if (state == PatternBinding::kAbsent) return refuse(Refusal::kAbsentOnce, &value);
    if (state == PatternBinding::kBound) {
      const NodeEntry& bound = binding_.values[static_cast<std::size_t>(goal.value)];
      if (bound == goal.entry) return solve(pos + 1);
      return refuse(Refusal::kTwoValues, &value, bound, false, goal.entry);
    }
    if (value.operation >= 0) return solveOperation(pos, goal, value);
    if (!fits(value, goal.entry)) return false;
    bindValue(goal.value, goal.entry, PatternBinding::kBound);
    return solve(pos + 1);
  }

  bool solveOperation(std::size_t pos, const Goal& goal, const PatternValue& value) {
    Node* node = goal.entry.node;
    const std::size_t number = static_cast<std::size_t>(value.operation);
    const PatternOperation& operation = rule_->pattern.operations[number];
    if (goal.entry.entry != value.output) {
      return refuse(Refusal::kOtherOutput, &operation, goal.entry, false,
                    NodeEntry(nullptr, value.output));
    }
    Node* known = binding_.nodes[number];
    if (known != nullptr) {
      if (known == node) {
        bindValue(goal.value, goal.entry, PatternBinding::kBound);
        return solve(pos + 1);
      }
      return refuse(Refusal::kTwoNodes, &operation, entryOf(*known), false, entryOf(*node));
    }
    if (!isOperation(operation, *node)) return false;
    binding_.nodes[number] = node;
    trail_.push_back(-value.operation - 1);
    bindValue(goal.value, goal.entry, PatternBinding::kBound);
    if (!matchAttributes(operation, *node)) return false;
    const std::size_t count = countInputs(*node);
    if (operation.ordered || operation.inputs.size() != count || count < 2 || count > 4 ||
        !isCommutative(*node)) {
      return pushInputs(operation, *node, count) && solve(pos + 1);
    }
    std::size_t order[4] = {0, 1, 2, 3};
    const Mark before = mark();
    do {
      if (++attempts_ > kMostAttempts) failToMatch(*node);
      for (std::size_t arg = 0; arg < count; ++arg) {
        goals_.push_back(Goal{operation.inputs[arg], node->inputs[order[arg]]});
      }
      if (solve(pos + 1)) return true;
      undo(before);
    } while (std::next_permutation(order, order + count));
    return false;
  }

  [[noreturn]] __attribute__((__cold__)) void failToMatch(const Node& node) const {
    failCall(
        "matching '%s' at '%s' (%s) takes more than %zu attempts: its operations fit with their "
        "inputs in too many orders; replace parts of it by rules of their own",
        rule_->pattern.text.c_str(), node.name.c_str(), node.op.c_str(), kMostAttempts);
  }

  /// The conditions on a node itself, before its attributes and inputs.
  bool isOperation(const PatternOperation& operation, const Node& node) {
    if (!hasOperator(operation, node)) {
      return refuse(Refusal::kOtherOperator, &operation, entryOf(node));
    }
    if (isMatched(&node)) return refuse(Refusal::kSameNode, nullptr, entryOf(node));
    if (operation.outputs > 1 && !detail::hasOutput(node, operation.outputs - 1)) {
      return refuse(Refusal::kNoOutput, &operation, entryOf(node), true);
    }
    if (operation.shared || (operation.root && !model_.hasControl())) return true;
    const State& state = stateOf(&node);
    if (state.pinned) return refuse(Refusal::kPinned, nullptr, entryOf(node), true);
    if (operation.root) return true;
    const std::size_t uses = node.outputs.size() - state.dead_uses;
    if (uses > static_cast<std::size_t>(operation.uses)) return refuseUsers(node, true);
    return state.head == 0 || refuse(Refusal::kComputesOutput, nullptr, entryOf(node), true);
  }

  /// Whether a node is one of the match.
  bool isMatched(const Node* node) const {
    for (const Node* other : binding_.nodes) {
      if (other == node) return true;
    }
    return false;
  }

  static bool hasOperator(const PatternOperation& operation, const Node& node) {
    if (operation.operators.empty()) return node.op != "null";
    for (const auto& op : operation.operators) {
      if (op.second != node.op) continue;
      JsonReader::Slice domain = {nullptr, 0};
      AttributeTexts(node.attrs).find("__domain__", 10, &domain);
      if (domain == "ai.onnx") domain.size = 0;
      if (domain == op.first.c_str()) return true;
    }
    return false;
  }

  bool isCommutative(const Node& node) const {
    return hasWord(commutative_, node.op) && !AttributeTexts(node.attrs).has("coef1") &&
           !AttributeTexts(node.attrs).has("coef2") &&
           !AttributeTexts(node.attrs).has("__domain__");
  }

  /// The number of inputs without those omitted at the end.
  static std::size_t countInputs(const Node& node) {
    std::size_t count = node.inputs.size();
    while (count > 0 && isAbsentInput(*node.inputs[count - 1].node)) --count;
    return count;
  }

  bool pushInputs(const PatternOperation& operation, const Node& node, std::size_t count) {
    const std::size_t wanted = operation.inputs.size();
    const bool variadic = operation.variadic >= 0;
    const std::size_t before = variadic ? static_cast<std::size_t>(operation.variadic) : wanted;
    const std::size_t after = variadic ? wanted - before - 1 : 0;
    if ((!variadic && count > wanted) || (variadic && after > 0 && count < before + after)) {
      return refuse(Refusal::kInputCount, &operation, entryOf(node));
    }
    for (std::size_t arg = 0; arg < before; ++arg) {
      const int value = operation.inputs[arg];
      if (arg < count && !isAbsentInput(*node.inputs[arg].node)) {
        goals_.push_back(Goal{value, node.inputs[arg]});
      } else if (!valueAt(value).optional) {
        return refuse(Refusal::kInputCount, &operation, entryOf(node));
      } else if (binding_.states[static_cast<std::size_t>(value)] == PatternBinding::kBound) {
        return refuse(Refusal::kAbsentAtOnePlace, &valueAt(value));
      } else {
        bindValue(value, NodeEntry(), PatternBinding::kAbsent);
      }
    }
    if (!variadic) return true;
    const std::size_t last = (std::max)(count - (std::min)(after, count), before);
    for (std::size_t arg = last; arg < count; ++arg) {
      goals_.push_back(Goal{operation.inputs[before + 1 + arg - last], node.inputs[arg]});
    }
    const int value = operation.inputs[before];
    std::vector<NodeEntry>& bound = binding_.lists[static_cast<std::size_t>(value)];
    const NodeEntry* const list = node.inputs.data() + before;
    const std::size_t size = last > before ? last - before : 0;
    if (binding_.states[static_cast<std::size_t>(value)] != PatternBinding::kFree) {
      if (bound.size() == size && std::equal(bound.begin(), bound.end(), list)) return true;
      return refuse(Refusal::kOtherList, &valueAt(value));
    }
    bound.assign(list, list + size);
    bindValue(value, NodeEntry(), PatternBinding::kBound);
    return true;
  }

  bool matchAttributes(const PatternOperation& operation, const Node& node) {
    std::string text;
    for (const PatternAttribute& wanted : operation.attributes) {
      if (!AttributeTexts(node.attrs).get(wanted.key.c_str(), &text)) {
        if (wanted.optional || wanted.relation == PatternAttribute::kAbsent ||
            wanted.relation == PatternAttribute::kDifferent) {
          continue;
        }
        return refuse(Refusal::kNoAttribute, &wanted, entryOf(node));
      }
      bool fits = true;
      if (wanted.relation == PatternAttribute::kBind) {
        const std::string* bound = boundAttribute(wanted.variable);
        fits = bound == nullptr || sameAttribute(*bound, text);
        if (bound == nullptr) addTexts(wanted.variable, text, &binding_.attributes);
      } else {
        bool found = false;
        for (const std::string& value : wanted.values) {
          found = found || sameAttribute(text, value);
        }
        fits = wanted.relation == PatternAttribute::kEqual && found;
        if (wanted.relation == PatternAttribute::kDifferent) fits = !found;
      }
      if (!fits) return refuse(Refusal::kOtherAttribute, &wanted, entryOf(node));
    }
    return true;
  }

  const std::string* boundAttribute(const std::string& name) const {
    for (const auto& attribute : binding_.attributes) {
      if (attribute.first == name) return &attribute.second;
    }
    return nullptr;
  }

  /// Whether a value may be an input of the pattern.
  bool fits(const PatternValue& wanted, const NodeEntry& entry) {
    const Node& node = *entry.node;
    const bool weight = isWeight(node, dialect_);
    if (wanted.kind == PatternValue::kParameter && !weight) {
      return refuse(Refusal::kNoParameter, &wanted, entry);
    }
    if (wanted.kind == PatternValue::kInput &&
        (node.op != "null" || weight || isAbsentInput(node))) {
      return refuse(Refusal::kNoInput, &wanted, entry);
    }
    if (isAbsentInput(node)) return refuse(Refusal::kAbsent, &wanted);
    if (!wanted.numbers.empty()) {
      double number = 0;
      bool found = false;
      if (numberIn(*node.tensor, &number)) {
        for (const double each : wanted.numbers) {
          found = found || isNumber(number, each, node.tensor->dtype);
        }
      }
      if (!found) return refuse(Refusal::kOtherNumber, &wanted, entry, true);
    }
    if (wanted.types != 0) {
      const MXDType type = typeOf(entry);
      if (type == kUNSET || (wanted.types >> type & 1) == 0) {
        return refuse(Refusal::kOtherType, &wanted, entry, true);
      }
    }
    return (wanted.ranks.empty() && wanted.shapes.empty()) || fitsShape(wanted, entry);
  }

  bool fitsShape(const PatternValue& wanted, const NodeEntry& entry) {
    const ValueShape found = shapeOf(entry);
    if (!found.known) return refuse(Refusal::kUnknownShape, &wanted, entry);
    const std::vector<int64_t>& sizes = found.extents;
    const int64_t rank = static_cast<int64_t>(sizes.size());
    bool fits = wanted.ranks.empty();
    for (const int64_t each : wanted.ranks) fits = fits || each == rank;
    if (!fits) return refuse(Refusal::kOtherRank, &wanted, entry, true);
    fits = wanted.shapes.empty();
    for (const int64_t* shape = wanted.shapes.data();
         !fits && shape < wanted.shapes.data() + wanted.shapes.size(); shape += 1 + shape[0]) {
      fits = shape[0] == rank;
      for (int64_t pos = 0; fits && pos < rank; ++pos) {
        fits = shape[1 + pos] < 0 || shape[1 + pos] == sizes[static_cast<std::size_t>(pos)];
      }
    }
    return fits || refuse(Refusal::kOtherShape, &wanted, entry, true);
  }

  // ---- several results, and what a match must not break ----

  bool nextRoot() {
    const std::vector<PatternRoot>& roots = rule_->pattern.roots;
    if (next_root_ == roots.size()) return accept();
    const PatternRoot& root = roots[next_root_];
    ++next_root_;
    bool found = false;
    if (root.climb.empty()) {  // another output of an operation that is known
      const PatternValue& value = valueAt(root.value);
      Node* node = binding_.nodes[static_cast<std::size_t>(value.operation)];
      found = tryRoot(root, NodeEntry(node, value.output));
    } else {
      found = climb(root, startOf(root), 0);
    }
    --next_root_;
    return found;
  }

  /// The value that a later result is searched from. Of an operation, another output may be bound.
  NodeEntry startOf(const PatternRoot& root) const {
    const PatternValue& value = valueAt(root.start);
    if (value.operation < 0) return binding_.values[static_cast<std::size_t>(root.start)];
    return NodeEntry(binding_.nodes[static_cast<std::size_t>(value.operation)], value.output);
  }

  bool tryRoot(const PatternRoot& root, const NodeEntry& entry) {
    const Mark before = mark();
    goals_.push_back(Goal{root.value, entry});
    if (solve(before.goals)) return true;
    undo(before);
    return false;
  }

  /// Tries the users of a value, and theirs, as results of the pattern.
  bool climb(const PatternRoot& root, const NodeEntry& from, std::size_t step) {
    const PatternOperation& operation =
        rule_->pattern.operations[static_cast<std::size_t>(root.climb[step])];
    const Node* last = nullptr;
    std::size_t left = hooks_.most_users;
    for (const NodeEntry& use : from.node->outputs) {
      if (use.node == last || isDead(use.node)) continue;
      const NodeEntry& input = use.node->inputs[static_cast<std::size_t>(use.entry)];
      if (input.entry != from.entry && step == 0) continue;
      if (!hasOperator(operation, *use.node)) {
        refuse(Refusal::kOtherUser, &operation, from, false, entryOf(*use.node));
        continue;
      }
      last = use.node;
      if (left-- == 0) break;
      const bool top = step + 1 == root.climb.size();
      if (top ? tryRoot(root, NodeEntry(use.node, valueAt(root.value).output))
              : climb(root, NodeEntry(use.node, 0), step + 1)) {
        return true;
      }
    }
    return refuse(Refusal::kNoUser, &operation, from);
  }

  bool isDead(const Node* node) { return stateOf(node).dead; }

  /// The last checks, when all operations have nodes.
  bool accept() {
    const PatternGraph& pattern = rule_->pattern;
    for (std::size_t pos = 0; pos < pattern.values.size(); ++pos) {
      const PatternValue& value = pattern.values[pos];
      if (value.operation < 0) continue;
      binding_.values[pos] =
          NodeEntry(binding_.nodes[static_cast<std::size_t>(value.operation)], value.output);
    }
    for (std::size_t pos = 0; pos < pattern.operations.size(); ++pos) {
      const PatternOperation& operation = pattern.operations[pos];
      if (operation.shared || operation.uses == 0) continue;
      if (!isPrivate(static_cast<int>(pos))) return false;
    }
    if (pattern.roots.size() > 1 && dependsOnResults()) {
      return refuse(Refusal::kDependsOnResult, nullptr);
    }
    Match match(this, rule_, &binding_);
    for (const PatternCondition& condition : rule_->conditions) {
      if (!condition.holds(match)) return refuse(Refusal::kCondition, &condition);
    }
    return true;
  }

  /// Whether an output of an operation is a result of the pattern.
  bool isResult(int operation, int output) const {
    for (const PatternRoot& root : rule_->pattern.roots) {
      const PatternValue& value = valueAt(root.value);
      if (value.operation == operation && value.output == output) return true;
    }
    return false;
  }

  /// Whether the outputs of an operation are used inside the match only, but for its results.
  bool isPrivate(int number) {
    const Node& node = *binding_.nodes[static_cast<std::size_t>(number)];
    for (const NodeEntry& use : node.outputs) {
      if (isDead(use.node) || isMatched(use.node)) continue;
      if (isResult(number, use.node->inputs[static_cast<std::size_t>(use.entry)].entry)) continue;
      return refuseUsers(node, false);
    }
    for (uint32_t head = stateOf(&node).head; head != 0; head = heads_[head - 1]) {
      if (isResult(number, graph_->outputs[head - 1].entry)) continue;
      return refuse(Refusal::kComputesOutput, nullptr, entryOf(node));
    }
    return true;
  }

  /// Refuses a node for its users outside the match, the last of which the reason names.
  bool refuseUsers(const Node& node, bool close) {
    NodeEntry user;
    for (std::size_t pos = tracing_ ? node.outputs.size() : 0; user.node == nullptr && pos > 0;) {
      const NodeEntry& use = node.outputs[--pos];
      if (!isDead(use.node) && !isMatched(use.node)) user = use;
    }
    return refuse(Refusal::kUsedElsewhere, nullptr, entryOf(node), close, user);
  }

  /// Whether an input of the match needs one of its operations, so that one node in their place
  /// would wait for itself.
  bool dependsOnResults() {
    for (std::size_t pos = 0; pos < rule_->pattern.values.size(); ++pos) {
      if (rule_->pattern.values[pos].operation >= 0) continue;
      if (isMatched(binding_.values[pos].node)) return true;
      for (const NodeEntry& each : binding_.lists[pos]) {
        if (isMatched(each.node)) return true;
      }
    }
    if (order_broken_) restoreOrder();
    double first = std::numeric_limits<double>::infinity();
    AddressTable seen;
    PlainList<const Node*> pending;
    for (const Node* node : binding_.nodes) {
      first = (std::min)(first, stateOf(node).position);
      for (const NodeEntry& input : node->inputs) {
        if (!isMatched(input.node) && seen.add(input.node)) pending.push_back(input.node);
      }
    }
    while (!pending.empty()) {
      const Node* node = pending.back();
      pending.pop_back();
      if (stateOf(node).position < first) continue;
      for (std::size_t pos = 0; pos < countDependencies(*node); ++pos) {
        const Node* const other = dependencyOf(*node, pos);
        if (isMatched(other)) return true;
        if (seen.add(other)) pending.push_back(other);
      }
    }
    return false;
  }

  // ---- texts ----

  static std::string nodeText(const Node& node) {
    return node.op == "null" ? printed("the variable '%s'", node.name.c_str())
                             : printed("'%s' (%s)", node.name.c_str(), node.op.c_str());
  }
  static std::string entryText(const NodeEntry& entry) {
    if (entry.node == nullptr) return "absent";
    const std::string text = nodeText(*entry.node);
    return entry.entry == 0 ? text : printed("output %d of %s", entry.entry, text.c_str());
  }
  static std::string numbersText(const std::vector<double>& numbers) {
    std::string text;
    for (const double number : numbers) {
      text += (text.empty() ? "" : " or ") + printDouble(number, 6);
    }
    return text;
  }

  std::string refusalText() const {
    if (best_ == 0) return std::string();
    // `wanted` points to one of these, or is null.
    const auto* const operation = static_cast<const PatternOperation*>(refusal_.wanted);
    const auto* const value = static_cast<const PatternValue*>(refusal_.wanted);
    const auto* const attribute = static_cast<const PatternAttribute*>(refusal_.wanted);
    const NodeEntry& found = refusal_.found;
    const NodeEntry& other = refusal_.other;
    switch (refusal_.reason) {
      case Refusal::kAbsentOnce:
        return "the optional " + quoted(value->name) + " is used twice, and absent once";
      case Refusal::kTwoValues:
        return quoted(value->name) + " is " + entryText(found) + " at one place and " +
               entryText(other) + " at another";
      case Refusal::kOtherOutput:
        return "output " + std::to_string(other.entry) + " of " + operation->text +
               " is needed, and this is " + entryText(found);
      case Refusal::kTwoNodes:
        return operation->text + " is both " + nodeText(*found.node) + " and " +
               nodeText(*other.node);
      case Refusal::kOtherOperator:
        return (operation->text == "_" ? "an operation" : operation->text) +
               " is needed, and this is " + nodeText(*found.node);
      case Refusal::kSameNode:
        return "two operations of the pattern are the same node, " + nodeText(*found.node);
      case Refusal::kNoOutput:
        return nodeText(*found.node) + " has no output " + std::to_string(operation->outputs - 1);
      case Refusal::kPinned:
        return nodeText(*found.node) + " has control dependencies";
      case Refusal::kUsedElsewhere:
        return "the result of " + nodeText(*found.node) + " has other users" +
               (other.node == nullptr ? "" : ", such as " + nodeText(*other.node)) +
               "; the pattern does not say it is shared";
      case Refusal::kComputesOutput:
        return nodeText(*found.node) + " computes an output of the graph";
      case Refusal::kInputCount:
        return nodeText(*found.node) + " has " + std::to_string(countInputs(*found.node)) +
               " inputs, and " + operation->text + " of the pattern " +
               std::to_string(operation->inputs.size());
      case Refusal::kAbsentAtOnePlace:
        return quoted(value->name) + " is absent at one place";
      case Refusal::kOtherList:
        return "*" + value->name + " is different at two places";
      case Refusal::kNoAttribute:
        return nodeText(*found.node) + " has no attribute " + quoted(attribute->key);
      case Refusal::kOtherAttribute:
        return nodeText(*found.node) + " has " + attribute->key + "=" +
               textAttr(found.node, attribute->key.c_str(), "") +
               ", which the pattern does not allow";
      case Refusal::kUnknownShape:
        return "the shape of " + entryText(found) + " is unknown";
      case Refusal::kOtherUser:
        return operation->text + " is needed as user of " + entryText(found) + ", and this is " +
               nodeText(*other.node);
      case Refusal::kNoUser:
        return entryText(found) + " has no " + operation->text + " as user that matches";
      case Refusal::kDependsOnResult:
        return "an input of the match depends on one of its results";
      case Refusal::kCondition:
        return conditionText(*static_cast<const PatternCondition*>(refusal_.wanted));
      default:
        return valueText(*value);
    }
  }

  /// Why a value may not be an input of the pattern.
  std::string valueText(const PatternValue& value) const {
    const std::string name = value.name.empty() ? "an input of the pattern" : quoted(value.name);
    const std::string found = entryText(refusal_.found);
    const Node* node = refusal_.found.node;
    double number = 0;
    switch (refusal_.reason) {
      case Refusal::kNoParameter:
        return name + " must be a parameter with known values, and is " + found;
      case Refusal::kNoInput:
        return name + " must be an input of the graph, and is " + found;
      case Refusal::kOtherNumber:
        return name + " must be the number " + numbersText(value.numbers) + ", and " + found +
               (numberIn(*node->tensor, &number)
                    ? " is " + numbersText(std::vector<double>(1, number))
                    : " has no single number");
      case Refusal::kOtherType:
        return found + " has another element type than " + name;
      case Refusal::kOtherRank:
        return found + " has rank " + std::to_string(shapeOf(refusal_.found).extents.size()) +
               ", not that of " + name;
      case Refusal::kOtherShape:
        return found + " has another shape than " + name;
      default:
        return name + " is absent";
    }
  }

  std::string conditionText(const PatternCondition& condition) const {
    std::size_t number = 0;
    for (const auto& rule : rules_) {
      for (std::size_t pos = 0; pos < rule->conditions.size(); ++pos) {
        if (&rule->conditions[pos] == &condition) number = pos + 1;
      }
    }
    return "condition " + std::to_string(number) + " is not met" +
           (condition.text.empty() ? "" : ": " + condition.text);
  }

  FoundMatch describe(const PatternRule& rule, std::size_t pos) const {
    FoundMatch found;
    found.graph = graph_;
    found.rule = pos;
    found.nodes = binding_.nodes;
    for (std::size_t value = 0; value < rule.pattern.values.size(); ++value) {
      if (rule.pattern.values[value].name.empty()) continue;
      std::vector<NodeEntry> entries;
      if (rule.pattern.values[value].variadic) {
        entries = binding_.lists[value];
      } else if (binding_.states[value] != PatternBinding::kAbsent) {
        entries.push_back(binding_.values[value]);
      }
      found.values.emplace_back(rule.pattern.values[value].name, entries);
    }
    std::sort(found.values.begin(), found.values.end(),
              [](const FoundMatch::Value& one, const FoundMatch::Value& other) {
                return one.first < other.first;
              });
    found.attributes = binding_.attributes;
    return found;
  }

  // ---- replacing ----

  State& stateOf(const Node* node) {
    const int64_t found = table_.find(node);
    const std::size_t position = found < 0 ? addNew(node) : static_cast<std::size_t>(found);
    return position < states_.size() ? states_[position]
                                     : new_nodes_[position - states_.size()].state;
  }

  std::size_t addNew(const Node* node) {
    new_nodes_.add();
    return table_.add(node);
  }

  bool isNew(const Node* node) const {
    return table_.find(node) >= static_cast<int64_t>(states_.size());
  }
  NewNode& newNode(const Node* node) const {
    return new_nodes_[static_cast<std::size_t>(table_.find(node)) - states_.size()];
  }

  /// The nodes that a node stands for; one that was there before stands for itself, too. Null:
  /// none.
  const std::vector<Node*>* originOf(const Node* node) const {
    if (isNew(node)) return &newNode(node).origin;
    const int64_t found = absorbing_.find(node);
    return found < 0 ? nullptr : &absorbers_[static_cast<std::size_t>(found)].origin;
  }

  std::size_t liveUses(const Node& node) { return node.outputs.size() - stateOf(&node).dead_uses; }

  /// Whether the graph has a value among its outputs.
  bool isHead(const NodeEntry& value) {
    uint32_t head = stateOf(value.node).head;
    while (head != 0 && graph_->outputs[head - 1].entry != value.entry) head = heads_[head - 1];
    return head != 0;
  }

  void addHead(uint32_t head, const Node* node) {
    State& state = stateOf(node);
    heads_[head - 1] = state.head;
    state.head = head;
  }

  bool isUsed(const NodeEntry& value) {
    if (isHead(value)) return true;
    for (const NodeEntry& use : value.node->outputs) {
      if (isDead(use.node)) continue;
      if (use.node->inputs[static_cast<std::size_t>(use.entry)].entry == value.entry) return true;
    }
    return false;
  }

  /// Replaces the match in `binding_`. Returns false if it is left as it is.
  bool replaceMatch(const PatternRule& rule) {
    if (!rule.rewrite && rule.replacement == nullptr) return false;
    Match match(this, &rule, &binding_);
    bool used = false;
    for (const PatternRoot& root : rule.pattern.roots) {
      used = used || isUsed(binding_.values[static_cast<std::size_t>(root.value)]);
    }
    if (!used) return false;
    const std::size_t count = graph_->nodes.size();
    if (rule.replacement != nullptr) {
      if (!instantiate(*rule.replacement, &match)) return false;
    } else {
      rule.rewrite(match);
    }
    if (graph_->nodes.size() < count) {
      throw std::logic_error(printed(
          "the rewrite of '%s' removed nodes: operations that nothing needs are removed after it",
          rule.pattern.text.c_str()));
    }
    double position = 0;
    for (const Node* node : binding_.nodes) {
      position = (std::max)(position, stateOf(node).position);
    }
    created_ = count;
    for (std::size_t pos = count; pos < graph_->nodes.size(); ++pos) {
      State& state = stateOf(graph_->nodes[pos]);
      state.entered = true;
      state.position = position;
      newNode(graph_->nodes[pos]).origin = binding_.nodes;
    }
    return commit(&match);
  }

  /// Whether the replacement in progress made a node.
  bool isCreated(const Node* node) const {
    for (std::size_t pos = created_; pos < graph_->nodes.size(); ++pos) {
      if (graph_->nodes[pos] == node) return true;
    }
    return false;
  }

  bool commit(Match* match) {
    const std::vector<PatternRoot>& roots = rule_->pattern.roots;
    PlainList<Exchange> exchanges;
    bool declined = false;
    // In the order of the pattern, whatever that of the calls: the first result gives its name.
    for (std::size_t pos = 0; pos < roots.size(); ++pos) {
      const NodeEntry from = binding_.values[static_cast<std::size_t>(roots[pos].value)];
      for (std::size_t nth = 0; nth < match->replaced_.size(); ++nth) {
        const NodeEntry& target = match->replaced_[nth].value;
        // A result that nothing uses changes nothing if there are others; the place matches again.
        if (match->replaced_[nth].root != pos || from == target ||
            (roots.size() > 1 && !isUsed(from))) {
          continue;
        }
        exchanges.push_back(Exchange{from, target});
        // Outputs of these models are named after their nodes, which must be new operators.
        declined = declined || ((dialect_ == "mxnet" || dialect_ == "nnvm") && isHead(from) &&
                                (target.node->op == "null" || !isCreated(target.node)));
      }
    }
    const std::size_t created_end = graph_->nodes.size();
    if (declined || exchanges.empty()) {
      for (std::size_t pos = created_end; pos > created_; --pos) kill(graph_->nodes[pos - 1]);
      unnamed_.clear();
      captures_.clear();
      return false;
    }
    PlainList<Node*> moved;
    for (const Exchange& exchange : exchanges) {
      if (isCreated(exchange.target.node)) describeAs(exchange.from, exchange.target);
      moveUses(exchange.from, exchange.target, &moved);
    }
    PlainList<Node*> changed;
    for (std::size_t pos = created_end; pos > created_; --pos) {
      killUnused(graph_->nodes[pos - 1], &changed);
    }
    const std::vector<Node*>& nodes = binding_.nodes;
    for (std::size_t pos = nodes.size(); pos > 0; --pos) killUnused(nodes[pos - 1], &changed);
    for (const NodeEntry& value : binding_.values) {
      if (value.node != nullptr && isWeight(*value.node, dialect_))
        killUnused(value.node, &changed);
    }
    for (const Exchange& exchange : exchanges) {
      Node* const node = exchange.target.node;
      State& former = stateOf(exchange.from.node);
      if (!isCreated(node) || !former.dead || former.given) continue;
      State& made = stateOf(node);
      if (made.named || node->op == "null") continue;  // parameters have a name
      made.named = true;
      former.given = true;  // two outputs of a node may be replaced by two nodes
      node->name = exchange.from.node->name;
    }
    for (Node* node : unnamed_) {
      if (node->name.empty() && !stateOf(node).dead) node->name = freeName(operationName(node->op));
    }
    unnamed_.clear();
    for (Node* variable : captures_) {
      if (!stateOf(variable).dead) model_.capture(place_, variable, hooks_);
    }
    captures_.clear();
    requeue(moved, changed);
    if (roots.size() > 1 && !placeCreated(moved)) order_broken_ = true;
    if (!with_origins_) return true;
    for (const Exchange& exchange : exchanges) {
      if (!isCreated(exchange.target.node)) absorb(exchange.target.node);
    }
    // The names that a new node stands for are in the cache now.
    for (std::size_t pos = created_; pos < created_end; ++pos) {
      Node* const node = graph_->nodes[pos];
      if (node->op != "null" && !stateOf(node).dead) writeOrigin(node, false);
    }
    return true;
  }

  /// An operator that replaces a result stands also for the operations that went with it.
  void absorb(Node* node) {
    if (node->op == "null" || stateOf(node).dead) return;
    if (!isNew(node) && absorbing_.add(node)) absorbers_.add();
    NewNode& absorber =
        isNew(node) ? newNode(node) : absorbers_[static_cast<std::size_t>(absorbing_.find(node))];
    for (Node* each : binding_.nodes) {
      if (each != node && stateOf(each).dead) absorber.origin.push_back(each);
    }
    absorber.origin_written = false;
  }

  /// Gives a new node of one output the inferred shape and type of the value that it replaces.
  void describeAs(const NodeEntry& from, const NodeEntry& target) {
    if (target.node->num_outputs > 1 || target.entry != 0) return;
    for (const char* key : {MX_STR_SHAPE, MX_STR_DTYPE}) {
      const std::string text = inferredEntry(from, key);
      if (!text.empty()) setAttr(graph_, target.node, key, "[" + text + "]");
    }
  }

  static const Node* dependencyOf(const Node& node, std::size_t pos) {
    return pos < node.inputs.size() ? node.inputs[pos].node
                                    : node.control_deps[pos - node.inputs.size()];
  }

  /// Puts the nodes in the place of several results behind what they need and before the nodes
  /// `moved` to them. Returns false if the order has no such place. Sorting the whole graph for
  /// each match would take quadratic time.
  bool placeCreated(const PlainList<Node*>& moved) {
    double first = std::numeric_limits<double>::infinity(), last = 0;
    for (const Node* node : binding_.nodes) {
      first = (std::min)(first, stateOf(node).position);
      last = (std::max)(last, stateOf(node).position);
    }
    double needed = 0;
    for (std::size_t at = created_; at < graph_->nodes.size(); ++at) {
      const Node& node = *graph_->nodes[at];
      for (std::size_t pos = 0; !isDead(&node) && pos < countDependencies(node); ++pos) {
        const Node* const other = dependencyOf(node, pos);
        if (!isCreated(other)) needed = (std::max)(needed, stateOf(other).position);
      }
    }
    double limit = std::numeric_limits<double>::infinity();
    for (std::size_t at = 0; at < moved.size(); ++at) {
      const Node& user = *moved[at];
      if (isDead(&user)) continue;
      const double position = stateOf(&user).position;
      for (std::size_t pos = 0; pos < countDependencies(user); ++pos) {
        const Node* const other = dependencyOf(user, pos);
        if (isCreated(other)) {
          limit = (std::min)(limit, position);
        } else if (stateOf(other).position > position) {
          return false;
        }
      }
    }
    const double position = last < limit ? last : (std::max)(first, needed);
    if (position < needed || position >= limit) return false;
    for (std::size_t at = created_; at < graph_->nodes.size(); ++at) {
      stateOf(graph_->nodes[at]).position = position;
    }
    return true;
  }

  void moveUses(const NodeEntry& from, const NodeEntry& target, PlainList<Node*>* moved) {
    std::size_t kept = 0;
    for (std::size_t pos = 0; pos < from.node->outputs.size(); ++pos) {
      const NodeEntry use = from.node->outputs[pos];
      NodeEntry* const input =
          isDead(use.node) ? nullptr : &use.node->inputs[static_cast<std::size_t>(use.entry)];
      if (input == nullptr || input->entry != from.entry || isCreated(use.node)) {
        from.node->outputs[kept++] = use;
        continue;
      }
      *input = target;
      moved->push_back(use.node);
      taken_.push_back(use);
    }
    from.node->outputs.resize(kept);
    for (const NodeEntry& use : taken_) target.node->outputs.push_back(use);
    taken_.clear();
    uint32_t head = stateOf(from.node).head;
    stateOf(from.node).head = 0;
    while (head != 0) {
      const uint32_t next = heads_[head - 1];
      NodeEntry& output = graph_->outputs[head - 1];
      if (output.entry == from.entry) output = target;
      addHead(head, output.node);
      head = next;
    }
  }

  void killUnused(Node* node, PlainList<Node*>* changed) {
    const State& state = stateOf(node);
    if (state.dead || state.pinned || state.head != 0 || liveUses(*node) > 0) return;
    for (const NodeEntry& input : node->inputs) changed->push_back(input.node);
    kill(node);
  }

  void kill(Node* node) {
    State& state = stateOf(node);
    if (state.dead) return;
    state.dead = true;
    still_used_ = still_used_ || node->outputs.size() > state.dead_uses;
    dead_.push_back(node);
    if (hooks_.remove_node) hooks_.remove_node(graph_, node);
    // Both uses of a value by one node are counted before its list is cleaned of the two.
    for (const NodeEntry& input : node->inputs) ++stateOf(input.node).dead_uses;
    for (const NodeEntry& input : node->inputs) {
      State& producer = stateOf(input.node);
      if (producer.dead_uses < 16 || producer.dead_uses * 2 < input.node->outputs.size()) continue;
      dropDeadUses(input.node);
      producer.dead_uses = 0;
    }
  }

  void dropDeadUses(Node* node) {
    std::size_t kept = 0;
    for (const NodeEntry& use : node->outputs) {
      if (!isDead(use.node)) node->outputs[kept++] = use;
    }
    node->outputs.resize(kept);
  }

  /// Queues the nodes at which a match may begin now: those that reach a changed node in as many
  /// steps as patterns have. Only nodes with few users, or shared ones, lie inside a match.
  void requeue(const PlainList<Node*>& moved, const PlainList<Node*>& changed) {
    PlainList<Reached> reached;
    for (std::size_t pos = created_; pos < graph_->nodes.size(); ++pos) {
      reached.push_back(Reached{graph_->nodes[pos], depth_ - 1});
    }
    for (Node* node : moved) reached.push_back(Reached{node, depth_ - 2});
    // Few users may be what a condition waits for; one user less of many is not.
    const std::size_t few = (std::max)(most_uses_, static_cast<std::size_t>(8));
    for (Node* node : changed) {
      if (node->op != "null")
        reached.push_back(Reached{node, liveUses(*node) > few ? 0 : depth_ - 1});
    }
    ++round_;
    for (std::size_t pos = 0; pos < reached.size(); ++pos) {
      Node* node = reached[pos].node;
      const int steps = reached[pos].steps;
      State& state = stateOf(node);
      if (state.dead || state.round == round_) continue;
      state.round = round_;
      if (state.entered && !state.queued && mayBegin(*node)) enqueue(node, &state);
      if (steps <= 0 || (liveUses(*node) > most_uses_ && !has_shared_)) continue;
      for (const NodeEntry& use : node->outputs) reached.push_back(Reached{use.node, steps - 1});
    }
  }

  /// Sorts the positions of nodes, those of new ones too; returns the nodes that are left, sorted.
  std::vector<Node*> restoreOrder() {
    std::vector<Node*> alive;
    for (Node* node : graph_->nodes) {
      if (!stateOf(node).dead) alive.push_back(node);
    }
    std::vector<Node*> order = sortNodes(alive, NodeTable(alive));
    double position = 0;
    for (const Node* node : order) stateOf(node).position = position++;
    order_broken_ = false;
    return order;
  }

  static int comparePlaced(const void* left, const void* right) {
    const Placed& first = *static_cast<const Placed*>(left);
    const Placed& second = *static_cast<const Placed*>(right);
    if (first.position < second.position) return -1;
    return second.position < first.position || second.order < first.order ? 1 : -1;
  }

  /// Removes dead nodes, writes the origins, and puts new nodes where the old ones were.
  void finish() {
    if (new_nodes_.size() == 0 && dead_.empty()) return;
    for (std::size_t pos = 0; pos < absorbers_.size(); ++pos) {
      Node* node = static_cast<Node*>(const_cast<void*>(absorbing_[pos]));
      if (!isDead(node)) writeNames(farOrigins(node), node);
    }
    // Nodes from before the first replacement have the order of their states.
    std::vector<Node*> order;
    order.reserve(graph_->nodes.size());
    PlainList<double> positions;
    positions.reserve(graph_->nodes.size());
    PlainList<Placed> late;  // from the first node on that is not behind those before it
    for (std::size_t pos = 0; pos < graph_->nodes.size(); ++pos) {
      Node* node = graph_->nodes[pos];
      const bool old = pos < states_.size();
      const State& state = old ? states_[pos] : stateOf(node);
      if (state.dead) continue;
      if (!old && with_origins_ && node->op != "null") writeOrigin(node, true);
      still_used_ = still_used_ || (!old && !node->control_deps.empty());
      if (late.empty() && (order.empty() || positions.back() <= state.position)) {
        order.push_back(node);
        positions.push_back(state.position);
      } else {
        late.push_back(Placed{state.position, pos, node});
      }
    }
    removeDead();
    if (!late.empty()) qsort(late.data(), late.size(), sizeof(Placed), &comparePlaced);
    std::size_t next = order.size();
    order.resize(next + late.size());
    for (std::size_t pos = order.size(); !late.empty();) {
      const bool is_late = next == 0 || positions[next - 1] <= late.back().position;
      order[--pos] = is_late ? late.back().node : order[--next];
      if (is_late) late.pop_back();
    }
    graph_->nodes.swap(order);
  }

  /// Removes dead nodes as Graph::removeNodes does, which would look each of them up. Leaves
  /// `nodes` of the graph as it is.
  void removeDead() {
    if (still_used_) return graph_->removeNodes(dead_);
    for (std::size_t pos = 0; pos < graph_->nodes.size(); ++pos) {
      Node* const node = graph_->nodes[pos];
      const State& state = pos < states_.size() ? states_[pos] : stateOf(node);
      if (!state.dead && state.dead_uses > 0) dropDeadUses(node);
    }
    bool variables = false;
    for (const Node* node : dead_) variables = variables || node->op == "null";
    std::size_t kept = 0;
    for (std::size_t pos = 0; variables && pos < graph_->inputs.size(); ++pos) {
      if (!isDead(graph_->inputs[pos])) graph_->inputs[kept++] = graph_->inputs[pos];
    }
    if (variables) graph_->inputs.resize(kept);
    for (Node* node : dead_) {
      node->inputs.clear();
      node->outputs.clear();
      graph_->removed_.push_back(node);
    }
  }

  /// Lists the nodes of the model before the pass that a new node stands for, at most 256.
  /// `through_new`: also through nodes that are new themselves.
  void writeOrigin(Node* node, bool through_new) {
    NewNode& made = newNode(node);
    if (made.origin_written) return;
    std::vector<std::string> names;
    bool plain = true;
    for (const Node* each : made.origin) {
      const std::vector<Node*>* const earlier = originOf(each);
      plain = plain && (earlier == nullptr || earlier->empty()) &&
              !AttributeTexts(each->attrs).has(MX_STR_ORIGIN);
    }
    if (!plain && !through_new) return;
    for (std::size_t pos = 0; plain && pos < made.origin.size() && pos < 256; ++pos) {
      names.push_back(made.origin[pos]->name);
    }
    made.origin_written = true;
    writeNames(plain ? names : farOrigins(node), node);
  }

  void writeNames(const std::vector<std::string>& names, Node* node) {
    if (names.empty()) return;
    TextBuffer text;
    appendTexts(names, &text);
    setAttr(graph_, node, MX_STR_ORIGIN, text.str());
  }

  /// The same through nodes that are new themselves, or that an earlier pass made.
  std::vector<std::string> farOrigins(const Node* node) const {
    AddressTable pending;
    pending.add(node);
    std::vector<std::string> names;
    for (std::size_t pos = 0; pos < pending.size() && names.size() < 256; ++pos) {
      const Node* const next = static_cast<const Node*>(pending[pos]);
      if (const std::vector<Node*>* origin = originOf(next)) {
        for (const Node* each : *origin) pending.add(each);
      }
      if (!isNew(next)) appendOrigins(*next, false, &names);
    }
    return names;
  }

  // ---- new nodes ----

  std::string freeName(const std::string& wanted) {
    if (names_.empty()) names_.addAll(graph_->nodes);
    return names_.addFree(wanted);
  }

  Node* addNode(const std::string& name, const std::string& op) {
    if (hooks_.add_node) return hooks_.add_node(graph_, name, op);
    Node* node = graph_->addNode(name, op);
    if (op == "null") graph_->inputs.push_back(node);
    return node;
  }

  Node* addParameter(const std::string& suffix) {
    const std::string wanted = resultName() + "_" + suffix;
    if (!model_.canCapture(place_)) return addNode(freeName(wanted), "null");
    captures_.push_back(addNode(model_.freeName(wanted), "null"));
    return captures_.back();
  }

  NodeEntry absentInput() {
    for (Node* node : graph_->inputs) {
      if (isAbsentInput(*node) && !stateOf(node).dead) return NodeEntry(node, 0);
    }
    if (dialect_ != "onnx") {
      throw std::invalid_argument(
          printed("an input before others is absent, which %s cannot express", dialect_.c_str()));
    }
    return NodeEntry(addNode("__absent__", "null"), 0);
  }

  /// The name of a new operation: that of the result with the operator behind.
  std::string operationName(const std::string& op) const {
    std::string name = resultName() + "_" + op;
    for (std::size_t pos = name.size() - op.size(); pos < name.size(); ++pos) {
      if (name[pos] >= 'A' && name[pos] <= 'Z')
        name[pos] = static_cast<char>(name[pos] - 'A' + 'a');
    }
    return name;
  }

  /// Takes `attrs`. `named`: has a name at once; otherwise after the replacement, if no result's
  /// becomes its own.
  Node* addOperation(const std::string& domain, const std::string& op,
                     const std::vector<NodeEntry>& inputs, options_map_t* attrs, int outputs,
                     bool named) {
    if (op.empty() || outputs < 1)
      throw std::invalid_argument("a new operation needs an operator and outputs");
    std::size_t count = inputs.size();
    while (count > 0 && inputs[count - 1].node == nullptr) --count;
    PlainList<NodeEntry> entries;
    for (std::size_t pos = 0; pos < count; ++pos) {
      entries.push_back(inputs[pos].node == nullptr ? absentInput() : inputs[pos]);
    }
    Node* node = addNode(named ? freeName(operationName(op)) : std::string(), op);
    if (!named) unnamed_.push_back(node);
    node->attrs = std::move(*attrs);
    if (!domain.empty()) setAttr(graph_, node, "__domain__", domain);
    detail::declareOutputs(node, outputs);
    for (const NodeEntry& input : entries) {
      const std::size_t slot = node->inputs.size();
      graph_->connect(input.node, input.entry, node, static_cast<int>(slot));
      node->inputs[slot].version = input.version;
    }
    return node;
  }

  const std::string& resultName() const {
    const PatternGraph& pattern = rule_->pattern;
    const int owner = pattern.values[static_cast<std::size_t>(pattern.roots[0].value)].operation;
    return binding_.nodes[static_cast<std::size_t>(owner)]->name;
  }

  /// Makes the operations of a replacement's text.
  /// Returns false if it needs the number of a parameter that has no single one.
  bool instantiate(const PatternGraph& replacement, Match* match) {
    double number = 0;
    for (const PatternOperation& operation : replacement.operations) {
      for (const PatternAttribute& attribute : operation.attributes) {
        if (attribute.relation == PatternAttribute::kNumber &&
            !match->number(attribute.variable, &number)) {
          return false;
        }
      }
    }
    PlainList<Node*> made;
    const auto entry_of = [&](int position) {
      const PatternValue& value = replacement.values[static_cast<std::size_t>(position)];
      if (value.operation >= 0)
        return NodeEntry(made[static_cast<std::size_t>(value.operation)], value.output);
      const std::size_t outer = static_cast<std::size_t>(value.outer);
      return binding_.states[outer] == PatternBinding::kAbsent ? NodeEntry()
                                                               : binding_.values[outer];
    };
    for (const PatternOperation& operation : replacement.operations) {
      std::vector<NodeEntry> inputs;
      for (const int input : operation.inputs) {
        const PatternValue& value = replacement.values[static_cast<std::size_t>(input)];
        if (value.variadic) {
          const std::size_t outer = static_cast<std::size_t>(value.outer);
          for (const NodeEntry& each : binding_.lists[outer]) inputs.push_back(each);
        } else {
          inputs.push_back(entry_of(input));
        }
      }
      options_map_t attrs;
      setAttributes(operation, *match, &attrs);
      const auto& op = operation.operators[0];
      made.push_back(addOperation(op.first, op.second, inputs, &attrs, operation.outputs,
                                  static_cast<bool>(hooks_.add_node)));
    }
    for (std::size_t root = 0; root < replacement.results.size(); ++root) {
      const NodeEntry target = entry_of(replacement.results[root]);
      // An absent input replaces nothing.
      if (target.node != nullptr) match->replaced_.push_back(Match::Replaced{root, target});
    }
    return true;
  }

  /// The text of a number, kept for the next layer: printing takes as long as a replacement.
  const std::string& numberText(double number) {
    if (!(number == last_number_)) {
      last_number_ = number;
      last_number_text_ = shortestText(static_cast<float>(number));
    }
    return last_number_text_;
  }

  void setAttributes(const PatternOperation& operation, const Match& match, options_map_t* attrs) {
    for (const PatternAttribute& attribute : operation.attributes) {
      if (attribute.relation == PatternAttribute::kSpread) {
        addAttributes(*match.node(attribute.variable), attrs);
      }
    }
    for (const PatternAttribute& attribute : operation.attributes) {
      double number = 0;
      const std::string* text = nullptr;
      if (attribute.relation == PatternAttribute::kEqual) text = &attribute.values[0];
      if (attribute.relation == PatternAttribute::kBind) text = boundAttribute(attribute.variable);
      if (attribute.relation == PatternAttribute::kNumber) {
        match.number(attribute.variable, &number);
        text = &numberText(number);
      }
      if (text != nullptr) (*attrs)[attribute.key] = *text;
    }
  }

  NestedGraphs& model_;
  const std::size_t place_;
  const Graph& root_;
  Graph* const graph_;
  const std::string& dialect_;
  const Rules& rules_;
  const PatternHooks& hooks_;
  const char* const commutative_;
  PlainList<RuleStart> rule_starts_;
  PlainList<StartList> starts_;  // of rules, by the beginnings of operators
  int depth_ = 1;
  std::size_t most_uses_ = 1;
  bool has_shared_ = false;
  bool several_results_ = false;

  NodeTable table_;            // the nodes before the first replacement, then new ones
  PlainList<State> states_;    // of the former
  NewNodes new_nodes_;         // the latter
  PlainList<uint32_t> heads_;  // the next output of the graph of the same node, from 1
  PlainList<Node*> queue_;
  std::size_t next_ = 0;  // in the queue
  std::vector<Node*> dead_;
  bool still_used_ = false;  // a dead node has a user, or is waited for
  bool with_origins_;
  AddressTable absorbing_;  // nodes from before that stand for others, which replace their results
  NewNodes absorbers_;      // these
  NameTable names_;
  std::size_t created_ = 0;     // the nodes of the replacement in progress begin here
  PlainList<Node*> unnamed_;    // new operations without a name
  PlainList<Node*> captures_;   // new parameters of a nested graph
  PlainList<NodeEntry> taken_;  // uses that move to another value
  double last_number_ = 0;
  std::string last_number_text_ = "0";
  std::size_t steps_ = 0;
  std::size_t count_ = 0;  // replacements
  std::size_t limit_ = 0;
  uint32_t round_ = 0;
  bool order_broken_ = false;

  const PatternRule* rule_ = nullptr;
  PatternBinding binding_;
  PlainList<int> trail_;  // bound values, and operations as -1 - number
  PlainList<Goal> goals_;
  std::size_t next_root_ = 1;
  std::size_t attempts_ = 0;  // orders of inputs that the match in progress has tried
  bool tracing_ = false;
  std::size_t best_ = 0;
  Refusal refusal_ = Refusal();
};

/// The set that patterns join when they are made, while a pass declares its patterns.
inline PatternSet*& openPatterns() {
  static PatternSet* open = nullptr;
  return open;
}

}  // namespace detail

// ---- patterns: matches -------------------------------------------------------------------------

inline Graph* Match::graph() const { return session_->graph_; }

inline int Match::valueOf(const std::string& name) const {
  const int found = rule_->pattern.find(name);
  if (found < 0) {
    throw std::out_of_range(detail::printed("the pattern '%s' has no value '%s'",
                                            rule_->pattern.text.c_str(), name.c_str()));
  }
  return found;
}

inline bool Match::has(const std::string& name) const {
  if (!name.empty() && name[0] == '$') return session_->boundAttribute(name.substr(1)) != nullptr;
  return binding_->states[static_cast<std::size_t>(valueOf(name))] !=
         detail::PatternBinding::kAbsent;
}

inline NodeEntry Match::operator[](const std::string& name) const {
  const NodeEntry entry = binding_->values[static_cast<std::size_t>(valueOf(name))];
  if (entry.node == nullptr) {
    throw std::out_of_range(
        detail::printed("'%s' is absent from this match, or variadic", name.c_str()));
  }
  return entry;
}

inline bool Match::isList(const std::string& name) const {
  return rule_->pattern.values[static_cast<std::size_t>(valueOf(name))].variadic;
}

inline const std::vector<NodeEntry>& Match::list(const std::string& name) const {
  return binding_->lists[static_cast<std::size_t>(valueOf(name))];
}

inline std::vector<NodeEntry> Match::results() const {
  std::vector<NodeEntry> entries;
  for (const detail::PatternRoot& root : rule_->pattern.roots) {
    entries.push_back(binding_->values[static_cast<std::size_t>(root.value)]);
  }
  return entries;
}

inline std::string Match::attr(const std::string& name) const {
  if (!rule_->pattern.binds(name)) {
    throw std::out_of_range(detail::printed("the pattern '%s' binds no attribute $%s",
                                            rule_->pattern.text.c_str(), name.c_str()));
  }
  const std::string* text = session_->boundAttribute(name);
  return text == nullptr ? std::string() : *text;
}

inline std::vector<int64_t> Match::integers(const std::string& name) const {
  const std::string text = attr(name);
  std::vector<std::string> items;
  bool valid =
      !text.empty() && (text[0] == '[' || text[0] == '(') && detail::readList(text, &items);
  std::vector<int64_t> numbers(items.size());
  for (std::size_t pos = 0; valid && pos < items.size(); ++pos) {
    valid = detail::readInteger(items[pos], &numbers[pos]);
  }
  if (valid) return numbers;
  throw std::invalid_argument("the attribute $" + name + " is no list of whole numbers: " + text);
}

inline std::unordered_map<std::string, std::string> Match::attributes(
    const std::string& name) const {
  std::unordered_map<std::string, std::string> attrs;
  detail::addAttributes(*node(name), &attrs);
  return attrs;
}

inline const OptionValues& Match::options() const {
  if (session_->hooks_.options == nullptr) {
    throw std::logic_error("the pattern " + detail::quoted(rule_->pattern.text) +
                           " is used without options, which a PATTERN_PASS declares");
  }
  return *session_->hooks_.options;
}

inline int64_t Match::operatorSet(const std::string& domain) const {
  const GraphAttributes& attrs = session_->root_.attrs;
  const auto sets = attrs.find("opset_import");
  if (sets == attrs.end() || sets->second.type != MAP) return 0;
  for (const auto& set : sets->second.map) {
    const std::string& name = set.first.str;
    int64_t version = 0;
    if (name != domain && !(domain.empty() && name == "ai.onnx")) continue;
    if (set.second.toInteger(&version)) return version;
  }
  return 0;
}

inline std::string listText(const std::vector<int64_t>& numbers) {
  std::string text = "[";
  for (std::size_t pos = 0; pos < numbers.size(); ++pos) {
    text += (pos == 0 ? "" : ", ") + std::to_string(numbers[pos]);
  }
  return text + "]";
}

inline bool Match::shape(const std::string& name, std::vector<int64_t>* sizes) const {
  const ValueShape found = shapeOf((*this)[name]);
  *sizes = found.extents;
  return found.known;
}

inline int Match::rank(const std::string& name) const {
  std::vector<int64_t> sizes;
  return shape(name, &sizes) ? static_cast<int>(sizes.size()) : -1;
}

inline MXDType Match::type(const std::string& name) const { return typeOf((*this)[name]); }

inline bool Match::broadcasts(const std::string& from, const std::string& target) const {
  std::vector<int64_t> given;
  std::vector<int64_t> whole;
  if (!shape(from, &given)) return false;
  if (given.empty()) return true;
  if (!shape(target, &whole) || given.size() > whole.size()) return false;
  for (std::size_t pos = 0; pos < given.size(); ++pos) {
    const int64_t size = given[pos];
    if (size != 1 && (size < 0 || size != whole[whole.size() - given.size() + pos])) return false;
  }
  return true;
}

inline bool Match::isParameter(const std::string& name) const {
  return detail::isWeight(*(*this)[name].node, session_->dialect_);
}

inline const MXTensor& Match::tensor(const std::string& name) const {
  const Node* node = (*this)[name].node;
  if (!isParameter(name)) {
    throw std::out_of_range(detail::printed("'%s' is no parameter with known values, but '%s'",
                                            name.c_str(), node->name.c_str()));
  }
  return *node->tensor;
}

inline bool Match::number(const std::string& name, double* value) const {
  return isParameter(name) && detail::numberIn(*(*this)[name].node->tensor, value);
}

inline std::vector<double> Match::numbers(const std::string& name) const {
  const MXTensor& array = tensor(name);
  if (!detail::isReadable(array)) {
    throw std::out_of_range(detail::quoted(name) + " is not dense, or not in the machine's memory");
  }
  std::vector<double> values(static_cast<std::size_t>(array.size()));
  for (std::size_t pos = 0; pos < values.size(); ++pos) values[pos] = detail::elementAt(array, pos);
  return values;
}

inline NodeEntry Match::op(const std::string& op, const std::vector<NodeEntry>& inputs,
                           const std::unordered_map<std::string, std::string>& attrs,
                           int num_outputs) {
  const std::size_t colons = op.find("::");
  const bool plain = colons == std::string::npos;
  options_map_t copy(attrs);
  return NodeEntry(
      session_->addOperation(plain ? std::string() : op.substr(0, colons),
                             plain ? op : op.substr(colons + 2), inputs, &copy, num_outputs, true),
      0);
}

inline Node* Match::variable(const std::string& suffix) {
  return session_->addNode(session_->freeName(session_->resultName() + "_" + suffix), "null");
}

inline Node* Match::parameterVariable(const std::string& suffix) {
  return session_->addParameter(suffix);
}

inline Node* Match::parameter(const std::string& suffix, const std::vector<int64_t>& shape,
                              MXDType dtype) {
  Node* node = parameterVariable(suffix);
  node->alloc_arg(shape, MXContext::CPU(0), dtype);
  return node;
}

inline NodeEntry Match::parameter(const std::string& suffix, const std::vector<int64_t>& shape,
                                  MXDType dtype, const std::vector<double>& values) {
  Node* node = parameter(suffix, shape, dtype);
  if (node->tensor->size() != static_cast<int64_t>(values.size())) {
    throw std::invalid_argument("a parameter of shape " + listText(shape) + " has not " +
                                std::to_string(values.size()) + " values");
  }
  for (std::size_t pos = 0; pos < values.size(); ++pos) {
    detail::setElementAt(node->tensor, pos, values[pos]);
  }
  return NodeEntry(node, 0);
}

inline void Match::replace(const std::string& name, const NodeEntry& value) {
  const int root = valueOf(name);
  const std::vector<detail::PatternRoot>& roots = rule_->pattern.roots;
  for (std::size_t pos = 0; pos < roots.size(); ++pos) {
    if (roots[pos].value == root) return replaceAt(pos, value);
  }
  throw std::invalid_argument(detail::printed("'%s' is no result of the pattern", name.c_str()));
}

inline void Match::replace(const NodeEntry& value) {
  if (rule_->pattern.roots.size() != 1) {
    throw std::invalid_argument("the pattern has several results: name the one to replace");
  }
  replaceAt(0, value);
}

inline void Match::replaceAt(std::size_t position, const NodeEntry& value) {
  if (value.node == nullptr)
    throw std::invalid_argument("a result is replaced by a value, not by nothing");
  if (position >= rule_->pattern.roots.size())
    throw std::out_of_range("the pattern has no result of this number");
  replaced_.push_back(Replaced{position, value});
}

// ---- patterns: sets ----------------------------------------------------------------------------

inline Pattern::Pattern(const std::string& text) : rule_(new detail::PatternRule()) {
  detail::PatternParser(text, nullptr, &rule_->pattern).parse();
  if (detail::openPatterns() != nullptr) detail::openPatterns()->add(*this);
}

inline Pattern& Pattern::where(std::function<bool(const Match&)> condition,
                               const std::string& reason) {
  rule_->conditions.push_back(detail::PatternCondition{reason, std::move(condition)});
  return *this;
}

inline Pattern& Pattern::replace(const std::string& text) {
  std::unique_ptr<detail::PatternGraph> made(new detail::PatternGraph());
  detail::PatternParser(text, &rule_->pattern, made.get()).parse();
  rule_->replacement = std::move(made);
  return *this;
}

inline Pattern& Pattern::rewrite(std::function<void(Match&)> function) {
  rule_->rewrite = std::move(function);
  return *this;
}

inline PatternSet::PatternSet(const std::function<void()>& fill) {
  struct Opened {
    explicit Opened(PatternSet* set) : before(detail::openPatterns()) {
      detail::openPatterns() = set;
    }
    ~Opened() { detail::openPatterns() = before; }
    PatternSet* before;
  } opened(this);
  fill();
}

inline std::size_t PatternSet::apply(Graph* graph, const PatternHooks& hooks) const {
  detail::NestedGraphs model(graph);
  std::size_t count = 0;
  for (std::size_t place = 0; place < model.size(); ++place) {
    count += detail::PatternSession(&model, place, rules_, hooks).apply();
  }
  return count;
}

inline std::vector<FoundMatch> PatternSet::find(Graph* graph) const {
  const PatternHooks hooks;
  std::vector<FoundMatch> found;
  detail::NestedGraphs model(graph);
  for (std::size_t place = 0; place < model.size(); ++place) {
    detail::PatternSession(&model, place, rules_, hooks).find(&found);
  }
  return found;
}

inline bool PatternSet::needsShapes() const {
  for (const auto& rule : rules_) {
    if (!rule->conditions.empty() || rule->rewrite) return true;
    for (const detail::PatternValue& value : rule->pattern.values) {
      if (value.kind == detail::PatternValue::kParameter) continue;
      if (!value.ranks.empty() || value.types != 0 || !value.shapes.empty()) return true;
    }
  }
  return false;
}

inline std::string PatternSet::why(Graph* graph, Node* node) const {
  const PatternHooks hooks;
  std::string reason = "the node is not in the graph";
  detail::NestedGraphs model(graph);
  for (std::size_t place = 0; place < model.size(); ++place) {
    const std::vector<Node*>& nodes = model[place]->nodes;
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) continue;
    reason = detail::PatternSession(&model, place, rules_, hooks).why(node);
  }
  return reason;
}

namespace detail {

/// The patterns of a PATTERN_PASS, compiled when the library is loaded.
class PatternPass {
 public:
  /// Registers the pass. `facts`: the description, then the dialects.
  __attribute__((__cold__)) PatternPass(const char* name, void (*fill)(CustomPass&),
                                        typedPass_t body, const std::vector<std::string>& facts)
      : dialects_(facts.begin() + (facts.empty() ? 0 : 1), facts.end()) {
    CustomPass& pass = Registry<CustomPass>::get()->add(name);
    pass.setBody(body).dialects(dialects_).entersFunctions();
    if (!facts.empty()) pass.describe(facts[0].c_str());
    try {
      patterns_ = PatternSet([fill, &pass]() { fill(pass); });
    } catch (const std::exception& error) {
      error_ = "pass " + quoted(name) + ": " + textOf(error);
      loadErrors() += (loadErrors().empty() ? "" : "\n") + error_;
    }
    pass.needsShapes(patterns_.needsShapes());
  }

  MXReturnValue run(Graph* graph, const OptionValues& options) const {
    if (!error_.empty()) throw std::runtime_error(error_);
    // MXNet ignores what passes declare.
    const std::string dialect = dialectOf(graph);
    if (!dialects_.empty() &&
        std::find(dialects_.begin(), dialects_.end(), dialect) == dialects_.end()) {
      throw std::invalid_argument("its patterns are not for models of " + dialect);
    }
    PatternHooks hooks;
    hooks.options = &options;
    patterns_.apply(graph, hooks);
    return MX_SUCCESS;
  }

 private:
  std::vector<std::string> dialects_;
  PatternSet patterns_;
  std::string error_;
};

}  // namespace detail

}  // namespace passlib_api
}  // namespace ext
}  // namespace mxnet

#pragma GCC visibility pop

#endif  // MX_LIBRARY_VERSION
#endif  // MXNET_LIB_PATTERNS_H_
