// The nodes of a graph as Python tuples, and a graph from such tuples.

#include <pybind11/stl.h>

#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "graph/attributes.h"
#include "graph/graph.h"
#include "graph/source.h"
#include "graph/text_table.h"

namespace passlib {

namespace py = pybind11;

namespace {

/// The type of the items of Graph.nodes(). Made with the module and never destroyed.
PyTypeObject* node_tuple = nullptr;

void addNodeTuple(py::module_* m) {
  using namespace py::literals;  // NOLINT: this function only
  const py::object type =
      py::module_::import("collections")
          .attr("namedtuple")("NodeTuple",
                              py::make_tuple("op", "name", "attrs", "inputs", "num_outputs",
                                             "control_deps", "subgraphs"),
                              "module"_a = m->attr("__name__"));
  type.attr("__doc__") = "One node of a graph; entries and dependencies are positions of nodes.";
  m->attr("NodeTuple") = type;
  node_tuple = reinterpret_cast<PyTypeObject*>(type.inc_ref().ptr());
}

py::object textObject(std::string_view text) {
  PyObject* made =
      PyUnicode_DecodeUTF8(text.data(), static_cast<py::ssize_t>(text.size()), nullptr);
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

/// Strings that repeat, such as operators and names of attributes, made once each.
class Texts {
 public:
  const py::object& operator[](std::string_view text) {
    const auto [place, fresh] = known_.try_emplace(text);
    if (fresh) place->second = textObject(text);
    return place->second;
  }

 private:
  TextViewMap<py::object> known_;
};

/// Entries as (position of the node, output, version).
py::list entryList(const std::vector<NodeEntry>& entries, const NodeTable& table) {
  py::list list(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const NodeEntry& entry = entries[i];
    py::tuple numbers(3);
    PyTuple_SET_ITEM(numbers.ptr(), 0, PyLong_FromLongLong(table.find(entry.node)));
    PyTuple_SET_ITEM(numbers.ptr(), 1, PyLong_FromLong(entry.entry));
    PyTuple_SET_ITEM(numbers.ptr(), 2, PyLong_FromLong(entry.version));
    PyList_SET_ITEM(list.ptr(), static_cast<py::ssize_t>(i), numbers.release().ptr());
  }
  return list;
}

py::dict sharedAttributes(const Node& node, Texts* keys) {
  py::dict attrs;
  forEachAttribute(node, [&](std::string_view key, std::string_view text) {
    if (PyDict_SetItem(attrs.ptr(), (*keys)[key].ptr(), textObject(text).ptr()) != 0) {
      throw py::error_already_set();
    }
  });
  return attrs;
}

/// Makes a NodeTuple without the cost of a call in Python.
py::object nodeTuple(const Node& node, const NodeTable& table, Texts* repeated) {
  py::list deps;
  for (const Node* dep : node.control_deps) deps.append(table.find(dep));
  py::object fields[] = {
      (*repeated)[node.op],          textObject(node.name),      sharedAttributes(node, repeated),
      entryList(node.inputs, table), py::int_(node.num_outputs), std::move(deps),
      py::cast(copySubgraphs(node))};
  PyObject* made = node_tuple->tp_alloc(node_tuple, std::size(fields));
  if (made == nullptr) throw py::error_already_set();
  for (std::size_t i = 0; i < std::size(fields); ++i) {
    PyTuple_SET_ITEM(made, static_cast<py::ssize_t>(i), fields[i].release().ptr());
  }
  return py::reinterpret_steal<py::object>(made);
}

py::list listNodes(GraphSource& source) {
  const std::shared_ptr<const Graph> shared = source.get();
  const Graph& graph = *shared;
  const NodeTable table(graph.nodes);
  Texts repeated;
  py::list list(graph.nodes.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    PyList_SET_ITEM(list.ptr(), static_cast<py::ssize_t>(i),
                    nodeTuple(*graph.nodes[i], table, &repeated).release().ptr());
  }
  return list;
}

py::list listHeads(GraphSource& source) {
  const std::shared_ptr<const Graph> graph = source.get();
  return entryList(graph->outputs, NodeTable(graph->nodes));
}

std::string_view textOf(const py::handle& string) {
  py::ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(string.ptr(), &size);
  if (text == nullptr) throw py::error_already_set();
  return std::string_view(text, static_cast<std::size_t>(size));
}

/// Reads the position of a node, the number of its output and an optional version.
NodeEntry entryAt(const Graph& graph, const py::handle& item) {
  constexpr const char* kExpected = "an entry is a sequence of two or three numbers";
  const auto numbers = py::reinterpret_steal<py::object>(PySequence_Fast(item.ptr(), kExpected));
  if (!numbers) throw py::error_already_set();
  PyObject** const items = PySequence_Fast_ITEMS(numbers.ptr());
  const auto size = PySequence_Fast_GET_SIZE(numbers.ptr());
  if (size < 2) throw py::value_error(kExpected);
  const auto number = [&](py::ssize_t i) {
    return i < size ? py::handle(items[i]).cast<int>() : 0;
  };
  return NodeEntry(graph.nodes.at(static_cast<std::size_t>(number(0))), number(1), number(2));
}

/// Builds a graph from tuples as listNodes returns them. Inputs must refer to earlier nodes.
std::shared_ptr<GraphSource> buildGraph(const py::list& nodes, const py::list& heads) {
  auto graph = std::make_unique<Graph>();
  std::vector<std::pair<std::string, std::string>> pairs;
  graph->nodes.reserve(nodes.size());
  for (const py::handle& item : nodes) {
    const py::tuple fields(py::reinterpret_borrow<py::object>(item));
    Node* node = graph->addNode(std::string(textOf(fields[1])), std::string(textOf(fields[0])));
    pairs.clear();
    for (const auto& [key, value] : fields[2].cast<py::dict>()) {
      pairs.emplace_back(textOf(key), textOf(value));
    }
    mxnet::ext::host::AttributeTexts::pack(pairs.data(), pairs.size(), &node->attrs);
    if (const int outputs = fields[4].cast<int>()) mxnet::ext::host::declareOutputs(node, outputs);
    if (node->op == "null") graph->inputs.push_back(node);
    const auto inputs = fields[3].cast<py::sequence>();
    node->inputs.reserve(inputs.size());
    for (const py::handle& input : inputs) {
      const NodeEntry entry = entryAt(*graph, input);
      entry.node->outputs.emplace_back(node, static_cast<int>(node->inputs.size()));
      node->inputs.push_back(entry);
    }
    for (const py::handle& dep : fields[5].cast<py::sequence>()) {
      node->control_deps.push_back(graph->nodes.at(dep.cast<std::size_t>()));
    }
    for (const py::handle& subgraph : fields[6].cast<py::sequence>()) {
      node->subgraphs.push_back(nullptr);
      node->subgraphs.back() =
          copyGraph(*subgraph.cast<std::shared_ptr<GraphSource>>()->get()).release();
    }
  }
  for (const py::handle& head : heads) graph->outputs.push_back(entryAt(*graph, head));
  return std::make_shared<GraphSource>(std::move(graph));
}

}  // namespace

void bindNodes(py::module_* m, GraphClass* graphs) {
  addNodeTuple(m);
  graphs->def_static("build", &buildGraph, py::arg("nodes"), py::arg("heads"))
      .def("nodes", &listNodes)
      .def("heads", &listHeads);
}

}  // namespace passlib
