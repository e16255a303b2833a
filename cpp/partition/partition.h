// Calls of partitioners.
#ifndef PASSLIB_PARTITION_PARTITION_H_
#define PASSLIB_PARTITION_PARTITION_H_

#include <functional>
#include <memory>
#include <string>

#include "graph/graph.h"
#include "graph/source.h"
#include "graph/variables.h"
#include "library/library.h"
#include "library/params.h"
#include "library/pass.h"
#include "partition/cutting/names.h"

namespace passlib {

struct PartitionCall {
  Library* library;
  std::size_t partitioner;                 ///< its index in library->partitioners()
  mxnet::ext::GraphAttributes attributes;  ///< of the graphs that the library sees
  OptionList options;
  const ParamBlock& args;
  const ParamBlock& aux;
  bool consume = false;     ///< the source is not used afterwards
  bool ordered = false;     ///< see orderGraph
  bool force_json = false;  ///< never pass a Graph object itself
};

/// The functions of a host that a partitioner needs.
struct PartitionHost {
  /// Names outputs, in the dialect of the graph. Called by `visit`'s body.
  OutputSuffix suffix;
  /// Returns the inputs of a graph's nodes that are auxiliary states. Called before each strategy
  /// that reviews subgraphs.
  std::function<AuxiliaryStates(const std::shared_ptr<GraphSource>& graph)> states;
  /// Runs `body`, which calls the library. `what`: "partitioner 'x', strategy 'y', of library 'z'".
  std::function<void(const std::string& what, const std::function<void()>& body)> visit;
};

/// Runs the strategies of a partitioner in turn, each on a copy of the graph that the one before
/// returned: a node of the strategy's operator replaces each group of nodes that the library chose
/// and, if it reviews subgraphs, accepted. With the option `dedup_subgraph=True`, a subgraph has
/// one input for all uses of a value, and one output. Checks the results and, if `call.ordered`,
/// orders them. Shapes and types in the graph's attributes hold for all strategies, because none
/// changes a value. Throws PassError if the library failed, or chose subgraphs that would make a
/// cycle.
std::shared_ptr<GraphSource> runPartitioner(const PartitionCall& call, const PartitionHost& host,
                                            std::shared_ptr<GraphSource> graph);

}  // namespace passlib

#endif  // PASSLIB_PARTITION_PARTITION_H_
