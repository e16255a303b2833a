// One strategy of a partitioner, run on a graph.
#ifndef PASSLIB_PARTITION_H_
#define PASSLIB_PARTITION_H_

#include <map>
#include <memory>
#include <string>

#include "graph.h"
#include "library.h"
#include "partition_cut.h"
#include "pass.h"
#include "source.h"
#include "tensors.h"

namespace passlib {

struct PartitionCall {
  Library* library;
  std::size_t partitioner;                                ///< its index in library->partitioners()
  std::size_t strategy;                                   ///< its index in the partitioner
  std::map<std::string, mxnet::ext::JsonVal> attributes;  ///< of the graphs that the library sees
  OptionList options;
  ParamBlock args;
  ParamBlock aux;
  AuxiliaryInputs auxiliary;  ///< says which variables of a subgraph are auxiliary states
  NodeStates states;          ///< the same for single nodes of the source's graph
  bool merge_equal = false;   ///< one input of a subgraph for all uses of a value, and one output
  bool consume = false;       ///< nobody needs the source after this
  bool ordered = false;       ///< see orderGraph
};

/// Runs a strategy on a graph like that of `source`: a node of its operator takes the place of each
/// group of nodes that the library chose and, if it reviews subgraphs, accepted. The result is
/// checked and, where `call.ordered`, put in order. Throws PassError if the library fails. Needs no
/// GIL.
std::unique_ptr<Graph> runPartition(const PartitionCall& call, const OutputSuffix& suffix,
                                    GraphSource* source);

}  // namespace passlib

#endif  // PASSLIB_PARTITION_H_
