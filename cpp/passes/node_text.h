// Nodes as text: nodes with equal text are interchangeable.
#ifndef PASSES_NODE_TEXT_H_
#define PASSES_NODE_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "lib_api.h"

namespace passes {

using namespace mxnet::ext;

/// Concatenates pieces with their lengths, so that different lists of pieces give different text.
class NodeText {
 public:
  void add(std::string_view piece);
  void addNumber(std::size_t number);
  /// Adds all attributes, sorted, except those about the origin or name of a node.
  void addAttributes(const Node& node);
  /// Adds element type and shape of a dense tensor.
  void addType(const MXTensor& tensor);
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
