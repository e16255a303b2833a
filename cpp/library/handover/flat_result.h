// Graphs in the flat form, as a library returns them.
#ifndef PASSLIB_LIBRARY_HANDOVER_FLAT_RESULT_H_
#define PASSLIB_LIBRARY_HANDOVER_FLAT_RESULT_H_

#include <vector>

#include "graph/graph.h"

namespace passlib {

/// The parts that a pass left unchanged.
struct Kept {
  bool edges = false;       ///< all nodes, edges and outputs, and no graphs are nested
  std::vector<bool> texts;  ///< by node of the outermost graph: name, operator and attributes
  bool whole = false;       ///< the edges and all texts
};

/// Makes `graph`, a sound graph that a library was shown as `shown`, what the library returned.
/// Nodes are used again by position, whatever they become, since most are as they were: those are
/// not even looked at. What remains to be checked is what checkGraph does.
///
/// Nothing in `model` is trusted: numbers, positions, lengths and texts are checked before they are
/// used. Throws GraphError; the graph is then in an undefined but destructible state.
Kept readFlatResult(const mxnet::ext::FlatModel* model, const mxnet::ext::FlatModel& shown,
                    Graph* graph);

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_HANDOVER_FLAT_RESULT_H_
