// Tables by texts that come from files.
#ifndef PASSLIB_GRAPH_TEXT_TABLE_H_
#define PASSLIB_GRAPH_TEXT_TABLE_H_

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "graph/text_hash.h"
#include "header.h"

namespace passlib {

/// Names in a file can be chosen so that std::hash gives all of them the same place, which costs
/// quadratic time. The hash of these differs from process to process.
template <typename Value>
using TextMap = std::unordered_map<std::string, Value, TextHash>;
using TextSet = std::unordered_set<std::string, TextHash>;

/// The same for texts that stay where they are meanwhile.
template <typename Value>
using TextViewMap = std::unordered_map<std::string_view, Value, TextHash>;
using TextViewSet = std::unordered_set<std::string_view, TextHash>;

/// A number for a text, quickly: for small tables of texts of which a graph has few, where texts of
/// one number take turns.
inline unsigned quickNumber(const std::string& text) {
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text.front());
  const auto last = static_cast<unsigned char>(text.back());
  return static_cast<unsigned>(text.size()) * 31 + first * 7u + last;
}

}  // namespace passlib

#endif  // PASSLIB_GRAPH_TEXT_TABLE_H_
