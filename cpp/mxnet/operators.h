// The operators of MXNet 1.9.1: names of inputs and outputs, and the inputs that they write to.
#ifndef PASSLIB_MXNET_OPERATORS_H_
#define PASSLIB_MXNET_OPERATORS_H_

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/text_table.h"
#include "graph/variables.h"

namespace passlib::symbols {

using Names = std::vector<std::string>;

/// The outputs of a node.
struct Outputs {
  Names visible;        ///< their names, without that of the node
  std::size_t all = 0;  ///< how many there are with hidden ones; 0 if only uses determine it
};

/// An operator as its registry states it.
struct Operator {
  std::string name;
  Names inputs;              ///< all that it may have with any attributes
  bool is_variadic = false;  ///< takes any number of inputs
  std::string counting;      ///< the attribute that states this number, or ""
  Names each;   ///< of inputs of which it has so many, without their numbers; none: `arg`
  Names after;  ///< the inputs behind these
  /// Inputs that exist only under a condition; schema/operator.py describes these texts.
  std::map<std::string, std::string> conditions;
  bool makes_variables = true;                  ///< whether missing inputs become variables
  std::map<std::string, std::string> defaults;  ///< of attributes
  std::map<std::string, std::string> initial;   ///< `__init__` of variables, by input
  Outputs outputs;                              ///< unless attributes determine them
  std::vector<int> written;  ///< positions of the inputs that it writes to, its auxiliary states
};

/// Finds an operator by its name or an alias; null if there is none.
const Operator* findOperator(const std::string& name);

/// The names of the inputs of a node; none where attributes do not determine them. Throws
/// UnsupportedError if an attribute states more than a graph can have.
Names inputNames(const Operator& op, const Node& node);

/// Throws UnsupportedError as inputNames.
Outputs outputsOf(const Operator& op, const Node& node);

/// The name of a node's output, without that of the node: `_output`. Throws UnsupportedError as
/// inputNames.
std::string outputSuffix(const Node& node, int output);

/// The inputs of a graph's nodes that are auxiliary states: those that operators write to. Throws
/// UnsupportedError as inputNames.
AuxiliaryStates statesOf(const Graph& graph);

/// The variables of a graph. Throws UnsupportedError as inputNames.
Variables variablesOf(const Graph& graph);

/// Whether a weight may be missing that a graph needs: a variable without any of some names that
/// is a parameter, not data. Throws UnsupportedError as inputNames.
bool lacksParameters(const Graph& graph, const TextSet& names);

/// Sets the registered name of every operator, and the number of outputs that it has. Throws
/// GraphError if an output is used that its node does not have, UnsupportedError as inputNames.
void completeOperators(Graph* graph);

}  // namespace passlib::symbols

#endif  // PASSLIB_MXNET_OPERATORS_H_
