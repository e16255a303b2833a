// The left side of a rule as patterns for one operator set.
#ifndef PASSLIB_RULES_COMPILED_H_
#define PASSLIB_RULES_COMPILED_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rules/reading.h"
#include "rules/terms.h"

namespace passlib::rules {

/// An attribute of an operation of the pattern, which may be an input of it, or have its default.
struct Source {
  std::size_t operation = 0;  ///< by the order in which they end in the text
  std::string key;
  const Setting* setting = nullptr;
};

/// A number of the pattern: a constant of one element, which may have axes.
struct Number {
  std::size_t operation = 0;  ///< that takes it
  std::string name;
};

/// A pattern of a rule: one for each choice of alternatives.
struct Alternative {
  std::string text;                            ///< in the pattern language
  std::vector<std::size_t> places;             ///< of each byte of it in the text of all rules
  std::map<std::string, std::string> aliases;  ///< names of statements that are other names here
  std::vector<std::string> names;
  std::vector<std::vector<Source>> variables;  ///< sources of $names: of each all
  std::vector<std::string> variable_names;
  std::vector<Number> numbers;
  std::vector<Source> checks;  ///< attributes to compare that the pattern language does not
};

/// Returns the patterns of a rule. Throws RuleError.
std::vector<Alternative> compileLeft(const Rule& rule, const std::string& text,
                                     const std::string& file, int64_t opset);

/// Whether a rule is for models of these operator sets; `opset` is the version of ONNX's own.
bool isFor(const Rule& rule, const std::map<std::string, int64_t>& sets);

/// Checks the names of conditions and of the right side. Throws RuleError.
void checkRight(const Rule& rule, const std::vector<Alternative>& patterns, const std::string& text,
                const std::string& file);

}  // namespace passlib::rules

#endif  // PASSLIB_RULES_COMPILED_H_
