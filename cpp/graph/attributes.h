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
  if (!mxnet::ext::host::AttributeTexts(node.attrs).find(key.data(), key.size(), &text)) return {};
  return text.size == 0 ? std::string_view("") : std::string_view(text.data, text.size);
}

/// Calls visit(key, text) for each attribute, in no fixed order.
template <typename Visit>
void forEachAttribute(const Node& node, Visit visit) {
  using Slice = mxnet::ext::JsonReader::Slice;
  mxnet::ext::host::AttributeTexts(node.attrs).visit([&visit](const Slice& key, const Slice& text) {
    visit(std::string_view(key.data, key.size), std::string_view(text.data, text.size));
  });
}

/// Returns keys and texts of all attributes in turn, if they lie packed; a null view otherwise.
inline std::string_view packedTexts(const Node& node) {
  std::size_t words = 0;
  const uint32_t* const packed = mxnet::ext::host::AttributeTexts(node.attrs).packed(&words);
  if (packed == nullptr) return {};
  return {reinterpret_cast<const char*>(packed + 2 + 2 * packed[0]), packed[1]};
}

/// Replaces the attributes by those whose keys `keep` accepts, and one more if `key` is not null.
template <typename Keep>
void repackAttributes(Node* node, Keep keep, std::string_view key = {},
                      std::string_view text = {}) {
  std::vector<std::pair<std::string, std::string>> pairs;
  forEachAttribute(*node, [&](std::string_view name, std::string_view present) {
    if (keep(name)) pairs.emplace_back(name, present);
  });
  if (key.data() != nullptr) pairs.emplace_back(key, text);
  mxnet::ext::host::AttributeTexts::pack(pairs.data(), pairs.size(), &node->attrs);
}

inline void setAttribute(Node* node, std::string_view key, std::string_view text) {
  repackAttributes(node, [key](std::string_view name) { return name != key; }, key, text);
}

/// Adds an attribute, unless there is one of this key.
inline void addAttribute(Node* node, std::string_view key, std::string_view text) {
  if (attributeOf(*node, key).data() == nullptr) setAttribute(node, key, text);
}

inline void dropAttributes(Node* node, const std::vector<std::string>& keys) {
  const auto drops = [&keys](std::string_view name) {
    return std::find(keys.begin(), keys.end(), name) != keys.end();
  };
  bool present = false;
  forEachAttribute(*node, [&](std::string_view name, auto) { present = present || drops(name); });
  if (present) repackAttributes(node, [&drops](std::string_view name) { return !drops(name); });
}

/// Whether an operator is one of ONNX's own domain.
inline bool isOwnDomain(const Node& node) {
  const std::string_view domain = attributeOf(node, "__domain__");
  return domain.empty() || domain == "ai.onnx";
}

/// The operator of a node, with its domain unless that is ONNX's own.
inline std::string fullOperator(const Node& node) {
  if (isOwnDomain(node)) return node.op;
  return std::string(attributeOf(node, "__domain__")) + "." + node.op;
}

/// Whether a file that omits a key omits an attribute: without origins there are no rules either.
inline bool isOmitted(std::string_view key, std::string_view omitted) {
  return key == omitted || (key == MX_STR_RULES && omitted == MX_STR_ORIGIN);
}

/// Whether two nodes have the same attributes, those of one key left out.
inline bool sameAttributesBut(std::string_view key, const Node& left, const Node& right) {
  const auto found = [&](const Node& node) {
    return !key.empty() && attributeOf(node, key).data() != nullptr ? 1 : 0;
  };
  if (left.attrs.size() == right.attrs.size() && left.attrs == right.attrs) return true;
  const int in_left = found(left);
  const int in_right = found(right);
  if (in_left + in_right == 0 || left.attrs.size() - static_cast<std::size_t>(in_left) !=
                                     right.attrs.size() - static_cast<std::size_t>(in_right)) {
    return false;
  }
  bool same = true;
  forEachAttribute(left, [&](std::string_view name, std::string_view text) {
    if (!same || name == key) return;
    const std::string_view other = attributeOf(right, name);
    same = other.data() != nullptr && other == text;
  });
  return same;
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

/// Operator and attributes of a node as one text. Two nodes for which they are the same may have
/// two texts, if one of them has a table of attributes.
inline std::string kindOf(const Node& node) {
  std::string kind = node.op;
  std::size_t words = 0;
  if (const uint32_t* packed = mxnet::ext::host::AttributeTexts(node.attrs).packed(&words)) {
    const auto* bytes = reinterpret_cast<const char*>(packed);
    return (kind += '\0').append(bytes, words * sizeof(uint32_t));
  }
  const auto append = [&kind](std::string_view text) {
    (kind += '\0') += std::to_string(text.size()) += '\0';
    kind += text;
  };
  for (const auto& [key, text] : sortedAttributes(node)) {
    append(key);
    append(text);
  }
  return kind;
}

}  // namespace passlib

#endif  // PASSLIB_GRAPH_ATTRIBUTES_H_
