// Whether nodes already stand in post-order, without looking at one of them.
#ifndef PASSLIB_GRAPH_ORDER_POST_ORDER_H_
#define PASSLIB_GRAPH_ORDER_POST_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace passlib {

/// The edges of a graph as positions of nodes. In a large graph, these few bytes are in the cache
/// where the nodes are not.
struct EdgePositions {
  std::vector<uint32_t> producers;  ///< of the inputs of all nodes in turn
  std::vector<uint32_t> ends;       ///< for each node: one past its last input
  std::vector<uint32_t> heads;

  uint32_t begin(std::size_t node) const { return node == 0 ? 0 : ends[node - 1]; }
  void clear() {
    producers.clear();
    ends.clear();
    heads.clear();
  }
};

struct PostOrderStep {
  uint32_t node;
  uint32_t edge;  ///< the next one
};

/// Whether orderGraph would leave the nodes as they are. Every producer comes before its consumers,
/// and there are no control dependencies. `path` is memory to work in.
inline bool isPostOrder(const EdgePositions& edges, std::vector<PostOrderStep>* path) {
  path->clear();
  uint32_t done = 0;  // so many nodes, from the first one on, are in the order
  for (const uint32_t head : edges.heads) {
    if (head >= done) path->push_back({head, edges.begin(head)});
    while (!path->empty()) {
      PostOrderStep& step = path->back();
      if (step.edge == edges.ends[step.node]) {
        if (step.node != done) return false;
        ++done;
        path->pop_back();
        continue;
      }
      const uint32_t producer = edges.producers[step.edge++];
      if (producer >= done) path->push_back({producer, edges.begin(producer)});
    }
  }
  return done == edges.ends.size();
}

}  // namespace passlib

#endif  // PASSLIB_GRAPH_ORDER_POST_ORDER_H_
