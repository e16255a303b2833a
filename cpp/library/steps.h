// Pipelines: sequences of passes as text.
#ifndef PASSLIB_LIBRARY_STEPS_H_
#define PASSLIB_LIBRARY_STEPS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "errors.h"
#include "header.h"

namespace passlib {

/// A text is no pipeline. what() has the place and what was expected there; `offset` is in
/// characters.
struct StepsError : FormatError {
  using FormatError::FormatError;
};

/// One pass with its options, or steps that are carried out until they change nothing, but at most
/// `times` times.
struct Step {
  std::string name;
  std::vector<std::pair<std::string, std::string>> options;
  std::size_t place = 0;                   ///< in the text, in characters
  std::vector<std::size_t> option_places;  ///< the same of each option
  int times = 0;                           ///< 0 for a pass
  std::vector<Step> steps;
};

/// How a host treats texts.
struct StepsHost {
  /// Accept halves of surrogate pairs, as Python's strings have them: in three bytes each.
  bool accepts_halves = false;
  /// Returns a text as messages show it.
  std::string (*shown)(const std::string& text) = &mxnet::ext::host::quoted;
};

/// Reads `removeDeadNodes, fold{level=2, axes=[0, 1]}, repeat<4>(a, b)`. Names and values that are
/// no plain words stand in double quotes, as JSON strings. Throws StepsError.
std::vector<Step> readSteps(const std::string& text, const StepsHost& host = StepsHost());

/// The text of steps, which `readSteps` reads back as equal ones.
std::string printSteps(const std::vector<Step>& steps);

/// The text of a list, as the value of an option.
std::string printList(const std::vector<std::string>& items);

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_STEPS_H_
