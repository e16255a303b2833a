// passlib._core.PatternRules and PatternMatch: the header's patterns for passes in Python.
#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/common.h"
#include "bindings/editing/handles.h"
#include "bindings/editing/matched.h"
#include "errors.h"
#include "lib_patterns.h"

namespace passlib {
namespace {

namespace py = pybind11;
using mxnet::ext::FoundMatch;
using mxnet::ext::Match;
using mxnet::ext::Pattern;
using mxnet::ext::PatternHooks;
using mxnet::ext::PatternSet;

/// A match during the call of the function that replaces it.
struct MatchHandle {
  std::shared_ptr<EditedGraph> owner;
  Match* match;
  MatchedArrays* arrays;

  Match& live() const {
    if (match == nullptr)
      throw GraphError("a match can be used during the call that it was given to only");
    return *match;
  }
  ValueHandle value(const NodeEntry& entry) const { return {owner, live().graph(), entry}; }
};

py::tuple valuesOf(const MatchHandle& handle, const std::vector<NodeEntry>& entries) {
  return valuesOf(GraphHandle{handle.owner, handle.live().graph()}, entries);
}

/// The value of a name, a tuple of values for a variadic one, or None for an absent one.
py::object valueNamed(const MatchHandle& handle, const std::string& name) {
  const Match& match = handle.live();
  try {
    if (!match.has(name)) return py::none();
  } catch (const std::out_of_range& error) {
    throw py::key_error(error.what());
  }
  if (match.isList(name)) return valuesOf(handle, match.list(name));
  return py::cast(handle.value(match[name]));
}

py::object addOperation(const MatchHandle& handle, const std::string& op,
                        const py::sequence& inputs,
                        const std::unordered_map<std::string, std::string>& attributes,
                        int outputs) {
  Match& match = handle.live();
  if (op == "null") throw py::value_error("a parameter is added with m.parameter(suffix, array)");
  const GraphHandle graph{handle.owner, match.graph()};
  std::vector<NodeEntry> entries;
  for (const py::handle& input : inputs) {
    entries.push_back(input.is_none() ? NodeEntry()
                                      : entriesOf(graph, py::make_tuple(input)).front());
  }
  const NodeEntry first = match.op(op, entries, attributes, outputs);
  if (outputs == 1) return py::cast(handle.value(first));
  std::vector<NodeEntry> results;
  for (int i = 0; i < outputs; ++i) results.emplace_back(first.node, i);
  return valuesOf(handle, results);
}

ValueHandle addMatchVariable(const MatchHandle& handle, const std::string& suffix,
                             const py::array& array, int dtype) {
  const bool nested = handle.live().graph() != handle.owner->root();
  if (nested && mxnet::ext::host::dialectOf(*handle.owner->root()) != "onnx") {
    throw UnsupportedError(
        "a nested graph of this dialect cannot get a parameter: leave this match as it is");
  }
  Node* node = handle.live().parameterVariable(suffix);
  node->tensor = handle.arrays->keep(array, dtype);
  return handle.value(NodeEntry(node, 0));
}

void replaceResult(const MatchHandle& handle, const py::object& name, const ValueHandle& value) {
  Match& match = handle.live();
  const NodeEntry entry =
      entriesOf(GraphHandle{handle.owner, match.graph()}, py::make_tuple(value)).front();
  if (name.is_none()) {
    match.replace(entry);
  } else if (py::isinstance<py::int_>(name)) {
    match.replaceAt(name.cast<std::size_t>(), entry);
  } else {
    match.replace(name.cast<std::string>(), entry);
  }
}

py::list nodesOf(const MatchHandle& handle) {
  py::list nodes;
  for (Node* node : handle.live().nodes()) {
    nodes.append(NodeHandle{handle.owner, handle.live().graph(), node});
  }
  return nodes;
}

/// Calls a function with a match, which it can use until it returns.
void callWith(const py::function& function, const MatchHandle& match) {
  const py::object handle = py::cast(match);
  struct End {
    MatchHandle* handle;
    ~End() { handle->match = nullptr; }
  } end{handle.cast<MatchHandle*>()};
  function(handle);
}

/// Patterns that were checked. They are compiled again for each call, which takes microseconds, so
/// that several threads can use them with functions of their own.
class Rules {
 public:
  explicit Rules(std::vector<std::string> texts) : texts_(std::move(texts)) { compile({}); }

  std::size_t apply(const GraphHandle& graph, const AttributeTexts& attributes,
                    const py::list& params, const py::function& function) const {
    const MatchedGraph lending(graph, attributes, params);
    const NotedEdit edit{graph.owner.get()};
    PatternHooks hooks;
    hooks.add_node = [&graph](Graph* where, const std::string& name, const std::string& op) {
      return graph.owner->addNode(where, op, name, {}, 0);
    };
    hooks.remove_node = [&graph](Graph*, Node* node) { graph.owner->noteRemoved(node); };
    const PatternSet patterns = compile([&](Match& match) {
      graph.owner->noteOutputs();
      callWith(function, MatchHandle{graph.owner, &match, lending.arrays()});
    });
    return patterns.apply(graph.graph, hooks);
  }

  py::list find(const GraphHandle& graph, const AttributeTexts& attributes,
                const py::list& params) const {
    const MatchedGraph lending(graph, attributes, params);
    py::list places;
    for (const FoundMatch& found : compile({}).find(graph.graph)) {
      py::list nodes;
      for (const Node* node : found.nodes) nodes.append(node->name);
      py::dict values;
      for (const auto& value : found.values) {
        py::list entries;
        for (const NodeEntry& entry : value.second) {
          entries.append(py::make_tuple(entry.node->name, entry.entry));
        }
        values[py::str(value.first)] = entries;
      }
      places.append(
          py::make_tuple(found.rule, nodes, values, py::dict(py::cast(found.attributes))));
    }
    return places;
  }

  /// The names of the nodes of all matches.
  py::set names(const GraphHandle& graph, const AttributeTexts& attributes,
                const py::list& params) const {
    const MatchedGraph lending(graph, attributes, params);
    py::set names;
    for (const FoundMatch& found : compile({}).find(graph.graph))
      for (const Node* node : found.nodes) names.add(py::str(node->name));
    return names;
  }

  std::string why(const NodeHandle& node, const GraphHandle& graph,
                  const AttributeTexts& attributes, const py::list& params) const {
    const MatchedGraph lending(graph, attributes, params);
    return compile({}).why(graph.graph, node.live());
  }

 private:
  PatternSet compile(const std::function<void(Match&)>& rewrite) const {
    PatternSet patterns;
    for (const std::string& text : texts_) {
      Pattern pattern(text);
      if (rewrite) pattern.rewrite(rewrite);
      patterns.add(pattern);
    }
    return patterns;
  }

  std::vector<std::string> texts_;
};

/// Compiles patterns; one that is not well-formed is a PatternError of passlib.errors.
std::unique_ptr<Rules> makeRules(const std::vector<std::string>& texts) {
  try {
    return std::make_unique<Rules>(texts);
  } catch (const mxnet::ext::PatternError& error) {
    using namespace py::literals;  // NOLINT: this function only
    const py::object type = py::module_::import("passlib.errors").attr("PatternError");
    const py::object made =
        type(decode(error.what()), "line"_a = error.line, "column"_a = error.column);
    PyErr_SetObject(type.ptr(), made.ptr());
    throw py::error_already_set();
  }
}

}  // namespace

void bindPatterns(py::module_* m) {
  py::class_<MatchHandle>(*m, "PatternMatch")
      .def("value", &valueNamed, py::arg("name"))
      .def_property_readonly(
          "graph", [](const MatchHandle& h) { return GraphHandle{h.owner, h.live().graph()}; })
      .def_property_readonly(
          "attrs", [](const MatchHandle& h) { return py::dict(py::cast(h.live().attrs())); })
      .def_property_readonly("results",
                             [](const MatchHandle& h) { return valuesOf(h, h.live().results()); })
      .def_property_readonly("nodes", &nodesOf)
      .def("op", &addOperation, py::arg("op"), py::arg("inputs"), py::arg("attrs"),
           py::arg("num_outputs"))
      .def("variable", &addMatchVariable, py::arg("suffix"), py::arg("array"), py::arg("dtype"))
      .def("replace", &replaceResult, py::arg("name"), py::arg("value"));
  py::class_<Rules>(*m, "PatternRules")
      .def(py::init(&makeRules), py::arg("patterns"))
      .def("apply", &Rules::apply, py::arg("graph"), py::arg("attributes"), py::arg("params"),
           py::arg("function"))
      .def("find", &Rules::find, py::arg("graph"), py::arg("attributes"), py::arg("params"))
      .def("names", &Rules::names, py::arg("graph"), py::arg("attributes"), py::arg("params"))
      .def("why", &Rules::why, py::arg("node"), py::arg("graph"), py::arg("attributes"),
           py::arg("params"));
}

}  // namespace passlib
