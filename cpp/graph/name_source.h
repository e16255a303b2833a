// Names that nothing else in a graph has.
#ifndef PASSLIB_GRAPH_NAME_SOURCE_H_
#define PASSLIB_GRAPH_NAME_SOURCE_H_

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

#include "graph/name_map.h"
#include "graph/text_table.h"

namespace passlib {

/// A set of names, with one piece of memory for many of them: a graph has as many as nodes.
class UsedNames {
 public:
  UsedNames() = default;
  UsedNames(const UsedNames&) = delete;
  UsedNames& operator=(const UsedNames&) = delete;
  bool has(std::string_view name) const {
    const bool* const found = used_.find(name);
    return found != nullptr && *found;
  }
  /// Returns whether the name is new.
  bool insert(std::string_view name) {
    bool* found = used_.find(name);
    if (found == nullptr) found = used_.insert(kept(name), false).first;
    return !std::exchange(*found, true);
  }
  void erase(std::string_view name) {
    bool* const found = used_.find(name);
    if (found != nullptr) *found = false;
  }
  void clear() {
    used_ = NameMap<bool>();
    texts_.clear();
  }

 private:
  std::string_view kept(std::string_view name) {
    constexpr std::size_t kPiece = 1 << 15;
    if (texts_.empty() || texts_.back().capacity() - texts_.back().size() < name.size()) {
      texts_.emplace_back().reserve(std::max(name.size(), kPiece));
    }
    std::string& piece = texts_.back();
    piece.append(name);
    return std::string_view(piece).substr(piece.size() - name.size());
  }

  NameMap<bool> used_;
  std::deque<std::string> texts_;  ///< none of which ever grows beyond its capacity
};

/// Generates names that are not in use yet, in constant time each on average.
class NameSource {
 public:
  void use(const std::string& name) { used_.insert(name); }

  /// Claims a name: `wish` itself if it is free, or `wish` followed by a number.
  std::string fresh(const std::string& wish) {
    std::string name = wish;
    int& count = counts_[wish];
    while (!used_.insert(name)) name = wish + "_" + std::to_string(++count);
    return name;
  }

 private:
  UsedNames used_;
  TextMap<int> counts_;
};

}  // namespace passlib

#endif  // PASSLIB_GRAPH_NAME_SOURCE_H_
