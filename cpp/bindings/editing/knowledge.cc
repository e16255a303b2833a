// Facts about graphs while passes and rules change them.
#include "bindings/editing/knowledge.h"

#include <pybind11/stl.h>

#include <map>
#include <string>
#include <utility>

#include "bindings/bindings.h"
#include "bindings/editing/matched.h"
#include "bindings/files/onnx_file.h"

namespace passlib {

std::shared_ptr<const onnx::Originals> originalsOf(const py::object& file) {
  return file.is_none() ? nullptr : file.cast<OnnxFile&>().originals();
}

namespace {

using facts::Dim;

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
    knowledge_ = std::make_unique<GraphKnowledge>(graph.graph, originalsOf(file), assumptions);
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
