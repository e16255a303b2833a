// Growing the groups of nodes that become subgraphs.
#ifndef PASSLIB_PARTITION_GROUPS_H_
#define PASSLIB_PARTITION_GROUPS_H_

#include <functional>
#include <string>
#include <vector>

#include "partition_choice.h"
#include "partition_graph.h"

namespace passlib {

/// Groups of nodes, each in ascending order; no node is in two. Merged into one node each, the
/// groups leave the graph without a cycle.
///
/// Groups are MXNet's: from each node that may begin one, in turn, breadth first over inputs and
/// outputs; where that would make a cycle, the last node at which a way from the group comes back
/// into it is left out and growing begins again. Where that takes too long, for large graphs with
/// many such ways, the groups that are left take in a node only if all that it needs, or all that
/// needs it, is in the group: then there can be no cycle.
///
/// Variables are in no group: those are the inputs of subgraphs. `fail` is called, and throws,
/// where the choice's filter leaves nodes that would make a cycle.
std::vector<std::vector<int>> growGroups(const NumberedGraph& graph, Choice* choice,
                                         const std::function<void(const std::string&)>& fail);

}  // namespace passlib

#endif  // PASSLIB_PARTITION_GROUPS_H_
