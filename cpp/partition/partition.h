// One call of a strategy of a partitioner.
#ifndef PASSLIB_PARTITION_PARTITION_H_
#define PASSLIB_PARTITION_PARTITION_H_

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
  std::size_t strategy;                    ///< its index in the partitioner
  mxnet::ext::GraphAttributes attributes;  ///< of the graphs that the library sees
  OptionList options;
  const ParamBlock& args;
  const ParamBlock& aux;
  AuxiliaryInputs auxiliary;  ///< which inputs of operators are auxiliary states
  NodeStates states;          ///< the same for individual nodes of the source's graph
  bool merge_equal = false;   ///< one input, or output, of a subgraph for all uses of a value
  bool consume = false;       ///< the source is not used afterwards
  bool ordered = false;       ///< see orderGraph
  bool force_json = false;    ///< never pass a Graph object itself
};

/// Returns "partitioner 'x', strategy 'y', of library 'z'".
std::string describePartition(const PartitionCall& call);

struct PartitionResult {
  std::unique_ptr<Graph> graph;
  bool unseen = false;  ///< no library saw the nested graphs: their operators are as they were
};

/// Runs a strategy on a copy of the graph of `source`: a node of the strategy's operator replaces
/// each group of nodes that the library chose and, if it reviews subgraphs, accepted. Checks the
/// result and, if `call.ordered`, orders it. Throws PassError if the library fails. Needs no GIL.
PartitionResult runPartition(const PartitionCall& call, const OutputSuffix& suffix,
                             GraphSource* source);

}  // namespace passlib

#endif  // PASSLIB_PARTITION_PARTITION_H_
