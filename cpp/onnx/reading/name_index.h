// Names of a list that are asked for in its order.
#ifndef PASSLIB_ONNX_READING_NAME_INDEX_H_
#define PASSLIB_ONNX_READING_NAME_INDEX_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "onnx/reading/name_map.h"

namespace passlib::onnx {

/// Finds places of names in a list. Those that are asked for in the order of the list, as most are,
/// need no search; the table for others is made when it is needed.
class NameIndex {
 public:
  static constexpr std::size_t kNone = SIZE_MAX;

  explicit NameIndex(std::vector<Bytes> names = {}) : names_(std::move(names)) {}

  /// Returns the first place of a name, or kNone.
  std::size_t find(Bytes name) {
    const std::size_t end = std::min(next_ + kNear, names_.size());
    for (std::size_t at = next_ > 0 ? next_ - 1 : 0; at < end; ++at) {
      if (sameText(names_[at], name)) return found(at);
    }
    if (table_.empty()) {
      table_ = NameMap<std::size_t>(names_.size());
      for (std::size_t i = 0; i < names_.size(); ++i) table_.insert(names_[i], i);
    }
    const std::size_t* const place = table_.find(name);
    return place == nullptr ? kNone : found(*place);
  }

 private:
  /// How many names after the last one found are compared.
  static constexpr std::size_t kNear = 3;

  std::size_t found(std::size_t at) {
    next_ = at + 1;
    return at;
  }

  std::vector<Bytes> names_;
  NameMap<std::size_t> table_;
  std::size_t next_ = 0;
};

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_READING_NAME_INDEX_H_
