// Pipelines: sequences of passes as text.
#ifndef PASSLIB_LIBRARY_STEPS_H_
#define PASSLIB_LIBRARY_STEPS_H_

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace passlib {

/// A text is no pipeline. what() has the place and what was expected there.
struct StepsError : std::runtime_error {
  StepsError(const std::string& what, std::size_t place)
      : std::runtime_error(what), offset(place) {}
  std::size_t offset;  ///< in characters
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

/// Reads `removeDeadNodes, fold{level=2, axes=[0, 1]}, repeat<4>(a, b)`. Names and values that are
/// no plain words stand in double quotes, as JSON strings. Throws StepsError.
std::vector<Step> readSteps(const std::string& text);

/// The number of characters before a byte of a text in UTF-8.
std::size_t charactersBefore(std::string_view text, std::size_t byte);

/// The text of steps, which `readSteps` reads back as equal ones.
std::string printSteps(const std::vector<Step>& steps);

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_STEPS_H_
