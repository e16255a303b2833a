// Is this graph sound? Said with node names.
#ifndef PASSLIB_CHECK_H_
#define PASSLIB_CHECK_H_

#include "graph.h"

namespace passlib {

/// Throws GraphError where the graph, or one nested in it, contradicts itself: nodes that are null
/// or listed twice, edges to what is not in the graph or to outputs that a node does not have, no
/// heads, a cycle, two variables of one name, text that is not UTF-8. Follows no pointer that is
/// not a node of the graph.

void checkGraph(Graph* graph);

}  // namespace passlib

#endif  // PASSLIB_CHECK_H_
