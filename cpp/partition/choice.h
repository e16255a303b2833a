// A strategy's choice of nodes.
#ifndef PASSLIB_PARTITION_CHOICE_H_
#define PASSLIB_PARTITION_CHOICE_H_

#include <memory>
#include <string>
#include <vector>

#include "partition/graph.h"
#include "partition/library.h"

namespace passlib {

/// Decides which nodes join a subgraph. Nodes are positions in the JSON that the library received.
class Choice {
 public:
  virtual ~Choice() = default;
  /// Whether a subgraph may start from a node.
  virtual bool select(int node) = 0;
  /// Whether a subgraph with `node` may also take in a node before it, or one after it.
  virtual bool selectInput(int node, int input) = 0;
  virtual bool selectOutput(int node, int output) = 0;
  /// Returns the nodes of a grown subgraph to keep. Both lists are ascending.
  virtual std::vector<int> filter(std::vector<int> candidates) { return candidates; }
  /// Growth restarts from the same first node.
  virtual void reset() {}
  /// Whether answers depend on the given nodes only.
  virtual bool isStateless() const = 0;
};

/// Uses the library's supportedOps, or else its selector. The graph must outlive the result. Throws
/// PassError.
std::unique_ptr<Choice> makeChoice(const StrategyLibrary& library, Graph* graph);

}  // namespace passlib

#endif  // PASSLIB_PARTITION_CHOICE_H_
