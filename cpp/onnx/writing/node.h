// Nodes of a graph as messages: those that did not change are the ones of the file.
#ifndef PASSLIB_ONNX_WRITING_NODE_H_
#define PASSLIB_ONNX_WRITING_NODE_H_

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "onnx/wire/output.h"
#include "onnx/writing/attributes.h"

namespace passlib::onnx {

/// The names of a node and of its values, as they will be in the file.
struct NodeNames {
  Bytes title;
  std::vector<Bytes> inputs;
  std::vector<Bytes> outputs;
};

/// A node as it will be in the file.
struct WrittenNode {
  Bytes message;         ///< without the ends of long lists if it is one of `NodeWriter::whole`
  bool same_attributes;  ///< operator, attributes and nested graphs are those of the file
  bool same_operator;    ///< operator and attributes are
};

/// Writes nodes.
class NodeWriter {
 public:
  NodeWriter(const Originals& originals, WriteHost* host, Arena* arena)
      : originals_(originals), host_(host), arena_(*arena) {}

  /// Writes a node: as the message of the file itself if nothing differs. `original` is the
  /// operator of the file or null. Throws GraphError, UnsupportedError, and what the host throws.
  WrittenNode write(const Node& node, const Original* original, const NodeNames& names,
                    const NestedWriter& nested);

  /// The operator sets that changed nodes need.
  std::set<std::string> domains;
  /// Nodes without a domain that have another operator than in the file, by operator.
  std::map<std::string, const Node*> operators;
  /// By the place of their messages: changed nodes of which the file has long lists.
  std::unordered_map<const char*, Pieces> whole;

 private:
  const Originals& originals_;
  WriteHost* host_;
  Arena& arena_;
};

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_WRITING_NODE_H_
