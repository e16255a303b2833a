// Facts about the values of ONNX graphs.

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings/array_facts.h"
#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/calls/exit_gate.h"
#include "bindings/calls/native_call.h"
#include "bindings/common.h"
#include "bindings/files/named_arrays.h"
#include "bindings/files/onnx_file.h"
#include "bindings/weights/scaled_array.h"
#include "facts/file_facts.h"
#include "facts/node_view.h"
#include "facts/table.h"
#include "facts/work.h"
#include "graph/attributes.h"
#include "model/functions.h"
#include "model/library_nodes.h"
#include "model/nested_graphs.h"

namespace passlib {

namespace {

using facts::Dim;
using facts::Fact;
using facts::Facts;
using facts::FileFacts;
using facts::GivenTypes;
using facts::Shape;
using facts::Type;
using facts::Wrapper;

/// Describes arrays.
class ArrayFacts {
 public:
  Fact of(PyObject* object) {
    if (isScaled(object)) {
      const auto& scaled = py::handle(object).cast<const ScaledArray&>();
      const std::vector<int64_t> shape = scaled.shape();
      Fact fact = Fact::tensor(typeOf(scaled.type()), Shape(shape.begin(), shape.end()));
      fact.constant = true;
      return fact;
    }
    if (!py::isinstance<py::array>(object)) return {};
    auto array = py::reinterpret_borrow<py::array>(object);
    Fact fact =
        Fact::tensor(typeOf(array.dtype()), Shape(array.shape(), array.shape() + array.ndim()));
    fact.constant = true;
    if (static_cast<std::size_t>(array.size()) <= facts::kMostElements) {
      if ((array.flags() & py::array::c_style) == 0) {
        array = py::module_::import("numpy").attr("ascontiguousarray")(array);
      }
      if (array.dtype().byteorder() != '>') {
        fact.content = facts::elementsContent(fact.type, static_cast<const char*>(array.data()),
                                              static_cast<std::size_t>(array.size()));
      }
    }
    return fact;
  }

 private:
  Type typeOf(const py::dtype& dtype) {
    const auto [place, fresh] = types_.try_emplace(dtype.ptr(), facts::kUnknownType);
    if (fresh) {
      kept_.push_back(dtype);
      place->second = facts::typeNamed(dtype.attr("name").cast<std::string>());
    }
    return place->second;
  }

  std::map<PyObject*, Type> types_;
  std::vector<py::object> kept_;
};

}  // namespace

FileFacts::Known arrayFacts(const Graph& graph, const py::dict& params) {
  NamedArrays arrays(params);
  ArrayFacts describer;
  FileFacts::Known known;
  for (const Node* node : graph.nodes) {
    if (node->op != "null") continue;
    PyObject* const array = arrays.find(node->name);
    if (array != nullptr && array != Py_None) known.emplace(node, describer.of(array));
  }
  return known;
}

namespace {

/// Estimates for each node: flops, bytes read, written, of weights, and alive.
using WorkTuples = std::vector<std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t>>;

WorkTuples tuplesOf(const std::vector<facts::Work>& works) {
  WorkTuples made;
  for (const facts::Work& each : works) {
    made.emplace_back(each.flops, each.read, each.written, each.weights, each.live);
  }
  return made;
}

/// Facts for Python.
class GraphFacts {
 public:
  GraphFacts(py::object owner, GraphSource& source, const facts::Opsets& opsets,
             const py::dict& params, const GivenTypes& given, bool with_stated, bool large_sizes,
             bool believe_stated)
      : owner_(std::move(owner)) {
    const std::shared_ptr<const Graph> graph = source.get();
    // With the GIL, before inference.
    FileFacts::Known known = arrayFacts(*graph, params);
    known_ =
        std::make_unique<FileFacts>(owner_.cast<OnnxFile&>().originals(), graph, std::move(known));
    const ReleasedGil released;
    known_->infer(opsets, given, with_stated, large_sizes, believe_stated);
  }

  /// For each node, for each output: element type, containers, sizes, elements, whether it is
  /// constant, and the type of keys.
  py::list listed() const {
    py::list nodes;
    for (const Node* node : graph().nodes) nodes.append(outputsOf(node));
    return nodes;
  }

  /// For each node, for each output, type and shape as text; empty for what is absent.
  py::list printed() const {
    py::list nodes;
    for (const Node* node : graph().nodes) {
      py::list outputs;
      const auto count = static_cast<std::size_t>(std::max(node->num_outputs, 1));
      for (std::size_t i = 0; i < count; ++i) {
        const Fact& fact = facts().of(node, i);
        outputs.append(fact.present && !known_->source().isOmitted(*node, i) ? decode(print(fact))
                                                                             : py::str(""));
      }
      nodes.append(outputs);
    }
    return nodes;
  }

  WorkTuples works(const std::set<std::string>& weights) const {
    return tuplesOf(facts::worksOf(
        *known_, [&weights](const Node& node) { return weights.count(node.name) != 0; }));
  }

  /// The same as `listed` by the places of nodes in the file, for nested graphs too.
  py::dict placed() const {
    py::dict found;
    mxnet::ext::host::forEachNode(
        const_cast<Graph*>(&graph()), [](Graph*) {},
        [&](Graph*, Node* node) {
          const std::string_view place = attributeOf(*node, "__id__");
          if (!place.empty()) found[decode(place)] = outputsOf(node);
        });
    return found;
  }

  /// The places of nodes whose results have too many axes: true, or may have: false.
  py::dict wide() const {
    py::dict found;
    for (const auto& [node, certain] : facts().wide()) {
      const std::string_view place = attributeOf(*node, "__id__");
      if (!place.empty()) found[decode(place)] = certain;
    }
    return found;
  }

  /// The file with other bodies of local functions; None if all stay. `change` gets the bytes of a
  /// body as a model and the name of the function, and returns the bytes of a model or None.
  py::object withFunctions(const py::function& change, bool cheaper, bool passes_errors) const {
    const GateHold hold;
    const OnnxFile& file = owner_.cast<OnnxFile&>();
    file.memory.check();
    const auto changed = [&change](const std::string& body, const std::string& name) {
      return change(py::bytes(body), decode(name)).cast<std::optional<std::string>>();
    };
    const std::optional<std::string> made = model::withFunctions(
        file.memory.bytes(), *known_, changed, model::KeptBodies{cheaper, passes_errors});
    return made ? py::object(py::bytes(*made)) : py::none();
  }

  /// For each node the texts of __ext_shape__ and __ext_dtype__; None if a value is not known in
  /// full, or the file states another type. `codes`: MXNet's numbers of element types by ONNX's.
  py::object texts(const std::map<int, int>& codes) const {
    std::vector<std::pair<std::string, std::string>> made;
    {
      const ReleasedGil released;
      made = known_->texts(codes);
    }
    if (made.size() != graph().nodes.size()) return py::none();
    py::list list;
    for (const auto& [shapes, types] : made) list.append(py::make_tuple(shapes, types));
    return std::move(list);
  }

 private:
  py::list outputsOf(const Node* node) const {
    py::list outputs;
    const auto count = static_cast<std::size_t>(std::max(node->num_outputs, 1));
    for (std::size_t i = 0; i < count; ++i) outputs.append(described(facts().of(node, i)));
    return outputs;
  }

  static py::object item(const Dim& dim) {
    if (dim.isNumber()) return py::int_(dim.number());
    if (!dim.isKnown()) return py::none();
    return decode(print(dim));
  }

  static py::tuple described(const Fact& fact) {
    std::string wrappers;
    for (const Wrapper wrapper : fact.wrappers) {
      wrappers += wrapper == Wrapper::kSequence ? 's' : wrapper == Wrapper::kOptional ? 'o' : 'm';
    }
    py::object dims = py::none();
    if (fact.shape) {
      py::list list;
      for (const Dim& dim : *fact.shape) list.append(item(dim));
      dims = std::move(list);
    }
    py::object items = py::none();
    if (fact.content != nullptr && (fact.content->reals.empty() || !fact.content->items.empty())) {
      py::list list;
      for (std::size_t i = 0; i < fact.content->items.size(); ++i) {
        const bool real = !fact.content->divisors.empty();
        py::object one = item(fact.content->items[i]);
        list.append(real ? py::object(py::make_tuple(one, fact.content->divisors[i])) : one);
      }
      items = std::move(list);
    }
    return py::make_tuple(static_cast<int>(fact.type), wrappers, dims, items, fact.constant,
                          static_cast<int>(fact.key));
  }

  const Graph& graph() const { return known_->graph(); }
  const Facts& facts() const { return known_->facts(); }

  py::object owner_;
  std::unique_ptr<FileFacts> known_;
};

/// `sizes`: of the outputs of each node, its dimensions or None, and the bytes of an element.
WorkTuples works(
    GraphSource& source,
    const std::vector<std::vector<std::pair<std::optional<std::vector<int64_t>>, int64_t>>>& sizes,
    const std::set<std::string>& weights) {
  const std::shared_ptr<const Graph> graph = source.get();
  if (sizes.size() != graph->nodes.size()) throw py::value_error("sizes: one list for each node");
  std::unordered_map<const Node*, std::size_t> places;
  for (std::size_t i = 0; i < sizes.size(); ++i) places[graph->nodes[i]] = i;
  const auto size_of = [&](const NodeEntry& entry) -> facts::ValueSize {
    const auto& outputs = sizes[places.at(entry.node)];
    const auto number = static_cast<std::size_t>(entry.entry);
    if (entry.entry < 0 || number >= outputs.size()) return {};
    return {outputs[number].first, outputs[number].second};
  };
  const auto is_weight = [&weights](const Node& node) { return weights.count(node.name) != 0; };
  return tuplesOf(facts::worksOf(*graph, size_of, is_weight));
}

/// The operators that ONNX lacks, and the first node of each.
py::dict unknownOperators(GraphSource& source) {
  py::dict found;
  for (const auto& [op, node] : facts::unknownOperators(*source.get())) {
    found[decode(op)] = decode(node);
  }
  return found;
}

std::size_t nestedBytes(OnnxFile& file, GraphSource& source) {
  return model::nestedBytes(*source.get(), *file.originals());
}

/// The file with other nested graphs of the nodes of its main graph; None if all stay. `change`
/// gets the bytes of a model, and returns those of another one or None.
py::object withNestedGraphs(OnnxFile& file, const py::function& change) {
  const GateHold hold;
  model::NestedSource source{file.memory.bytes(), file.originals(), file.graph->get(), {}};
  for (const auto& [domain, version] : file.model.imports) {
    source.opsets[std::string(domain)] = version;
  }
  const auto changed = [&change](const std::string& graph) {
    return change(py::bytes(graph)).cast<std::optional<std::string>>();
  };
  const std::optional<std::string> made = model::withNestedGraphs(source, changed);
  return made ? py::object(py::bytes(*made)) : py::none();
}

std::shared_ptr<model::LibraryNodes> libraryNodes(OnnxFile& file, GraphSource& source,
                                                  const facts::Opsets& opsets,
                                                  const py::dict& params, const GivenTypes& given,
                                                  const model::LibraryOperators& operators,
                                                  const py::function& write) {
  const GateHold hold;
  const std::shared_ptr<const Graph> graph = source.get();
  if (!model::hasLibraryNodes(*graph, file.originals(), operators)) return nullptr;
  model::TypeSources types{file.originals(), arrayFacts(*graph, params), opsets, given};
  auto made = std::make_shared<model::LibraryNodes>();
  runCaptured(write, [&](OnInterrupt how) {
    *made = model::writeLibraryNodes(*graph, std::move(types), operators, how);
  });
  return made;
}

void claimNodes(GraphSource& source, const std::set<std::string>& names) {
  const auto is_known = [&names](const std::string& name) { return names.count(name) != 0; };
  if (!model::needsClaim(*source.get(), is_known)) return;
  model::claimLibraryNodes(source.edit(), is_known);
}

}  // namespace

void bindFacts(py::module_* m) {
  m->def("claim_library_nodes", &claimNodes, py::arg("graph"), py::arg("operators"));
  py::class_<model::LibraryNodes, std::shared_ptr<model::LibraryNodes>>(*m, "LibraryNodes");
  m->def("library_nodes", &libraryNodes, py::arg("file"), py::arg("graph"), py::arg("opsets"),
         py::arg("params"), py::arg("given"), py::arg("operators"), py::arg("write"));
  m->def("nested_bytes", &nestedBytes, py::arg("file"), py::arg("graph"));
  m->def("with_nested_graphs", &withNestedGraphs, py::arg("file"), py::arg("change"));
  m->def("works", &works, py::arg("graph"), py::arg("sizes"), py::arg("weights"));
  m->def("unknown_operators", &unknownOperators, py::arg("graph"));
  py::class_<GraphFacts>(*m, "GraphFacts")
      .def(py::init<py::object, GraphSource&, const facts::Opsets&, const py::dict&,
                    const GivenTypes&, bool, bool, bool>(),
           py::arg("file"), py::arg("graph"), py::arg("opsets"), py::arg("params"),
           py::arg("given") = GivenTypes(), py::arg("stated") = false,
           py::arg("large_sizes") = true, py::arg("believe_stated") = false)
      .def("texts", &GraphFacts::texts, py::arg("codes"))
      .def("listed", &GraphFacts::listed)
      .def("printed", &GraphFacts::printed)
      .def("works", &GraphFacts::works, py::arg("weights"))
      .def("placed", &GraphFacts::placed)
      .def("wide", &GraphFacts::wide)
      .def("with_functions", &GraphFacts::withFunctions, py::arg("change"), py::arg("cheaper"),
           py::arg("passes_errors"));
}

}  // namespace passlib
