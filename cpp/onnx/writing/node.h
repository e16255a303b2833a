// Nodes of a graph as messages: those that did not change are the ones of the file.
#ifndef PASSLIB_ONNX_WRITING_NODE_H_
#define PASSLIB_ONNX_WRITING_NODE_H_

#include <set>
#include <string>
#include <vector>

#include "onnx/writing/attributes.h"

namespace passlib::onnx {

/// The names of a node and of its values, as they will be in the file.
struct NodeNames {
  Bytes title;
  std::vector<Bytes> inputs;
  std::vector<Bytes> outputs;
};

/// Writes nodes.
class NodeWriter {
 public:
  NodeWriter(const Originals& originals, WriteHost* host, Arena* arena)
      : originals_(originals), host_(host), arena_(*arena) {}

  /// Returns the message of a node: that of the file itself if nothing differs. `original` is the
  /// operator of the file or null. Throws GraphError, UnsupportedError, and what the host throws.
  Bytes write(const Node& node, const Original* original, const NodeNames& names,
              const NestedWriter& nested);

  /// The operator sets that changed nodes need.
  std::set<std::string> domains;

 private:
  const Originals& originals_;
  WriteHost* host_;
  Arena& arena_;
};

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_WRITING_NODE_H_
