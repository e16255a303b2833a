// Handles of Python to a graph that a pass in Python changes.
#ifndef PASSLIB_BINDINGS_EDITING_HANDLES_H_
#define PASSLIB_BINDINGS_EDITING_HANDLES_H_

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/edited.h"

namespace passlib {

/// The graph or one of its nested graphs.
struct GraphHandle {
  std::shared_ptr<EditedGraph> owner;
  Graph* graph;
};

struct NodeHandle {
  std::shared_ptr<EditedGraph> owner;
  Graph* graph;
  Node* node;

  Node* live() const {
    owner->requireLive(node);
    return node;
  }
};

/// One output of a node, as an input of another or the graph's output refers to it.
struct ValueHandle {
  std::shared_ptr<EditedGraph> owner;
  Graph* graph;
  NodeEntry entry;

  Node* live() const {
    owner->requireLive(entry.node);
    return entry.node;
  }
};

/// The attributes of a node as a mutable mapping.
struct AttributesHandle {
  NodeHandle node;
};

/// The values behind a Python sequence. Throws std::invalid_argument for values of another graph.
std::vector<NodeEntry> entriesOf(const GraphHandle& graph, const pybind11::iterable& values);

/// A tuple of values.
pybind11::tuple valuesOf(const GraphHandle& graph, const std::vector<NodeEntry>& entries);

/// An attribute as text. Throws a TypeError that names it for anything else.
std::pair<std::string, std::string> attributeText(const pybind11::handle& key,
                                                  const pybind11::handle& value);

void bindEditedNodes(pybind11::module_* m);
void bindEditedAttributes(pybind11::module_* m);
void bindPatterns(pybind11::module_* m);

}  // namespace passlib

#endif  // PASSLIB_BINDINGS_EDITING_HANDLES_H_
