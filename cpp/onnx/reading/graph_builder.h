// Graphs of a file as nodes and edges.
#ifndef PASSLIB_ONNX_READING_GRAPH_BUILDER_H_
#define PASSLIB_ONNX_READING_GRAPH_BUILDER_H_

#include <memory>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "onnx/reading/level.h"
#include "onnx/reading/references.h"

namespace passlib::onnx {

/// The values that a nested graph takes from outer graphs.
struct Captured {
  Bytes name;
  Node* variable;    ///< that stands for the value in the nested graph
  std::string user;  ///< for messages
};

/// A graph, and what it takes from around it, in the order of first use.
struct BuiltGraph {
  std::unique_ptr<Graph> graph;
  std::vector<Captured> captured;
};

/// Builds the graph of a level, whose nested graphs are in `built`, by number, and are taken from
/// there. Nodes that are not each after those they need are put in order. `marks_defaults`:
/// constants that are defaults of inputs are marked, as are those with `references` from outside
/// of inference. Throws FormatError, GraphError, UnsupportedError.
BuiltGraph buildGraph(const Level& level, bool marks_defaults, const References& references,
                      std::vector<BuiltGraph>* built, Arena* arena);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_READING_GRAPH_BUILDER_H_
