// A graph with its subgraphs.
#ifndef PASSES_NESTED_H_
#define PASSES_NESTED_H_

#include <vector>

#include "lib_api.h"

namespace passes {

using namespace mxnet::ext;

/// Returns a graph and its subgraphs at any depth, outer graphs first.
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
