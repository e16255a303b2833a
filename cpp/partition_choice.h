// What a strategy wants in its subgraphs.
#ifndef PASSLIB_PARTITION_CHOICE_H_
#define PASSLIB_PARTITION_CHOICE_H_

#include <memory>
#include <string>
#include <vector>

#include "partition_graph.h"
#include "partition_library.h"

namespace passlib {

/// Says which nodes go into a subgraph. Nodes are positions in the JSON that the library has seen.
class Choice {
 public:
  virtual ~Choice() = default;
  /// Whether a subgraph may begin with a node.
  virtual bool select(int node) = 0;
  /// Whether a subgraph that has `node` may also have what it takes input from, or gives output to.
  virtual bool selectInput(int node, int input) = 0;
  virtual bool selectOutput(int node, int output) = 0;
  /// Chooses from the nodes of a grown subgraph, in ascending order, those to keep.
  virtual std::vector<int> filter(const std::vector<int>& candidates) { return candidates; }
  /// Growing begins again from the same first node.
  virtual void reset() {}
  /// Whether answers depend on nothing but the nodes asked for.
  virtual bool isStateless() const = 0;
};

/// Asks the library: its supportedOps, or else for a selector. `json`: the graph. Throws PassError.
std::unique_ptr<Choice> makeChoice(const StrategyLibrary& library, const std::string& json,
                                   const Graph& graph);

}  // namespace passlib

#endif  // PASSLIB_PARTITION_CHOICE_H_
