// Attributes of nodes as they lie in memory: no table is made for who only reads.

#ifndef PASSLIB_GRAPH_ATTRIBUTES_H_
#define PASSLIB_GRAPH_ATTRIBUTES_H_

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace passlib {

/// Returns the text of an attribute; a null view if the node has none of this key. Valid until the
/// attributes change.
inline std::string_view attributeOf(const Node& node, std::string_view key) {
  mxnet::ext::JsonReader::Slice text{nullptr, 0};
  if (!node.attrs._find(key.data(), key.size(), &text)) return {};
  return text.size == 0 ? std::string_view("") : std::string_view(text.data, text.size);
}

/// Calls visit(key, text) for each attribute, in no fixed order.
template <typename Visit>
void forEachAttribute(const Node& node, Visit visit) {
  using Slice = mxnet::ext::JsonReader::Slice;
  node.attrs._visit([&visit](const Slice& key, const Slice& text) {
    visit(std::string_view(key.data, key.size), std::string_view(text.data, text.size));
  });
}

/// Adds an attribute, unless there is one of this key.
inline void addAttribute(Node* node, std::string_view key, std::string_view text) {
  if (attributeOf(*node, key).data() != nullptr) return;
  std::vector<std::pair<std::string, std::string>> pairs;
  forEachAttribute(*node, [&pairs](std::string_view name, std::string_view present) {
    pairs.emplace_back(name, present);
  });
  pairs.emplace_back(key, text);
  node->attrs._pack(pairs.data(), pairs.size());
}

using AttributeView = std::pair<std::string_view, std::string_view>;

/// Returns keys and texts, sorted by key.
inline std::vector<AttributeView> sortedAttributes(const Node& node) {
  std::vector<AttributeView> list;
  list.reserve(node.attrs.size());
  forEachAttribute(node,
                   [&list](const auto& key, const auto& text) { list.emplace_back(key, text); });
  std::sort(list.begin(), list.end());
  return list;
}

}  // namespace passlib

#endif  // PASSLIB_GRAPH_ATTRIBUTES_H_
