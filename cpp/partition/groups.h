// Growth of the groups of nodes that become subgraphs.
#ifndef PASSLIB_PARTITION_GROUPS_H_
#define PASSLIB_PARTITION_GROUPS_H_

#include <functional>
#include <string>
#include <vector>

#include "partition/choice.h"
#include "partition/graph.h"

namespace passlib {

/// Returns disjoint groups of nodes, each in ascending order. Merging each group into one node
/// leaves the graph acyclic.
///
/// The groups are MXNet's: growth starts from each eligible node in turn and proceeds breadth first
/// over inputs and outputs. If the group would be on a cycle, the last node at which a path from
/// the group re-enters it is excluded, and growth restarts. If that takes too long, as in large
/// graphs with many such paths, the remaining groups take in a node only if all nodes before it, or
/// all after it, are in the group: then no cycle is possible.
///
/// Variables are in no group: they become inputs of subgraphs. `fail` is called, and must throw, if
/// the choice's filter keeps nodes that would be on a cycle.
std::vector<std::vector<int>> growGroups(const NumberedGraph& graph, Choice* choice,
                                         const std::function<void(const std::string&)>& fail);

}  // namespace passlib

#endif  // PASSLIB_PARTITION_GROUPS_H_
