// Graphs as a whole: copy, equality, order.
#ifndef PASSLIB_GRAPH_GRAPH_H_
#define PASSLIB_GRAPH_GRAPH_H_

#include <memory>
#include <string_view>

#include "header.h"

namespace passlib {

using mxnet::ext::Graph;
using mxnet::ext::Node;
using mxnet::ext::NodeEntry;
using mxnet::ext::NodeTable;

/// Returns a deep copy: edges in both directions, subgraphs included. The original must be sound
/// and is only read, so several threads may copy the same graph.
std::unique_ptr<Graph> copyGraph(const Graph& graph);

/// Whether two sound graphs have the same nodes in the same order, with the same edges, attributes
/// and subgraphs. Top-level attributes are not compared, and no attributes with the key `but`.
bool equalGraphs(const Graph& left, const Graph& right, std::string_view but = {});

/// Returns the number of levels of subgraphs in a sound graph, 0 without any.
int nestingDepth(const Graph& graph);

/// Puts the nodes of a sound graph and of its subgraphs into post-order from the heads, as NNVM
/// does, and drops nodes that no head needs.
void orderGraph(Graph* graph);

/// As orderGraph, but leaves subgraphs alone, whose parameters count by position.
void orderLevel(Graph* graph);

/// Puts the nodes of the graph and its subgraphs after those they depend on, and keeps all of them.
void sortGraph(Graph* graph);

/// Applies orderGraph if `ordered`, sortGraph otherwise.
inline void arrangeGraph(Graph* graph, bool ordered) {
  if (ordered) {
    orderGraph(graph);
  } else {
    sortGraph(graph);
  }
}

}  // namespace passlib

#endif  // PASSLIB_GRAPH_GRAPH_H_
