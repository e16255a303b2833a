// Values that nested graphs of ONNX take from outer graphs.
#ifndef PASSES_CAPTURES_H_
#define PASSES_CAPTURES_H_

#include <cstddef>
#include <unordered_set>

#include "lib_api.h"

namespace passes {

using namespace mxnet::ext;

/// Removes inputs of the nodes of one graph that stand for captured values which no nested graph of
/// theirs uses, and the variables for these values. Nodes with one of the graphs `shared`, which
/// belong to several nodes, stay as they are. Returns the number of removed variables.
std::size_t dropUnusedCaptures(Graph* graph, const std::unordered_set<const Graph*>& shared);

}  // namespace passes

#endif  // PASSES_CAPTURES_H_
