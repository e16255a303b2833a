// Names of a list that are asked for in its order.
#ifndef PASSLIB_ONNX_READING_NAME_INDEX_H_
#define PASSLIB_ONNX_READING_NAME_INDEX_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "graph/name_map.h"
#include "onnx/wire/fields.h"

namespace passlib::onnx {

/// Finds places of names in a list. Those that are asked for in the order of the list, or of a few
/// parts of it in turn, as most are, need no search; the table for others is made when it is
/// needed.
class NameIndex {
 public:
  static constexpr std::size_t kNone = SIZE_MAX;

  explicit NameIndex(std::vector<Bytes> names = {}) : names_(std::move(names)) {}

  /// Returns the first place of a name, or kNone.
  std::size_t find(Bytes name) {
    for (std::size_t which = 0; which < kParts; ++which) {
      const std::size_t next = next_[which];
      const std::size_t end = std::min(next + kNear, names_.size());
      for (std::size_t at = next > 0 ? next - 1 : 0; at < end; ++at) {
        if (sameText(names_[at], name)) return found(at, which);
      }
    }
    if (table_.empty() && searches_ < kSearches) {
      ++searches_;
      for (std::size_t at = 0; at < names_.size(); ++at) {
        if (sameText(names_[at], name)) return found(at, kParts - 1);
      }
      return kNone;
    }
    if (table_.empty()) {
      table_ = NameMap<std::size_t>(names_.size());
      for (std::size_t i = 0; i < names_.size(); ++i) table_.insert(names_[i], i);
    }
    const std::size_t* const place = table_.find(name);
    return place == nullptr ? kNone : found(*place, kParts - 1);
  }

 private:
  /// How many names after the last one found are compared, and in how many parts.
  static constexpr std::size_t kNear = 8, kParts = 3;

  /// How many names are searched for before it takes less to make a table.
  static constexpr std::size_t kSearches = 16;

  /// Notes that a name was found in a part, which becomes the first one.
  std::size_t found(std::size_t at, std::size_t which) {
    for (; which > 0; --which) next_[which] = next_[which - 1];
    next_[0] = at + 1;
    return at;
  }

  std::vector<Bytes> names_;
  NameMap<std::size_t> table_;
  std::size_t searches_ = 0;
  std::size_t next_[kParts] = {};  ///< the part that was used last comes first
};

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_READING_NAME_INDEX_H_
