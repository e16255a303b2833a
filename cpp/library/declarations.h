// Declarations of passes, and checks of options against them.
#ifndef PASSLIB_LIBRARY_DECLARATIONS_H_
#define PASSLIB_LIBRARY_DECLARATIONS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "header.h"

namespace passlib {

class Library;

/// An option that a pass declares. Numbers are texts.
struct OptionDeclaration {
  std::string name;
  std::string kind;  ///< "boolean", "integer", "real" or "text"
  bool is_list = false;
  std::string default_text;  ///< as pipelines spell it
  std::string description;
  std::vector<std::string> choices;
  std::string low;   ///< the least number, or ""
  std::string high;  ///< the greatest one, or ""

  /// The accepted values in words.
  std::string typeText() const;
  /// Returns a value, given as text, as a library gets it. Throws std::invalid_argument.
  std::string checked(const std::string& text) const;
};

/// A pass as it describes itself.
struct Declaration {
  std::string name;
  std::string description;
  std::vector<std::string> dialects;  ///< empty for all
  std::vector<OptionDeclaration> options;
  bool declared = false;  ///< whether it declares anything; else it takes any options
  bool any_options = false;
  bool needs_weights = true;
  bool weights_on_demand = false;
  bool needs_shapes = true;
  bool exact = false;
  bool enters_functions = false;
  /// Options that hold in the bodies of local functions, whatever is asked for.
  std::vector<std::pair<std::string, std::string>> in_functions;
  std::vector<std::string> triggers;   ///< operators without one of which it changes no graph
  std::vector<std::string> pipelines;  ///< that it joins
  std::string after;                   ///< the pass of the pipelines behind which it runs
  /// The options that the pipelines set, and further ones where results may change by rounding.
  std::vector<std::pair<std::string, std::string>> joined;
  std::vector<std::pair<std::string, std::string>> rounding;
  std::string cost;  ///< what its time grows with: "nodes", "weights" or "runs"

  /// Whether it works on models of a dialect.
  bool isFor(const std::string& dialect) const;
  /// Returns options, given as text, as a library gets them. Throws std::invalid_argument, with
  /// the number of the option in `place` if it concerns one.
  std::vector<std::pair<std::string, std::string>> checked(
      const std::vector<std::pair<std::string, std::string>>& given, std::size_t* place) const;
};

/// The texts in checked options of a name that is a list.
std::vector<std::string> listedIn(const std::vector<std::pair<std::string, std::string>>& options,
                                  const std::string& name);

/// Reads declarations in the form of `_passlibDeclarations` in lib_api.h. Throws FormatError if
/// they contradict that form or themselves; the message names the place.
std::vector<Declaration> readDeclarations(const mxnet::ext::JsonVal& value);

/// Reads what the passes of a library declare. Throws FormatError, for declarations of other passes
/// too.
std::vector<Declaration> declarationsOf(const Library& library);

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_DECLARATIONS_H_
