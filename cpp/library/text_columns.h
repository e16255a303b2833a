// Pairs of texts as two arrays.
#ifndef PASSLIB_LIBRARY_TEXT_COLUMNS_H_
#define PASSLIB_LIBRARY_TEXT_COLUMNS_H_

#include <string>
#include <vector>

#include "errors.h"

namespace passlib {

/// Options or attributes as the entry points take them: keys and values. Refers to the strings of
/// the pairs, which must outlive it. Throws UnsupportedError for a text with a NUL byte.
class TextColumns {
 public:
  template <typename Pairs>
  explicit TextColumns(const Pairs& pairs) {
    for (const auto& [key, value] : pairs) {
      refuseNul("the name of an option or attribute", key, key);
      refuseNul("the option or attribute", key, value);
      keys_.push_back(key.c_str());
      values_.push_back(value.c_str());
    }
  }
  const char* const* keys() const { return keys_.data(); }
  const char* const* values() const { return values_.data(); }
  int count() const { return static_cast<int>(keys_.size()); }

 private:
  static void refuseNul(const std::string& what, const std::string& key, const std::string& text) {
    if (text.find('\0') == std::string::npos) return;
    throw UnsupportedError(what + " '" + key.substr(0, key.find('\0')) +
                           "' has a NUL byte in it, at which texts end that are passed to a "
                           "library: remove or replace it");
  }

  std::vector<const char*> keys_;
  std::vector<const char*> values_;
};

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_TEXT_COLUMNS_H_
