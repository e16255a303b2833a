// Options of passes.
#ifndef PASSES_OPTIONS_H_
#define PASSES_OPTIONS_H_

#include <stdexcept>
#include <string>

#include "lib_api.h"

namespace passes {

using namespace mxnet::ext;

/// Reads a boolean option: True, true and 1, or False, false and 0; false if absent. Throws
/// std::invalid_argument for anything else.
inline bool flag(const options_map_t& options, const std::string& name) {
  const auto found = options.find(name);
  if (found == options.end()) return false;
  const std::string& text = found->second;
  if (text == "True" || text == "true" || text == "1") return true;
  if (text == "False" || text == "false" || text == "0") return false;
  throw std::invalid_argument("option " + name + " is True or False, not '" + text + "'");
}

/// Rejects unknown options, since a misspelled one must not count as absent.
inline void requireKnown(const options_map_t& options,
                         std::initializer_list<const char*> known_names) {
  for (const auto& option : options) {
    std::string names;
    bool known = false;
    for (const char* name : known_names) {
      known = known || option.first == name;
      names += std::string(names.empty() ? "" : ", ") + name;
    }
    if (!known) {
      throw std::invalid_argument("there is no option '" + option.first + "'; there is " + names);
    }
  }
}

}  // namespace passes

#endif  // PASSES_OPTIONS_H_
