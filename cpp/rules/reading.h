// Rules in text: what docs/rules.md describes, read into structs.
#ifndef PASSLIB_RULES_READING_H_
#define PASSLIB_RULES_READING_H_

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace passlib::rules {

/// A text of rules is not well-formed. The message names file, line and column.
struct RuleError : std::runtime_error {
  RuleError(const std::string& what, std::size_t error_line, std::size_t error_column)
      : std::runtime_error(what), line(error_line), column(error_column) {}
  std::size_t line;    ///< from 1
  std::size_t column;  ///< in bytes, from 1
};

/// A value of attributes and shapes, or a condition on them.
struct Term {
  enum Kind {
    kInteger,
    kReal,
    kText,
    kName,       ///< of a value, a definition, a type; true and false
    kAttribute,  ///< $name
    kStarred,    ///< *name
    kList,       ///< [a, b]
    kChoice,     ///< (a, b), after `in`
    kCall,       ///< name(a, b)
    kOperator,   ///< and or not = != < <= > >= in near + - * / negative index
  };
  Kind kind = kName;
  std::string text;  ///< of a name, function or operator
  int64_t integer = 0;
  double real = 0;
  std::vector<Term> children;
  std::size_t place = 0;  ///< in the text of all rules
  std::size_t end = 0;
  int depth = 1;  ///< levels of it, at most 64
};

/// An attribute of an operation: a comparison on the left side, a value on the right side.
struct Setting {
  enum Relation { kEqual, kDifferent, kAbsent, kBind, kSpread };
  std::string key;
  Relation relation = kEqual;
  bool optional = false;
  std::vector<std::string> texts;  ///< left side: one of these
  std::string name;                ///< kBind: after $; kSpread: after *
  Term term;                       ///< right side
  std::size_t place = 0;
};

/// An operation, a value, or a constant.
struct Expression {
  enum Kind { kOperation, kName, kNumber, kConstructor };
  Kind kind = kName;
  /// The name; of an operation its operators, "Relu" or "com.microsoft::Gelu"; on the right side
  /// "@y" for that of y.
  std::vector<std::string> names;
  bool shared = false;
  bool starred = false;
  bool optional = false;
  std::string constraint;  ///< ":param[rank=1]"; in an example ": float[2, n]"
  int output = -1;
  double number = 0;
  std::vector<Setting> settings;
  std::vector<Expression> inputs;
  std::vector<Term> terms;               ///< of a constructor
  std::vector<Expression> alternatives;  ///< what else the left side may have here
  std::size_t place = 0;
};

struct Statement {
  std::vector<std::string> targets;  ///< none: unnamed
  std::size_t optional = 0;          ///< left side: so many of the last ones may be absent
  Expression expression;
  std::size_t place = 0;
};

struct Definition {
  std::string name;  ///< empty: a condition
  Term term;
};

/// An example of a rule: models before and after as statements.
struct Example {
  std::vector<Statement> before;
  std::vector<Statement> after;
  std::string text;
};

struct OperatorSet {
  std::string domain;  ///< empty: ONNX's own
  int64_t first = 1;
  int64_t last = 0;  ///< 0: any later one
};

struct Rule {
  std::string name;
  std::string sentence;
  std::string group;
  std::string text;  ///< all of it
  std::vector<OperatorSet> sets;
  std::vector<Statement> left;
  std::vector<Definition> where;
  std::vector<Statement> right;
  bool exact = false;
  bool enables = false;
  bool drops_check = false;
  std::vector<std::string> lowers;  ///< nodes, bytes, flops, traffic
  std::vector<std::string> breaks;  ///< names of fusions
  std::string target;
  std::vector<Example> examples;
  std::size_t place = 0;
  std::size_t line = 0;
};

/// Place of a byte in a text.
struct Location {
  std::size_t line;
  std::size_t column;
};
Location locationOf(const std::string& text, std::size_t place);

/// Throws a RuleError at a place of a text.
[[noreturn]] void failAt(const std::string& file, const std::string& text, std::size_t place,
                         const std::string& message);

/// Reads a text of rules. `file` is its name for messages. Throws RuleError.
std::vector<Rule> readRules(const std::string& text, const std::string& file);

/// Element types by their names in ONNX, "float"; also short ones, "f32". Returns 0 for others.
int typeNamed(const std::string& name);
/// Their names, by code.
const char* typeName(int code);

}  // namespace passlib::rules

#endif  // PASSLIB_RULES_READING_H_
