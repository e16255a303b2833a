// Written graphs put together as messages.
#ifndef PASSLIB_ONNX_WRITING_ASSEMBLY_H_
#define PASSLIB_ONNX_WRITING_ASSEMBLY_H_

#include <cstdint>

#include "onnx/wire/output.h"
#include "onnx/writing/graph.h"

namespace passlib::onnx {

/// Levels of nested graphs that can be written. Each is three messages deep, and parsers of
/// protobuf accept 100.
constexpr int kDeepestNesting = 100;

enum Content : uint8_t {
  kWhole,
  kWithoutArrays,  ///< initializers that are aside have no elements
  kOutline,        ///< and long lists of nodes are cut, see `cutNode`
};

/// Whether a graph is that of the file.
bool isSame(const WrittenGraph& written);

/// Puts a graph together. Lists that changed stand where the file has the first item of each.
Pieces assembleGraph(const WrittenGraph& written, Content content);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_WRITING_ASSEMBLY_H_
