// Graphs of files that older versions of MXNet wrote.
#ifndef PASSLIB_MXNET_UPGRADE_H_
#define PASSLIB_MXNET_UPGRADE_H_

#include <cstdint>

#include "graph/graph.h"

namespace passlib::symbols {

/// The version of the files that passlib writes: 10000 major + 100 minor + patch.
constexpr int64_t kCurrentVersion = 10901;

/// The version of files that state none: MXNet 0.8 or earlier.
constexpr int64_t kUnknownVersion = 800;

/// Brings a sound graph to the conventions of the current version. Throws GraphError if the result
/// is not sound, UnsupportedError as inputNames.
void upgrade(Graph* graph, int64_t version);

}  // namespace passlib::symbols

#endif  // PASSLIB_MXNET_UPGRADE_H_
