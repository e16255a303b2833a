// Facts about graphs while passes and rules change them.
#include "bindings/editing/knowledge.h"

#include <pybind11/stl.h>

#include <map>
#include <string>
#include <utility>

#include "bindings/bindings.h"
#include "bindings/editing/matched.h"
#include "bindings/files/onnx_file.h"
#include "facts/node_view.h"
#include "graph/attributes.h"
#include "rules/attributes.h"
#include "rules/engine.h"

namespace passlib {
namespace {

using facts::Dim;

/// Whether a node is a constant of the graph, whose array `tensor` is.
bool isConstant(const Node& node) {
  return node.tensor != nullptr && node.op == "null" && node.attrs.count("__default__") == 0 &&
         attributeOf(node, "__id__").substr(0, 6) != "input.";
}

/// The kind and contents of a constant of a graph.
facts::Fact constantFact(const mxnet::ext::MXTensor& tensor) {
  const auto type = static_cast<facts::Type>(rules::onnxType(tensor.dtype));
  facts::Fact fact =
      facts::Fact::tensor(type, facts::Shape(tensor.shape.begin(), tensor.shape.end()));
  fact.constant = true;
  if (tensor.size() <= static_cast<int64_t>(facts::kMostElements)) {
    fact.content = facts::elementsContent(type, static_cast<const char*>(tensor.data_ptr),
                                          static_cast<std::size_t>(tensor.size()));
  }
  return fact;
}

/// The type that a pass states for a variable that is new to the file.
facts::Fact statedFact(const Node& node) {
  const NodeEntry entry(const_cast<Node*>(&node), 0);
  facts::Fact fact;
  fact.type = static_cast<facts::Type>(rules::onnxType(mxnet::ext::typeOf(entry)));
  const auto opaque = node.attrs.find("__opaque__");  // a type without a number of MXNet's
  if (opaque != node.attrs.end()) fact.type = facts::typeNamed(opaque->second);
  const mxnet::ext::ValueShape shape = mxnet::ext::shapeOf(entry);
  if (!shape.known) return fact;
  fact.shape.emplace();
  for (const int64_t size : shape.extents)
    fact.shape->push_back(size < 0 ? facts::Dim() : facts::Dim(size));
  return fact;
}

}  // namespace

GraphKnowledge::GraphKnowledge(const GraphHandle& graph, const py::object& file,
                               const Assumptions& assumptions)
    : root_(graph.graph) {
  facts::Settings settings;
  if (!file.is_none()) {
    source_ = std::make_unique<facts::OnnxSource>(file.cast<OnnxFile&>().originals());
    settings = source_->settings({}, false);
    // Files whose inputs were edited often state shapes that no longer hold.
    settings.stated = [this](const Node& node, std::size_t output) {
      return isOwnDomain(node) ? nullptr : source_->stated(node, output);
    };
  }
  settings.large_sizes = assumptions.large_sizes;
  settings.empty_errors = assumptions.empty_errors;
  for (const auto& [domain, version] : rules::operatorSetsOf(*root_))
    settings.opsets[domain] = version;
  settings.describe = [this](const Node& node) { return describe(node); };
  facts_ = std::make_unique<facts::Facts>(root_, std::move(settings));
}

void GraphKnowledge::infer() {
  if (!inferred_) facts_->infer();
  inferred_ = true;
}

rules::Known GraphKnowledge::of(const NodeEntry& entry) {
  rules::Known known;
  if (isConstant(*entry.node)) {
    known.constant = entry.node->tensor;
    known.fact = constantFact(*known.constant);
  } else {
    infer();
    known.fact = facts_->of(entry);
  }
  return known;
}

void GraphKnowledge::add(const Graph* graph, const Node* node) {
  if (inferred_ && graph == root_) facts_->update({node});
}

facts::Fact GraphKnowledge::describe(const Node& node) const {
  if (isConstant(node)) return constantFact(*node.tensor);
  const bool stated = node.attrs.count("__shape__") != 0 || node.attrs.count("__dtype__") != 0;
  if (source_ == nullptr || stated) return statedFact(node);
  return source_->describe(node);
}

namespace {

py::object objectOf(const Dim& dim) {
  return dim.isNumber() ? py::object(py::int_(dim.number())) : py::cast(dim);
}

/// Reads an int or a Dim. An int that is too large is unknown.
Dim dimOf(const py::object& object) {
  if (py::isinstance<Dim>(object)) return object.cast<Dim>();
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
  return overflow != 0 ? Dim() : Dim(number);
}

/// The facts of the values of a graph as it was when they were inferred, for Python.
class EditedFacts {
 public:
  EditedFacts(const GraphHandle& graph, const AttributeTexts& attributes, const py::list& params,
              const py::object& file, const Assumptions& assumptions)
      : owner_(graph.owner), file_(file) {
    const MatchedGraph lending(graph, attributes, params, false);
    knowledge_ = std::make_unique<GraphKnowledge>(graph, file, assumptions);
    knowledge_->infer();
  }

  int type(const ValueHandle& value) const {
    const facts::Fact& fact = knowledge_->inferred(value.entry);
    return fact.isTensor() ? fact.type : 0;
  }

  /// The dimensions; None if the rank is unknown.
  py::object shape(const ValueHandle& value) const {
    const facts::Fact& fact = knowledge_->inferred(value.entry);
    if (!fact.isTensor() || !fact.shape) return py::none();
    return tuple(*fact.shape);
  }

  /// The elements of a small tensor of integers in row-major order; None unless all are known.
  py::object items(const ValueHandle& value) const {
    const std::vector<Dim>* items = facts::wholeItems(knowledge_->inferred(value.entry));
    return items == nullptr ? py::object(py::none()) : tuple(*items);
  }

 private:
  static py::tuple tuple(const std::vector<Dim>& dims) {
    py::tuple made(dims.size());
    for (std::size_t i = 0; i < dims.size(); ++i) made[i] = objectOf(dims[i]);
    return made;
  }

  std::shared_ptr<EditedGraph> owner_;  ///< of the nodes
  py::object file_;
  std::unique_ptr<GraphKnowledge> knowledge_;
};

}  // namespace

void bindKnowledge(py::module_* m) {
  py::class_<Assumptions>(*m, "Assumptions")
      .def(py::init([](bool large_sizes, bool empty_errors) {
             return Assumptions{large_sizes, empty_errors};
           }),
           py::arg("large_sizes") = true, py::arg("empty_errors") = true);
  const auto sum = [](const Dim& left, const py::object& right) {
    return objectOf(left + dimOf(right));
  };
  const auto product = [](const Dim& left, const py::object& right) {
    return objectOf(left * dimOf(right));
  };
  py::class_<Dim>(*m, "Dim")
      .def("__add__", sum, py::is_operator())
      .def("__radd__", sum, py::is_operator())
      .def("__mul__", product, py::is_operator())
      .def("__rmul__", product, py::is_operator())
      .def(
          "__eq__",
          [](const Dim& left, const py::object& right) {
            return py::isinstance<Dim>(right) && left == right.cast<Dim>();
          },
          py::is_operator())
      .def_property_readonly(
          "terms", [](const Dim& dim) { return dim.isSymbolic() ? dim.terms() : Dim::Terms(); })
      .def("__hash__", [](const Dim& dim) { return std::hash<std::string>()(print(dim)); })
      .def("__repr__", [](const Dim& dim) { return decode(print(dim)); });
  py::class_<EditedFacts>(*m, "EditedFacts")
      .def(py::init<const GraphHandle&, const AttributeTexts&, const py::list&, const py::object&,
                    const Assumptions&>(),
           py::arg("graph"), py::arg("attributes"), py::arg("params"), py::arg("file"),
           py::arg("assumptions"))
      .def("type", &EditedFacts::type, py::arg("value"))
      .def("shape", &EditedFacts::shape, py::arg("value"))
      .def("items", &EditedFacts::items, py::arg("value"));
}

}  // namespace passlib
