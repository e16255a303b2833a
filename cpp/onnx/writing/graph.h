// Graphs as messages, nested ones included: those without changes are the ones of the file.
#ifndef PASSLIB_ONNX_WRITING_GRAPH_H_
#define PASSLIB_ONNX_WRITING_GRAPH_H_

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "onnx/types/annotations.h"
#include "onnx/writing/node.h"
#include "onnx/writing/variables.h"

namespace passlib::onnx {

/// The lists of a graph as they are written, each item a message.
struct WrittenGraph {
  const OriginalGraph* file = nullptr;  ///< whose other fields the graph has
  Names names;
  std::vector<Bytes> nodes;
  std::vector<Bytes> inputs;
  std::vector<Bytes> outputs;
  std::vector<Bytes> sparse;
  std::vector<Bytes> values;
  std::vector<Bytes> annotations;
  std::vector<WrittenInitializer> initializers;
  /// Numbers of the nodes that are not as in the file but for names, or whose inputs may be of
  /// other types.
  std::vector<uint32_t> unsettled;
  /// Whether the inputs that such a node has in the file, and its outputs, are of the same types as
  /// there.
  std::vector<bool> typed_as_before;
  const std::unordered_map<const char*, Pieces>* whole = nullptr;  ///< of the NodeWriter
  /// A value of the file to which training information refers, and that is gone; null if none.
  Bytes lost{};
  /// Whether one to which training information or a parameter of an annotation refers is gone, or
  /// is computed by another operator or with other weights.
  bool alters = false;
};

/// A value whose type may have changed.
struct DoubtfulValue {
  std::string place;  ///< of its graph
  Bytes name;
  NodeEntry value;
  Bytes output;  ///< for an output of the graph what the file states of it, a ValueInfoProto
};

/// Writes the graphs of one model.
class GraphWriter {
 public:
  /// Names that are made refer to `arena`.
  GraphWriter(const Originals& originals, WriteHost* host, Arena* arena)
      : nodes(originals, host, arena),
        originals_(originals),
        host_(host),
        arena_(arena),
        fresh_(&originals, arena),
        changes_(originals.size()),
        taken_(originals.size(), false) {}

  /// Writes the main graph. Throws GraphError, UnsupportedError, and what the host throws.
  WrittenGraph writeMain(const Graph& graph, const Present& present);

  NodeWriter nodes;
  std::vector<DoubtfulValue> doubtful;
  bool doubts_more = false;  ///< some of them are no outputs of the main graph

 private:
  friend class LevelWriter;
  NestedGraph writeNested(const Graph& graph, const OriginalGraph* original,
                          const Surroundings& around, const std::string& place);

  const Originals& originals_;
  WriteHost* host_;
  Arena* arena_;
  FreshNames fresh_;
  Changes changes_;
  std::vector<bool> taken_;
};

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_WRITING_GRAPH_H_
