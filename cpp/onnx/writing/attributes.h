// Attributes of a node as messages: those that did not change are the ones of the file.
#ifndef PASSLIB_ONNX_WRITING_ATTRIBUTES_H_
#define PASSLIB_ONNX_WRITING_ATTRIBUTES_H_

#include <functional>
#include <string>
#include <vector>

#include "onnx/writing/host.h"

namespace passlib::onnx {

/// A nested graph as it is written.
struct NestedGraph {
  Bytes message;
  bool same = false;  ///< it is that of the file
};

/// Writes a nested graph of a node: its number, that of the file or null, and the place in the
/// written node, such as `body` or `branches[1]`.
using NestedWriter = std::function<NestedGraph(std::size_t number, const OriginalGraph* original,
                                               const std::string& place)>;

struct WrittenAttribute {
  Bytes name;
  Bytes message;
};

struct WrittenAttributes {
  std::vector<WrittenAttribute> list;
  bool changed = false;  ///< any of them is not the one of the file
};

/// Writes the attributes of a node; `original` is the operator of the file or null. Throws
/// GraphError, UnsupportedError, and what the host throws.
WrittenAttributes writeAttributes(const Node& node, const Original* original,
                                  const Originals& originals, const NestedWriter& nested,
                                  WriteHost* host, Arena* arena);

/// Whether the name of an attribute is that of passlib or of a pass: `__mark__`.
bool isOwnName(Bytes key);
/// Whether it is that of passlib.
bool isReservedName(Bytes key);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_WRITING_ATTRIBUTES_H_
