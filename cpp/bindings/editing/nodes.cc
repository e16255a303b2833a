// passlib._core.EditableNode and EditableValue: nodes and values of a graph that is being changed.

#include <pybind11/operators.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <vector>

#include "bindings/editing/handles.h"
#include "errors.h"
#include "graph/attributes.h"

namespace passlib {
namespace {

namespace py = pybind11;
using mxnet::ext::host::quoted;

NodeHandle nodeHandle(const ValueHandle& value) {
  return {value.owner, value.graph, value.entry.node};
}

ValueHandle outputOf(const NodeHandle& handle, int index) {
  Node* node = handle.live();
  if (index < 0) index += handle.owner->knownOutputs(*handle.graph, node);
  if (index < 0 || !mxnet::ext::host::hasOutput(*node, index)) {
    const int count = handle.owner->knownOutputs(*handle.graph, node);
    throw py::index_error("node " + quoted(node->name) + " (" + node->op + ") has " +
                          std::to_string(count) + " outputs");
  }
  return {handle.owner, handle.graph, NodeEntry(node, index)};
}

py::tuple outputsOf(const NodeHandle& handle) {
  Node* node = handle.live();
  std::vector<NodeEntry> entries;
  const int count = handle.owner->knownOutputs(*handle.graph, node);
  for (int i = 0; i < count; ++i) entries.emplace_back(node, i);
  return valuesOf({handle.owner, handle.graph}, entries);
}

/// The consumers of a node, each once, in the order of their uses.
py::list usersOf(const NodeHandle& handle) {
  py::list users;
  std::unordered_set<const Node*> seen;
  for (const NodeEntry& use : handle.owner->consumersOf(handle.live())) {
    if (handle.owner->isRemoved(use.node) || !seen.insert(use.node).second) continue;
    users.append(NodeHandle{handle.owner, handle.graph, use.node});
  }
  return users;
}

py::tuple usesOfValue(const ValueHandle& value) {
  py::list uses;
  for (const NodeEntry& use : value.owner->usesOf(value.live(), value.entry.entry)) {
    uses.append(py::make_tuple(NodeHandle{value.owner, value.graph, use.node}, use.entry));
  }
  return py::tuple(uses);
}

bool isOutput(const ValueHandle& value) {
  value.live();
  return value.owner->isOutput(*value.graph, value.entry);
}

/// The only use of a value, as in usesOfValue; None if there are several, or none.
py::object onlyUse(const ValueHandle& value) {
  NodeEntry only;
  for (const NodeEntry& use : value.owner->consumersOf(value.live())) {
    const bool same =
        use.node->inputs[static_cast<std::size_t>(use.entry)].entry == value.entry.entry;
    if (!same || value.owner->isRemoved(use.node)) continue;
    if (only.node != nullptr) return py::none();
    only = use;
  }
  if (only.node == nullptr) return py::none();
  return py::make_tuple(NodeHandle{value.owner, value.graph, only.node}, only.entry);
}

/// The entry of a value in an attribute such as __ext_shape__; empty if it has none.
std::string inferred(const ValueHandle& value, const char* key,
                     std::string (*entry)(const std::string&, unsigned)) {
  const Node* node = value.live();
  value.owner->requireTypes();
  const std::string_view text = attributeOf(*node, key);
  if (text.data() == nullptr) return std::string();
  try {
    return entry(std::string(text), static_cast<unsigned>(value.entry.entry));
  } catch (const std::out_of_range&) {
    return std::string();
  }
}

/// The shape with None for unknown sizes, or None.
py::object shapeOf(const ValueHandle& value) {
  const std::string text = inferred(value, MX_STR_SHAPE, &mxnet::ext::getShapeAt);
  if (text.empty() || text.front() != '[') return py::none();
  py::list sizes;
  std::size_t place = 1;
  while (place < text.size() && text[place] != ']') {
    std::size_t used = 0;
    const long long size = std::stoll(text.substr(place), &used);
    if (size < 0) {
      sizes.append(py::none());
    } else {
      sizes.append(size);
    }
    place += used;
    if (place < text.size() && text[place] == ',') ++place;
  }
  return py::tuple(sizes);
}

py::object typeOf(const ValueHandle& value) {
  const std::string text = inferred(value, MX_STR_DTYPE, &mxnet::ext::getDtypeAt);
  if (text.empty() || text.front() == '-') return py::none();
  return py::module_::import("passlib.arrays.dtypes").attr("from_code")(std::stoi(text));
}

py::tuple subgraphsOf(const NodeHandle& handle) {
  py::list subgraphs;
  for (Graph* subgraph : handle.live()->subgraphs) {
    subgraphs.append(GraphHandle{handle.owner, subgraph});
  }
  return py::tuple(subgraphs);
}

py::list dependenciesOf(const NodeHandle& handle) {
  py::list nodes;
  for (Node* node : handle.live()->control_deps) {
    nodes.append(NodeHandle{handle.owner, handle.graph, node});
  }
  return nodes;
}

std::string describeNode(const NodeHandle& handle) {
  const Node& node = *handle.live();
  return "<node " + quoted(node.name) + ": " + node.op + ", " + std::to_string(node.inputs.size()) +
         " inputs>";
}

std::string describeValue(const ValueHandle& value) {
  const Node& node = *value.live();
  return "<output " + std::to_string(value.entry.entry) + " of " + quoted(node.name) + ">";
}

}  // namespace

void bindEditedNodes(py::module_* m) {
  py::class_<ValueHandle> values(*m, "EditableValue");
  py::class_<NodeHandle>(*m, "EditableNode")
      .def_property(
          "op", [](const NodeHandle& h) { return h.live()->op; },
          [](const NodeHandle& h, const std::string& op) {
            if (op.empty()) throw py::value_error("a node needs an operator");
            h.live()->op = op;
            h.owner->noteChange();
          })
      .def_property_readonly("kind", [](const NodeHandle& h) { return fullOperator(*h.live()); })
      .def_property(
          "name", [](const NodeHandle& h) { return h.live()->name; },
          [](const NodeHandle& h, const std::string& name) {
            h.owner->rename(h.graph, h.node, name);
          })
      .def_property_readonly("attrs",
                             [](const NodeHandle& h) {
                               h.live();
                               return AttributesHandle{h};
                             })
      .def_property_readonly(
          "inputs",
          [](const NodeHandle& h) { return valuesOf({h.owner, h.graph}, h.live()->inputs); })
      .def_property_readonly("outputs", &outputsOf)
      .def("output", &outputOf, py::arg("index") = 0)
      .def_property_readonly("users", &usersOf)
      .def_property_readonly(
          "is_used", [](const NodeHandle& h) { return h.owner->isUsed(*h.graph, h.live()); })
      .def_property_readonly("subgraphs", &subgraphsOf)
      .def_property_readonly("control_deps", &dependenciesOf)
      .def_property_readonly("num_outputs",
                             [](const NodeHandle& h) { return h.live()->num_outputs; })
      .def_property_readonly("is_variable",
                             [](const NodeHandle& h) { return h.live()->op == "null"; })
      .def("__eq__",
           [](const NodeHandle& a, const py::object& b) {
             return py::isinstance<NodeHandle>(b) && b.cast<const NodeHandle&>().node == a.node;
           })
      .def("__hash__", [](const NodeHandle& h) { return std::hash<const Node*>()(h.node); })
      .def("__repr__", &describeNode);
  values
      .def_property_readonly("node",
                             [](const ValueHandle& v) {
                               v.live();
                               return nodeHandle(v);
                             })
      .def_property_readonly("index", [](const ValueHandle& v) { return v.entry.entry; })
      .def_property_readonly("uses", &usesOfValue)
      .def_property_readonly("only_use", &onlyUse)
      .def_property_readonly("is_output", &isOutput)
      .def_property_readonly("shape", &shapeOf)
      .def_property_readonly("dtype", &typeOf)
      .def("__eq__",
           [](const ValueHandle& a, const py::object& b) {
             if (!py::isinstance<ValueHandle>(b)) return false;
             const NodeEntry& other = b.cast<const ValueHandle&>().entry;
             return other.node == a.entry.node && other.entry == a.entry.entry;
           })
      .def("__hash__",
           [](const ValueHandle& v) {
             return std::hash<const Node*>()(v.entry.node) * 31 +
                    static_cast<std::size_t>(v.entry.entry);
           })
      .def("__repr__", &describeValue);
}

}  // namespace passlib
