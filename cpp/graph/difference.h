// The difference between two graphs.
#ifndef PASSLIB_GRAPH_DIFFERENCE_H_
#define PASSLIB_GRAPH_DIFFERENCE_H_

#include <string>
#include <vector>

#include "graph/graph.h"

namespace passlib {

/// Names of nodes, in the order of their graphs.
struct Difference {
  std::vector<std::string> removed;  ///< only the first graph has them
  std::vector<std::string> added;    ///< only the second graph has them
  std::vector<std::string> changed;  ///< with another operator, other attributes, inputs, subgraphs
};

/// Compares two sound graphs by the names of their nodes; nodes of one name in their order. Inputs
/// are the same if they come from nodes of the same name.
Difference differenceOf(const Graph& before, const Graph& after);

}  // namespace passlib

#endif  // PASSLIB_GRAPH_DIFFERENCE_H_
