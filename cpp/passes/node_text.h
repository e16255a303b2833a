// A node as text: two nodes have the same text if one may stand for the other.
#ifndef PASSES_NODE_TEXT_H_
#define PASSES_NODE_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "lib_api.h"

namespace passes {

using namespace mxnet::ext;

/// Collects pieces of which each says how long it is, so that no two lists of pieces look alike.
class NodeText {
 public:
  void add(const std::string& piece);
  void addNumber(std::size_t number);
  /// All attributes, in order, but for those that say where a node comes from or what it is called.
  void addAttributes(const Node& node);
  /// Element type and shape of a dense tensor, and a hash of its bytes.
  void addTensor(const MXTensor& tensor);
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

/// The bytes of a dense tensor.
std::string_view bytesOf(const MXTensor& tensor);

/// Whether the bytes of a tensor can be read here: dense, on the CPU, of a known type.
bool isDense(const MXTensor* tensor);

}  // namespace passes

#endif  // PASSES_NODE_TEXT_H_
