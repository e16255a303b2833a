// Repair of graphs that passed through MXNet's own lib_api.
#ifndef PASSLIB_LIBRARY_CALLS_RESTORE_H_
#define PASSLIB_LIBRARY_CALLS_RESTORE_H_

#include "graph/graph.h"

namespace passlib {

/// Restores what MXNet's lib_api drops from a graph: numbers of outputs, entry versions, control
/// dependencies. Nodes are matched by name and operator.
void restoreLost(const Graph& before, Graph* after);

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_CALLS_RESTORE_H_
