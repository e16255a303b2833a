// Pairs of texts as two arrays.
#ifndef PASSLIB_LIBRARY_TEXT_COLUMNS_H_
#define PASSLIB_LIBRARY_TEXT_COLUMNS_H_

#include <vector>

namespace passlib {

/// Options or attributes as the entry points take them: keys and values. Refers to the strings of
/// the pairs, which must outlive it.
class TextColumns {
 public:
  template <typename Pairs>
  explicit TextColumns(const Pairs& pairs) {
    for (const auto& [key, value] : pairs) {
      keys_.push_back(key.c_str());
      values_.push_back(value.c_str());
    }
  }
  const char* const* keys() const { return keys_.data(); }
  const char* const* values() const { return values_.data(); }
  int count() const { return static_cast<int>(keys_.size()); }

 private:
  std::vector<const char*> keys_;
  std::vector<const char*> values_;
};

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_TEXT_COLUMNS_H_
