// Soundness of graphs.
#ifndef PASSLIB_GRAPH_CHECK_H_
#define PASSLIB_GRAPH_CHECK_H_

#include <limits>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/notes/operator_kinds.h"

namespace passlib {

bool isUtf8(std::string_view text);

/// More outputs than any operator has; larger numbers are uninitialised memory.
constexpr int kMostOutputs = 1 << 24;

/// How nodes stand, from the least to the most: in any order, each after those it depends on, and
/// as orderGraph would leave them.
enum class NodeOrder { kAny, kSorted, kPostOrder };

/// Throws GraphError if the graph or one of its subgraphs is inconsistent: null or repeated nodes,
/// nodes of two graphs, subgraphs in subgraphs beyond `max_depth` levels,
/// edges to nodes outside the graph or to outputs that a node does not have, no heads, a cycle, two
/// variables of one name, text that is not UTF-8. Dereferences only pointers to nodes of the graph.
/// `fine`: which nodes of the outermost graph have texts that were checked before; the others, and
/// all beyond it, were not. `nested_fine`: the nested graphs are sound, in post-order, and list
/// their variables; they are not looked at. Lists the variables of each graph anew, and the
/// operators if `kinds` is not null. Returns how the nodes of all graphs stand; post-order is not
/// noticed where there are control dependencies.
NodeOrder checkGraph(Graph* graph, int max_depth = std::numeric_limits<int>::max(),
                     const std::vector<bool>& fine = {}, bool nested_fine = false,
                     OperatorKinds* kinds = nullptr);

}  // namespace passlib

#endif  // PASSLIB_GRAPH_CHECK_H_
