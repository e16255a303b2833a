// A graph together with those that are nested in its nodes.
#ifndef PASSES_NESTED_H_
#define PASSES_NESTED_H_

#include <vector>

#include "lib_api.h"

namespace passes {

using namespace mxnet::ext;

/// A graph and all that are nested in it, outer ones first.
inline std::vector<Graph*> withNested(Graph* graph) {
  std::vector<Graph*> found(1, graph);
  for (std::size_t i = 0; i < found.size(); ++i) {  // grows while it is walked
    for (Node* node : found[i]->nodes) {
      found.insert(found.end(), node->subgraphs.begin(), node->subgraphs.end());
    }
  }
  return found;
}

}  // namespace passes

#endif  // PASSES_NESTED_H_
