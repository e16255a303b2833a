// Facts about the values of ONNX graphs.

#include "facts/facts.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/common.h"
#include "bindings/files/named_arrays.h"
#include "bindings/files/onnx_file.h"
#include "bindings/weights/scaled_array.h"
#include "facts/node_view.h"
#include "facts/onnx_source.h"
#include "facts/table.h"
#include "graph/attributes.h"

namespace passlib {

namespace {

using facts::Dim;
using facts::Fact;
using facts::Facts;
using facts::OnnxSource;
using facts::Shape;
using facts::Type;
using facts::Wrapper;

/// Types of variables by name as a caller states them: ONNX's element type, and sizes of which -1
/// is unknown.
using GivenTypes =
    std::map<std::string, std::tuple<std::optional<int>, std::optional<std::vector<int64_t>>>>;

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

/// The facts of a graph that came from a file, with other weights and given types.
class GraphFacts {
 public:
  GraphFacts(py::object owner, GraphSource& graph, const facts::Opsets& opsets,
             const py::dict& params, const GivenTypes& given, bool with_stated, bool large_sizes,
             bool believe_stated)
      : owner_(std::move(owner)), graph_(graph.get()) {
    source_ = std::make_unique<OnnxSource>(owner_.cast<OnnxFile&>().originals());
    // Arrays are described with the GIL, before inference.
    NamedArrays arrays(params);
    ArrayFacts describer;
    for (const Node* node : graph_->nodes) {
      if (node->op != "null") continue;
      PyObject* const array = arrays.find(node->name);
      if (array != nullptr && array != Py_None) known_.emplace(node, describer.of(array));
    }
    for (const Node* node : graph_->nodes) {
      const auto stated = node->op == "null" ? given.find(node->name) : given.end();
      if (stated == given.end()) continue;
      const auto& [code, dims] = stated->second;
      Fact fact = source_->describe(*node);
      const bool other = fact.constant || fact.content != nullptr;
      if (other) fact = Fact::tensor(fact.type);
      if (code) fact.type = static_cast<Type>(*code);
      if (dims) {
        Shape shape;
        for (std::size_t i = 0; i < dims->size(); ++i) {
          Dim dim = (*dims)[i] < 0 ? Dim() : Dim((*dims)[i]);
          if (!dim.isKnown() && fact.shape && fact.shape->size() == dims->size()) {
            dim = (*fact.shape)[i];
          }
          shape.push_back(std::move(dim));
        }
        fact.shape = std::move(shape);
      }
      known_[node] = std::move(fact);
    }
    facts::Settings settings = source_->settings(opsets, with_stated);
    settings.large_sizes = large_sizes;
    settings.believe_stated = believe_stated;
    settings.describe = [this](const Node& node) {
      const auto found = known_.find(&node);
      return found != known_.end() ? found->second : source_->describe(node);
    };
    facts_ = std::make_unique<Facts>(graph_.get(), std::move(settings));
    const ReleasedGil released;
    facts_->infer();
  }

  const Graph& graph() const { return *graph_; }
  const Facts& facts() const { return *facts_; }

  /// For each node, for each output: element type, containers, sizes, elements, whether it is
  /// constant, and the type of keys.
  py::list listed() const {
    py::list nodes;
    for (const Node* node : graph_->nodes) nodes.append(outputsOf(node));
    return nodes;
  }

  /// For each node, for each output, type and shape as text; empty for what is absent.
  py::list printed() const {
    py::list nodes;
    for (const Node* node : graph_->nodes) {
      py::list outputs;
      const auto count = static_cast<std::size_t>(std::max(node->num_outputs, 1));
      for (std::size_t i = 0; i < count; ++i) {
        const Fact& fact = facts_->of(node, i);
        outputs.append(fact.present && !source_->isOmitted(*node, i) ? decode(print(fact))
                                                                     : py::str(""));
      }
      nodes.append(outputs);
    }
    return nodes;
  }

  /// Whether inference knows the outputs of the graph, which have these names in the file, and
  /// finds what the file states of them: a tensor with a shape.
  bool confirms(const std::vector<std::string>& names) const {
    if (names.size() != graph_->outputs.size()) return false;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Fact* const expected = source_->stated(names[i]);
      const NodeEntry& head = graph_->outputs[i];
      const Fact& found = facts_->of(head.node, static_cast<std::size_t>(head.entry));
      if (expected == nullptr || !expected->shape || !found.isTensor() ||
          found.type == facts::kUnknownType || expected->type != found.type ||
          disagree(*expected, found)) {
        return false;
      }
    }
    return true;
  }

  /// The same as `listed` by the places of nodes in the file, for nested graphs too.
  py::dict placed() const {
    py::dict found;
    mxnet::ext::host::forEachNode(
        const_cast<Graph*>(graph_.get()), [](Graph*) {},
        [&](Graph*, Node* node) {
          const std::string_view place = attributeOf(*node, "__id__");
          if (!place.empty()) found[decode(place)] = outputsOf(node);
        });
    return found;
  }

  /// The places of nodes whose results have too many axes: true, or may have: false.
  py::dict wide() const {
    py::dict found;
    for (const auto& [node, certain] : facts_->wide()) {
      const std::string_view place = attributeOf(*node, "__id__");
      if (!place.empty()) found[decode(place)] = certain;
    }
    return found;
  }

  /// For each function that is called, by domain and name: the number of calls, and what holds of
  /// its inputs at all of them.
  py::dict calls() const {
    py::dict found;
    for (const auto& [key, calls] : facts_->calls()) {
      py::list inputs;
      for (const Fact& fact : calls.inputs) inputs.append(described(fact));
      found[py::make_tuple(decode(key.first), decode(key.second))] =
          py::make_tuple(calls.nodes.size(), inputs);
    }
    return found;
  }

  /// For each node the texts of __ext_shape__ and __ext_dtype__; None if a value is not known in
  /// full, or the file states another type. `codes`: MXNet's numbers of element types by ONNX's.
  py::object texts(const std::map<int, int>& codes) const {
    std::vector<std::pair<std::string, std::string>> made;
    {
      const ReleasedGil released;
      if (!appendTexts(codes, &made)) made.clear();
    }
    if (made.size() != graph_->nodes.size()) return py::none();
    py::list list;
    for (const auto& [shapes, types] : made) list.append(py::make_tuple(shapes, types));
    return std::move(list);
  }

 private:
  bool appendTexts(const std::map<int, int>& codes,
                   std::vector<std::pair<std::string, std::string>>* made) const {
    std::set<std::pair<const Node*, int>> used;
    for (const Node* node : graph_->nodes) {
      for (const NodeEntry& input : node->inputs) {
        if (input.node->num_outputs > 1) used.emplace(input.node, input.entry);
      }
    }
    for (const NodeEntry& head : graph_->outputs) used.emplace(head.node, head.entry);
    for (const Node* node : graph_->nodes) {
      auto& [shapes, types] = made->emplace_back("[", "[");
      const int count = std::max(node->num_outputs, 1);
      for (int i = 0; i < count; ++i) {
        const Fact& fact = facts_->of(node, static_cast<std::size_t>(i));
        if (i > 0) {
          shapes += ",";
          types += ",";
        }
        if (!fact.present || (source_->isOmitted(*node, static_cast<std::size_t>(i)) &&
                              used.count({node, i}) == 0)) {
          shapes += "None";
          types += "-1";
          continue;
        }
        if (fact.type == facts::kUnknownType || !fact.isTensor() || !fact.shape ||
            !facts::isStatic(*fact.shape) ||
            contradicts(*node, static_cast<std::size_t>(i), fact)) {
          return false;
        }
        shapes += "[";
        for (std::size_t k = 0; k < fact.shape->size(); ++k) {
          if (k > 0) shapes += ",";
          shapes += std::to_string((*fact.shape)[k].number());
        }
        shapes += "]";
        const auto code = codes.find(static_cast<int>(fact.type));
        types += code == codes.end() ? "-1" : std::to_string(code->second);
      }
      shapes += "]";
      types += "]";
    }
    return true;
  }

  /// Whether the file states another type of a value.
  bool contradicts(const Node& node, std::size_t output, const Fact& fact) const {
    const Fact* stated = source_->stated(node, output);
    return stated != nullptr && disagree(*stated, fact);
  }

  /// Whether a stated type contradicts that of a tensor.
  static bool disagree(const Fact& stated, const Fact& fact) {
    if (!stated.wrappers.empty() ||
        (stated.type != facts::kUnknownType && stated.type != fact.type)) {
      return true;
    }
    if (!stated.shape || !fact.shape) return false;
    if (stated.shape->size() != fact.shape->size()) return true;
    for (std::size_t i = 0; i < fact.shape->size(); ++i) {
      if (differ((*stated.shape)[i], (*fact.shape)[i])) return true;
    }
    return false;
  }

  py::list outputsOf(const Node* node) const {
    py::list outputs;
    const auto count = static_cast<std::size_t>(std::max(node->num_outputs, 1));
    for (std::size_t i = 0; i < count; ++i) outputs.append(described(facts_->of(node, i)));
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

  py::object owner_;
  std::shared_ptr<const Graph> graph_;
  std::unique_ptr<OnnxSource> source_;
  std::unordered_map<const Node*, Fact> known_;
  std::unique_ptr<Facts> facts_;
};

/// The operators of ONNX's own domain that no rule knows, nested graphs included: the name of the
/// first node of each.
py::dict unknownOperators(GraphSource& source) {
  py::dict found;
  const std::shared_ptr<const Graph> graph = source.get();
  mxnet::ext::host::forEachNode(
      const_cast<Graph*>(graph.get()), [](Graph*) {},
      [&](Graph*, Node* node) {
        if (node->op == "null") return;
        const std::string_view domain = attributeOf(*node, "__domain__");
        if (!domain.empty() && domain != "ai.onnx") return;
        if (facts::findRule("", node->op) != nullptr) return;
        const py::str op = decode(node->op);
        if (!found.contains(op)) found[op] = decode(node->name);
      });
  return found;
}

}  // namespace

void bindFacts(py::module_* m) {
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
      .def("confirms", &GraphFacts::confirms, py::arg("outputs"))
      .def("placed", &GraphFacts::placed)
      .def("wide", &GraphFacts::wide)
      .def("calls", &GraphFacts::calls);
}

}  // namespace passlib
