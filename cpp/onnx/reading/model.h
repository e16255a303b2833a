// A file as a graph and constants.
#ifndef PASSLIB_ONNX_READING_MODEL_H_
#define PASSLIB_ONNX_READING_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "onnx/reading/level.h"
#include "onnx/reading/references.h"

namespace passlib::onnx {

/// A constant that passes see as an array, or whose data is in another file; checked.
struct Constant {
  enum class What : uint8_t { kInitializer, kNode };
  Bytes name;
  Bytes message;  ///< a TensorProto, or an AttributeProto with numbers
  What what;
  Kind kind;  ///< of the attribute; kTensor for initializers
  bool main;  ///< of the main graph; others are only checked
  bool external = false;

  std::string place() const {
    return (what == What::kInitializer ? "initializer " : "constant ") + shown(name);
  }
};

/// The data of a constant that is in another file.
struct Elsewhere {
  Bytes data;
  std::shared_ptr<const void> owner;  ///< as the host needs it for weights
};

/// The graphs of a file before they become nodes and edges, by number: the main one is the first.
struct Levels {
  std::vector<GraphPlace> places;
  std::vector<Level> all;
  References references;
  Arena arena;  ///< texts that are in no one piece of the file
};

/// The content of a file. Names and data refer to the file's memory, or to that of `levels`.
struct Model {
  std::unique_ptr<Graph> graph;
  Bytes message;  ///< of the main graph
  int64_t ir_version = 0;
  bool has_external = false;  ///< some tensor states a place for its data in another file
  std::vector<std::pair<Bytes, int64_t>> imports;
  std::vector<Constant> constants;  ///< those that are external, and arrays of the main graph
  /// Data in other files of constants of nested graphs, by the start of their messages. The host
  /// sets it.
  std::unordered_map<const char*, Elsewhere> elsewhere;
  std::shared_ptr<const Levels> levels;  ///< writing goes by them
};

/// Reads a serialized model. Throws FormatError, GraphError, UnsupportedError.
Model readModel(Bytes data);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_READING_MODEL_H_
