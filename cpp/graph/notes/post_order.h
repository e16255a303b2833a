// Whether nodes already stand in post-order, without looking at one of them.
#ifndef PASSLIB_GRAPH_NOTES_POST_ORDER_H_
#define PASSLIB_GRAPH_NOTES_POST_ORDER_H_

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

  std::size_t size() const { return ends.size(); }
  uint32_t end(std::size_t node) const { return ends[node]; }
  uint32_t producer(std::size_t edge) const { return producers[edge]; }
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
template <typename Edges, typename Heads>  // Edges: EdgePositions, or a class with its functions
bool isPostOrder(const Edges& edges, const Heads& heads, std::vector<PostOrderStep>* path) {
  const auto begin = [&edges](uint32_t node) { return node == 0 ? 0 : edges.end(node - 1); };
  path->clear();
  uint32_t done = 0;  // so many nodes, from the first one on, are in the order
  for (const uint32_t head : heads) {
    if (head >= done) path->push_back({head, begin(head)});
    while (!path->empty()) {
      PostOrderStep& step = path->back();
      if (step.edge == edges.end(step.node)) {
        if (step.node != done) return false;
        ++done;
        path->pop_back();
        continue;
      }
      const uint32_t producer = edges.producer(step.edge++);
      if (producer >= done) path->push_back({producer, begin(producer)});
    }
  }
  return done == edges.size();
}

inline bool isPostOrder(const EdgePositions& edges, std::vector<PostOrderStep>* path) {
  return isPostOrder(edges, edges.heads, path);
}

}  // namespace passlib

#endif  // PASSLIB_GRAPH_NOTES_POST_ORDER_H_
