// passlib._core.EditableGraph: a graph with the verbs of the header, for passes in Python.

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/calls/exit_gate.h"
#include "bindings/common.h"
#include "bindings/editing/handles.h"
#include "graph/attributes.h"
#include "graph/variables.h"
#include "library/pass.h"

namespace passlib {

namespace py = pybind11;

std::vector<NodeEntry> entriesOf(const GraphHandle& graph, const py::iterable& values) {
  std::vector<NodeEntry> entries;
  for (const py::handle& item : values) {
    if (!py::isinstance<ValueHandle>(item)) {
      throw py::type_error("a value is needed, such as node.outputs[0], not " +
                           std::string(py::str(py::type::of(item).attr("__name__"))));
    }
    const auto& value = item.cast<const ValueHandle&>();
    value.live();
    if (value.owner != graph.owner || value.graph != graph.graph) {
      throw py::value_error("the value of node '" + value.entry.node->name +
                            "' belongs to another graph");
    }
    entries.push_back(value.entry);
  }
  return entries;
}

py::tuple valuesOf(const GraphHandle& graph, const std::vector<NodeEntry>& entries) {
  py::tuple values(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    values[i] = ValueHandle{graph.owner, graph.graph, entries[i]};
  }
  return values;
}

namespace {

NodeEntry entryOf(const GraphHandle& graph, const py::object& value) {
  return entriesOf(graph, py::make_tuple(value)).front();
}

Node* nodeOf(const GraphHandle& graph, const NodeHandle& node) {
  if (node.owner != graph.owner || node.graph != graph.graph) {
    throw py::value_error("node '" + node.node->name + "' belongs to another graph");
  }
  return node.live();
}

py::list nodeList(const GraphHandle& graph, const std::vector<Node*>& nodes) {
  py::list list(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    list[i] = NodeHandle{graph.owner, graph.graph, nodes[i]};
  }
  return list;
}

/// `kinds`: of which operators, as fullOperator names them; all nodes if there are none.
py::list sortedNodes(const GraphHandle& graph, const py::args& kinds) {
  const auto wanted = kinds.cast<std::vector<std::string>>();
  const std::vector<Node*>& nodes = graph.owner->nodes(graph.graph);
  std::vector<Node*> sorted = mxnet::ext::sortNodes(nodes, mxnet::ext::NodeTable(nodes));
  const auto is_other = [&wanted](const Node* node) {
    return std::none_of(wanted.begin(), wanted.end(), [node](const std::string& kind) {
      const std::size_t rest = kind.size() - std::min(kind.size(), node->op.size());
      return kind.compare(rest, kind.npos, node->op) == 0 && fullOperator(*node) == kind;
    });
  };
  if (!wanted.empty())
    sorted.erase(std::remove_if(sorted.begin(), sorted.end(), is_other), sorted.end());
  return nodeList(graph, sorted);
}

/// The operators that depend on these variables only, in topological order.
py::list operatorsOn(const GraphHandle& graph, const py::iterable& variables) {
  std::unordered_set<const Node*> known;
  for (const py::handle& variable : variables) {
    known.insert(nodeOf(graph, variable.cast<const NodeHandle&>()));
  }
  const std::vector<Node*>& nodes = graph.owner->nodes(graph.graph);
  std::vector<Node*> found;
  for (Node* node : mxnet::ext::sortNodes(nodes, mxnet::ext::NodeTable(nodes))) {
    const auto is_known = [&known](const NodeEntry& input) { return known.count(input.node) != 0; };
    if (node->op == "null" || !std::all_of(node->inputs.begin(), node->inputs.end(), is_known))
      continue;
    known.insert(node);
    found.push_back(node);
  }
  return nodeList(graph, found);
}

py::object find(const GraphHandle& graph, const std::string& name) {
  for (Node* node : graph.owner->nodes(graph.graph)) {
    if (node->name == name) return py::cast(NodeHandle{graph.owner, graph.graph, node});
  }
  return py::none();
}

NodeHandle addAny(const GraphHandle& graph, const std::string& op,
                  const std::vector<NodeEntry>& inputs, const py::dict& attributes,
                  const std::string& name, int num_outputs) {
  graph.owner->requireOpen();
  std::vector<std::pair<std::string, std::string>> texts;
  for (const auto& [key, value] : attributes) texts.push_back(attributeText(key, value));
  Node* node = graph.owner->addNode(graph.graph, op, name, inputs, num_outputs);
  for (auto& [key, text] : texts) node->attrs[key] = std::move(text);
  return {graph.owner, graph.graph, node};
}

NodeHandle addNode(const GraphHandle& graph, const std::string& op, const py::object& inputs,
                   const py::object& attributes, const std::string& name, int num_outputs) {
  if (op == "null") throw py::value_error("a variable is added with add_variable(name)");
  if (!py::isinstance<py::iterable>(inputs)) {
    throw py::type_error("the inputs of a node are a sequence, such as [value], not " +
                         std::string(py::repr(inputs)));
  }
  return addAny(graph, op, entriesOf(graph, inputs), py::dict(attributes), name, num_outputs);
}

NodeHandle addVariable(const GraphHandle& graph, const std::string& name,
                       const py::object& attributes) {
  return addAny(graph, "null", {}, py::dict(attributes), name, 0);
}

void removeNodes(const GraphHandle& graph, const py::args& nodes) {
  std::vector<Node*> listed;
  for (const py::handle& node : nodes) {
    listed.push_back(nodeOf(graph, node.cast<const NodeHandle&>()));
  }
  graph.owner->remove(graph.graph, listed);
}

py::tuple absorbNested(const GraphHandle& graph, const NodeHandle& node, std::size_t number,
                       const py::dict& given) {
  Node* enclosing = nodeOf(graph, node);
  std::vector<std::pair<Node*, NodeEntry>> values;
  for (const auto& [variable, value] : given) {
    const auto& handle = variable.cast<const NodeHandle&>();
    Node* live = handle.live();
    if (number >= enclosing->subgraphs.size() || handle.graph != enclosing->subgraphs[number] ||
        live->op != "null") {
      throw py::value_error("node '" + live->name + "' is no variable of the nested graph");
    }
    values.emplace_back(live, entryOf(graph, py::reinterpret_borrow<py::object>(value)));
  }
  std::vector<Node*> moved;
  const auto results = graph.owner->absorb(graph.graph, enclosing, number, values, &moved);
  py::list nodes;
  for (Node* each : moved) nodes.append(NodeHandle{graph.owner, graph.graph, each});
  return py::make_tuple(valuesOf(graph, results), nodes);
}

/// A graph for one pass in Python: the copy that it changes, and what its end needs.
struct RootGraph : GraphHandle {
  RootGraph(GraphSource* source, const std::string& editor, bool types_known,
            EditedGraph::ReadTypes types, bool consume)
      : GraphHandle{nullptr, nullptr}, what(editor), max_depth(mostNestedGraphs(source)) {
    std::unique_ptr<Graph> copy = consume ? source->consume() : source->take();
    before = namesOfVariables(*copy);
    graph = copy.get();
    owner = std::make_shared<EditedGraph>(std::move(copy), editor, types_known, std::move(types));
  }

  /// Checks and arranges the graph. Returns it with the names of removed variables.
  py::tuple finish(bool ordered) {
    std::unique_ptr<Graph> result = owner->close();
    mxnet::ext::host::takeBackParams(result.get());
    result->attrs.clear();
    OperatorKinds kinds;
    {
      const ReleasedGil released;
      kinds =
          finishGraph(result.get(), ordered, what + " left a graph that is not sound", max_depth);
    }
    std::vector<std::string> gone = missingNames(before, *result);
    return py::make_tuple(std::make_shared<GraphSource>(std::move(result), std::move(kinds)), gone);
  }

  std::string what;
  NameList before;
  int max_depth;
};

}  // namespace

void bindEditing(py::module_* m) {
  bindEditedNodes(m);
  bindEditedAttributes(m);
  bindPatterns(m);
  py::class_<GraphHandle>(*m, "EditableGraph")
      .def_property_readonly(
          "nodes", [](const GraphHandle& g) { return nodeList(g, g.owner->nodes(g.graph)); })
      .def("sorted", &sortedNodes)
      .def("operators_on", &operatorsOn, py::arg("variables"))
      .def("find", &find, py::arg("name"))
      .def_property(
          "outputs",
          [](const GraphHandle& g) {
            g.owner->requireOpen();
            return valuesOf(g, g.graph->outputs);
          },
          [](const GraphHandle& g, const py::iterable& values) {
            g.owner->setOutputs(g.graph, entriesOf(g, values));
          })
      .def("add_node", &addNode, py::arg("op"), py::arg("inputs") = py::tuple(),
           py::arg("attrs") = py::dict(), py::kw_only(), py::arg("name") = "",
           py::arg("num_outputs") = 1)
      .def("add_variable", &addVariable, py::arg("name"), py::arg("attrs") = py::dict())
      .def(
          "connect",
          [](const GraphHandle& g, const py::object& value, const NodeHandle& node, int input) {
            g.owner->connect(g.graph, entryOf(g, value), nodeOf(g, node), input);
          },
          py::arg("value"), py::arg("node"), py::arg("input"))
      .def(
          "set_inputs",
          [](const GraphHandle& g, const NodeHandle& node, const py::iterable& values) {
            g.owner->setInputs(g.graph, nodeOf(g, node), entriesOf(g, values));
          },
          py::arg("node"), py::arg("values"))
      .def(
          "replace",
          [](const GraphHandle& g, const py::object& value, const py::object& by) {
            return g.owner->replace(g.graph, entryOf(g, value), entryOf(g, by));
          },
          py::arg("value"), py::arg("by"))
      .def("remove", &removeNodes)
      .def("absorb", &absorbNested, py::arg("node"), py::arg("number"), py::arg("given"))
      .def("__len__", [](const GraphHandle& g) { return g.owner->nodes(g.graph).size(); });
  py::class_<RootGraph, GraphHandle>(*m, "EditableRoot")
      .def(py::init([](const std::shared_ptr<GraphSource>& source, const std::string& editor,
                       bool types_known, bool consume, EditedGraph::ReadTypes types) {
             return RootGraph(source.get(), editor, types_known, std::move(types), consume);
           }),
           py::arg("source"), py::arg("editor"), py::kw_only(), py::arg("types_known"),
           py::arg("consume"), py::arg("types") = py::none())
      .def("finish", &RootGraph::finish, py::kw_only(), py::arg("ordered"))
      .def("part",
           [](const RootGraph& g, const py::iterable& values) {
             return std::make_shared<GraphSource>(g.owner->part(entriesOf(g, values)));
           })
      .def_property(
          "editor", [](const RootGraph& g) { return g.what; },
          [](RootGraph& g, const std::string& editor) {
            g.what = editor;
            g.owner->setEditor(editor);
          })
      .def_property_readonly("changes", [](const RootGraph& g) { return g.owner->changes(); })
      .def("close", [](const RootGraph& g) { g.owner->close(); });
}

}  // namespace passlib
