// The operators that rewrites must leave as they are.
#ifndef PASSLIB_MOVES_KEPT_H_
#define PASSLIB_MOVES_KEPT_H_

#include <string>
#include <string_view>
#include <unordered_set>

#include "graph/graph.h"

namespace passlib::moves {

/// The names of the operators of a graph, whose nodes point to their arrays, that a step of a
/// standard pass keeps:
///
/// - `fused`: those that ONNX Runtime fuses.
/// - `fusedButLayers`: these without layers, which change with the arithmetic next to them.
/// - `scaledWeights`: the products that are weights of MatMul and Gemm. ONNX Runtime turns a
/// product
///   with DequantizeLinear into MatMulNBits, which rounds the other factor to 8 bits.
///
/// Throws std::invalid_argument for another text.
std::unordered_set<std::string> keptNames(std::string_view what, Graph* graph);

}  // namespace passlib::moves

#endif  // PASSLIB_MOVES_KEPT_H_
