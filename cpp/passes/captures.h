// What nested graphs of ONNX take from the graphs around them.
#ifndef PASSES_CAPTURES_H_
#define PASSES_CAPTURES_H_

#include <cstddef>

#include "lib_api.h"

namespace passes {

using namespace mxnet::ext;

/// Removes inputs of the nodes of one graph that stand for captured values which no nested graph of
/// theirs uses, and the variables for these values. Returns the number of removed variables.
std::size_t dropUnusedCaptures(Graph* graph);

}  // namespace passes

#endif  // PASSES_CAPTURES_H_
