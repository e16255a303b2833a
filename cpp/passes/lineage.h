// The nodes that a node stands for after a pass.
#ifndef PASSES_LINEAGE_H_
#define PASSES_LINEAGE_H_

#include <vector>

#include "lib_api.h"

namespace passes {

using namespace mxnet::ext;

/// Lists on a node the nodes that it stands for from now on, at most 256: itself, and others.
void noteOrigin(const Graph& graph, Node* node, const std::vector<Node*>& others);

}  // namespace passes

#endif  // PASSES_LINEAGE_H_
