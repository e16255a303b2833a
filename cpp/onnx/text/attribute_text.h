// Attributes of nodes as text for passes to read.
#ifndef PASSLIB_ONNX_TEXT_ATTRIBUTE_TEXT_H_
#define PASSLIB_ONNX_TEXT_ATTRIBUTE_TEXT_H_

#include <cstddef>
#include <string>

#include "onnx/parts/attribute.h"

namespace passlib::onnx {

/// Returns the value of an attribute as text: `3`, `[1, 2]`, `0.1`; strings as they are, lists of
/// strings as JSON; tensors and types as JSON objects; `subgraph[0]` for a graph; a summary of long
/// texts and lists.
///
/// `node` is the identifier of the node: a value that is not spelled out is referred to by
/// `<node>/<name>`. The preceding attributes of the node have `graphs_before` nested graphs, this
/// one has `graphs`.
std::string attributeText(const Attribute& attribute, const std::string& node,
                          std::size_t graphs_before, std::size_t graphs, Arena* arena);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_TEXT_ATTRIBUTE_TEXT_H_
