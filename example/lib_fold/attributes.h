// Reading attributes of nodes, and the two kinds of failure.
#ifndef FOLD_ATTRIBUTES_H_
#define FOLD_ATTRIBUTES_H_

#include "lib_api.h"

namespace fold {

using namespace mxnet::ext;

/// The reason why a BatchNorm is not folded. The graph is sound, but not of the required form.
class LeftAlone : public std::runtime_error {
 public:
  explicit LeftAlone(const std::string& reason) : std::runtime_error(reason) {}
};

/// An error in the graph.
class Inconsistent : public std::runtime_error {
 public:
  Inconsistent(const Node& node, const std::string& what)
      : std::runtime_error(node.op + " '" + node.name + "' " + what) {}
};

inline const std::string* findAttribute(const Node& node, const char* key) {
  const auto found = node.attrs.find(key);
  return found == node.attrs.end() ? nullptr : &found->second;
}

inline bool isTrue(const std::string& text) {
  return text == "True" || text == "true" || text == "1";
}

inline bool boolAttribute(const Node& node, const char* key, bool preset) {
  const std::string* text = findAttribute(node, key);
  return text == nullptr ? preset : isTrue(*text);
}

template <typename Number>
inline Number numberAttribute(const Node& node, const char* key, Number preset) {
  const std::string* text = findAttribute(node, key);
  if (text == nullptr) return preset;
  std::istringstream stream(*text);
  stream.imbue(std::locale::classic());  // the file format has no decimal comma
  Number value;
  if (!(stream >> value) || stream.peek() != std::istringstream::traits_type::eof()) {
    throw Inconsistent(node, std::string("has ") + key + "=" + *text + ", which is no number");
  }
  return value;
}

}  // namespace fold

#endif  // FOLD_ATTRIBUTES_H_
