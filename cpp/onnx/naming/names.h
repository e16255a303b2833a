// Names for the values of a graph that a pass may have changed.
#ifndef PASSLIB_ONNX_NAMING_NAMES_H_
#define PASSLIB_ONNX_NAMING_NAMES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "onnx/naming/draft.h"

namespace passlib::onnx {

/// The names of the values of one graph.
struct Names {
  std::vector<uint32_t> firsts;  ///< the first value of each node in `of`
  std::vector<Bytes> of;
  std::vector<Bytes> outputs;  ///< of the graph, in order
  /// Pairs of a value and of the output of the graph that must be a copy of it.
  std::vector<std::pair<Bytes, Bytes>> copies;

  std::size_t place(Value value) const { return std::size_t{firsts[value.node]} + value.output; }
  Bytes at(Value value) const { return of[place(value)]; }
  uint32_t count(std::size_t node) const { return firsts[node + 1] - firsts[node]; }
};

/// Names the values of a graph: outputs of the graph first, then as in the file, then anew. Throws
/// GraphError: an input has the name of an output that another node computes.
Names chooseNames(const Draft& draft, FreshNames* fresh, Arena* arena);

/// Returns the name in the file of a value, or of the value that it is a copy of; null if it is
/// new.
Bytes nameInFile(const Draft& draft, Value value);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_NAMING_NAMES_H_
