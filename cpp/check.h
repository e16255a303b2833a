// Is this graph sound? Said with node names.
#ifndef PASSLIB_CHECK_H_
#define PASSLIB_CHECK_H_

#include <functional>
#include <memory>

#include "graph.h"

namespace passlib {

using Before = std::function<std::shared_ptr<const Graph>()>;

/// Throws GraphError where the graph, or one nested in it, contradicts itself: nodes that are null
/// or listed twice, edges to what is not in the graph or to outputs that a node does not have, no
/// heads, a cycle, two variables of one name, text that is not UTF-8. Follows no pointer that is
/// not a node of the graph.
///
/// `before` gives the graph that a pass was given, or null; it is asked only where an output is used
/// that its node does not have. A pass that turns a node into another operator may leave a number of
/// outputs behind that is too small; such a number is raised, whereas for an operator that stayed
/// the same it is an error.
void checkGraph(Graph* graph, const Before& before);

}  // namespace passlib

#endif  // PASSLIB_CHECK_H_
