// Conditions and attribute values of rules: their values for a match.
#ifndef PASSLIB_RULES_TERMS_H_
#define PASSLIB_RULES_TERMS_H_

#include <optional>
#include <string>
#include <vector>

#include "rules/known.h"
#include "rules/reading.h"

namespace passlib::rules {

/// The value of a term. A condition is kTruth; only what is known to be true lets a rule apply.
struct Value {
  enum Kind { kUnknown, kTruth, kInteger, kReal, kText, kType, kList, kNumbers, kEntry, kEntries };
  Kind kind = kUnknown;
  bool truth = false;
  Dim integer;
  double real = 0;
  int type = 0;
  std::string text;             ///< of kText; of kUnknown: which fact is missing
  std::vector<Value> list;      ///< kList
  std::vector<double> numbers;  ///< kNumbers: elements of a constant
  bool truths = false;          ///< kNumbers: they are results of comparisons
  std::vector<mxnet::ext::NodeEntry> entries;

  static Value unknown(const std::string& missing);
  static Value of(bool truth);
  static Value of(const Dim& integer);
  static Value of(int64_t integer) { return of(Dim(integer)); }
  static Value of(double real);
  static Value of(const std::string& text);
  static Value ofType(int type);
  static Value of(const std::vector<Dim>& integers);
  static Value of(std::vector<Value> list);

  bool known() const { return kind != kUnknown; }
  bool isTrue() const { return kind == kTruth && truth; }
  /// The number, if it is a known whole one.
  std::optional<int64_t> number() const;
  /// The list, if it has known whole numbers only.
  std::optional<std::vector<int64_t>> integers() const;
  /// Whether it is a known number, or a list of them.
  bool isNumeric() const;
  /// As text of an attribute; nothing for what is no attribute, such as open sizes
  /// and infinity.
  std::optional<std::string> attribute() const;
  std::string described() const;  ///< for messages
};

/// The most items of a list.
constexpr std::size_t kMostItems = 4096;
/// The most elements of a constant that a condition looks at.
constexpr std::size_t kMostElements = std::size_t{1} << 24;

/// The elements of what is known of a value; `name` is that of the value, for messages.
Value contentOf(const Known& known, const std::string& name);

/// A value as the text of an attribute states it: 3, 0.1, [1, 2], text.
Value attributeValue(const std::string& text);

/// Whether two values are known to be equal; reals as float32, which attributes have.
bool areEqual(const Value& left, const Value& right);

/// The values of the names of a term.
class Scope {
 public:
  virtual ~Scope() = default;
  /// Gets the values of a name of the pattern: several of a variadic one, none if it is absent.
  /// Returns false if the pattern has no such name.
  virtual bool entries(const std::string& name,
                       std::vector<mxnet::ext::NodeEntry>* found) const = 0;
  virtual Value attribute(const std::string& name) const = 0;
  /// Gets the value of a definition.
  virtual bool definition(const std::string& name, Value* found) const = 0;
  virtual Known known(const mxnet::ext::NodeEntry& entry) const = 0;
  virtual int64_t operatorSet(const std::string& domain) const = 0;
  virtual bool isOutput(const mxnet::ext::NodeEntry& entry) const = 0;
  /// Counts the inputs that take a value. Returns false if there are too many to look through.
  virtual bool users(const mxnet::ext::NodeEntry& entry, std::size_t* count,
                     bool* captured) const = 0;
};

Value evaluate(const Term& term, const Scope& scope);

/// A function of terms, for the check of rules and for docs/rules.md.
struct Function {
  const char* name;
  const char* arguments;
  const char* meaning;
  std::size_t least;
  std::size_t most;
  Value (*call)(const Scope& scope, const Term& term);
};
const std::vector<Function>& functions();
const Function* functionNamed(const std::string& name);

/// Whether each number of a type is one of another, equal after the conversion.
bool isLossless(int from, int target);

/// A dimension list as text for messages: [2, n].
std::string shapeText(const std::vector<Dim>& shape);

}  // namespace passlib::rules

#endif  // PASSLIB_RULES_TERMS_H_
