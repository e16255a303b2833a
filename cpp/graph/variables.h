// The variables of a graph, by role.
#ifndef PASSLIB_GRAPH_VARIABLES_H_
#define PASSLIB_GRAPH_VARIABLES_H_

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "graph/text_table.h"

namespace passlib {

/// Inputs of an operator that are auxiliary states, by operator name.
using AuxiliaryInputs = TextMap<std::vector<int>>;

/// The same by position of the node, for nodes whose operator name does not determine them.
using NodeStates = std::unordered_map<std::size_t, std::vector<int>>;

/// Names of variables, in the order of the nodes.
struct Variables {
  std::vector<std::string> args;
  std::vector<std::string> aux;
};

/// Returns the names of all variables; `aux` has those at an auxiliary input of some node. An entry
/// of `own` takes precedence over that of the node's operator.
Variables listVariables(const Graph& graph, const AuxiliaryInputs& auxiliary,
                        const NodeStates& own = {});

/// Returns the names of all variables.
std::vector<std::string> namesOfVariables(const Graph& graph);

/// Of the names that are keys, those that a variable of the graph has, or of a graph nested in it.
TextViewSet usedAmong(const TextViewSet& names, Graph* graph);

/// Returns the names that no variable of the graph has.
std::vector<std::string> missingNames(std::vector<std::string> names, const Graph& graph);

}  // namespace passlib

#endif  // PASSLIB_GRAPH_VARIABLES_H_
