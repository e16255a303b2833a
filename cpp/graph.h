// What the host does with graphs: copy, order, list.
#ifndef PASSLIB_GRAPH_H_
#define PASSLIB_GRAPH_H_

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib_api.h"

namespace passlib {

using mxnet::ext::Graph;
using mxnet::ext::Node;
using mxnet::ext::NodeEntry;
using mxnet::ext::NodeTable;

/// Inputs of an operator that are auxiliary states, by operator name.
using AuxiliaryInputs = std::unordered_map<std::string, std::vector<int>>;

/// The same by position of the node, where its operator alone does not tell.
using NodeStates = std::unordered_map<std::size_t, std::vector<int>>;

/// Names of the variables, in the order of the nodes.
struct Variables {
  std::vector<std::string> args;
  std::vector<std::string> aux;
};

/// A deep copy, edges on both sides, nested graphs included. The original must be sound. Nothing in
/// it is touched, so several threads may copy the same graph.
std::unique_ptr<Graph> copyGraph(const Graph& graph);

/// Whether two sound graphs have the same nodes in the same order, with the same edges, attributes
/// and nested graphs. Their top-level attributes are not looked at.
bool equalGraphs(const Graph& left, const Graph& right);

/// Puts the nodes, those of nested graphs too, into post-order from the heads, as NNVM orders them,
/// and drops what no head needs. The graph must be sound.
void orderGraph(Graph* graph);

/// Names of all variables, those that stand at an auxiliary input of some node apart. What `own`
/// says of a node counts for it alone.
Variables listVariables(const Graph& graph, const AuxiliaryInputs& auxiliary,
                        const NodeStates& own = {});

/// Puts back what MXNet's own lib_api loses on the way through a pass: numbers of outputs, entry
/// versions, control dependencies. Nodes are recognised by name and operator.
void restoreLost(const Graph& before, Graph* after);

}  // namespace passlib

#endif  // PASSLIB_GRAPH_H_
