// passlib._core.Edit: rules and algorithms of the core, and facts, for graphs of Python's.
#include "bindings/editing/edit.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <utility>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/files/onnx_file.h"
#include "model/standard.h"
#include "moves/half_types.h"
#include "moves/kernels.h"
#include "moves/moves.h"

namespace passlib {

namespace {

using facts::Dim;
using model::Edit;
using model::StandardPasses;
using rules::Assumptions;

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

std::shared_ptr<const onnx::Originals> originalsOf(const py::object& file) {
  return file.is_none() ? nullptr : file.cast<OnnxFile&>().originals();
}

/// The facts of the values of a graph as it was when they were inferred.
class EditedFacts {
 public:
  EditedFacts(PythonEdit* edit, const Assumptions& assumptions)
      : owner_(edit->owner()), knowledge_(edit->edit().knowledge(assumptions)) {
    knowledge_->infer();
  }

  int type(const ValueHandle& value) const {
    const facts::Fact& fact = inferred(value);
    return fact.isTensor() ? fact.type : 0;
  }

  /// The dimensions; None if the rank is unknown.
  py::object shape(const ValueHandle& value) const {
    const facts::Fact& fact = inferred(value);
    if (!fact.isTensor() || !fact.shape) return py::none();
    return tuple(*fact.shape);
  }

  /// The elements of a small tensor of integers in row-major order; None unless all are known.
  py::object items(const ValueHandle& value) const {
    const std::vector<Dim>* items = facts::wholeItems(inferred(value));
    return items == nullptr ? py::object(py::none()) : tuple(*items);
  }

 private:
  const facts::Fact& inferred(const ValueHandle& value) const {
    owner_->requireOpen();
    return knowledge_->inferred(value.entry);
  }

  static py::tuple tuple(const std::vector<Dim>& dims) {
    py::tuple made(dims.size());
    for (std::size_t i = 0; i < dims.size(); ++i) made[i] = objectOf(dims[i]);
    return made;
  }

  std::shared_ptr<EditedGraph> owner_;  ///< of the nodes
  std::shared_ptr<rules::GraphKnowledge> knowledge_;
};

std::vector<std::size_t> applyRules(PythonEdit* edit, const rules::Book& book,
                                    const std::vector<std::size_t>& chosen,
                                    const Assumptions& assumptions, const model::NodeNames& kept) {
  const auto counts = edit->edit().apply(book, chosen, assumptions, kept, edit->fold());
  edit->settle();
  return counts;
}

/// Returns what the pass printed.
std::string runStandard(const StandardPasses& passes, const std::string& name, PythonEdit* edit,
                        const OptionList& options, const Assumptions& assumptions) {
  passes.run(&edit->edit(), passes.numberOf(name), options, assumptions, edit->fold());
  edit->settle();
  return edit->edit().takePrinted();
}

/// The bytes of a model that a pass on messages changed; None if it stays. `since(operator, domain,
/// version)`: see model::SinceVersion.
py::object changedMessage(const StandardPasses& passes, const std::string& name,
                          const py::bytes& model, const OptionList& options,
                          const py::function& since) {
  const auto asked = [&since](const std::string& op, const std::string& domain, int64_t version) {
    return since(decode(op), decode(domain), version).cast<int64_t>();
  };
  const auto made = passes.changedMessage(passes.numberOf(name), py::cast<std::string_view>(model),
                                          options, asked);
  return made ? py::object(py::bytes(*made)) : py::none();
}

/// A lent array, with its dtype code, as a tensor.
Edit::Tensor tensorOf(const py::array& array, int code) {
  return {const_cast<void*>(array.data()), Edit::Shape(array.shape(), array.shape() + array.ndim()),
          static_cast<mxnet::ext::MXDType>(code), 0, mxnet::ext::MXContext::CPU()};
}

/// The result of an operator on arrays, each with its dtype code; None if the core cannot compute
/// it, or if `allocate(shape, code)` returns None.
py::object compute(const NodeHandle& node, const std::vector<std::pair<py::array, int>>& arrays,
                   const py::function& allocate) {
  std::deque<Edit::Tensor> tensors;
  std::vector<const Edit::Tensor*> inputs;
  for (const auto& [array, code] : arrays) {
    tensors.push_back(tensorOf(array, code));
    inputs.push_back(&tensors.back());
  }
  py::object made = py::none();
  const auto give = [&](const Edit::Shape& shape, mxnet::ext::MXDType type) -> const Edit::Tensor* {
    made = allocate(py::cast(shape), static_cast<int>(type));
    if (made.is_none()) return nullptr;
    tensors.push_back(tensorOf(made.cast<py::array>(), static_cast<int>(type)));
    return &tensors.back();
  };
  return moves::compute(*node.live(), inputs, give) ? made : py::none();
}

/// A new weight as `settle` gets it.
py::tuple described(const Edit::NewWeight& weight) {
  const auto& array = *static_cast<const py::array*>(weight.owner.get());
  return py::make_tuple(array, weight.smallType());
}

void bindDim(py::module_* m) {
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
}

}  // namespace

PythonEdit::PythonEdit(const GraphHandle& graph, const AttributeTexts& attributes,
                       const py::list& params, const py::object& file, py::function allocate,
                       py::function settle)
    : owner_(graph.owner),
      file_(file),
      allocate_(std::move(allocate)),
      settle_(std::move(settle)),
      edit_(std::make_unique<Edit>(
          owner_, attributes, originalsOf(file),
          [this](const Edit::Shape& shape, mxnet::ext::MXDType type) -> Edit::Memory {
            arrays_.push_back(allocate_(py::cast(shape), static_cast<int>(type)).cast<py::array>());
            return {arrays_.back().mutable_data(), ownerOf(arrays_.back())};
          },
          [this](const Edit::NewWeight& weight) { give(weight); })) {
  lend(params);
}

void PythonEdit::lend(const py::list& params) {
  TextMap<Edit::Tensor> weights;
  for (const py::handle& item : params) {
    const auto fields = item.cast<py::tuple>();
    arrays_.push_back(fields[1].cast<py::array>());
    weights.emplace(fields[0].cast<std::string>(), tensorOf(arrays_.back(), fields[2].cast<int>()));
  }
  edit_->lend([&weights](const std::string& name) -> std::optional<Edit::Tensor> {
    const auto found = weights.find(name);
    if (found == weights.end()) return std::nullopt;
    return found->second;
  });
}

Edit::Fold PythonEdit::fold() {
  return [this](const std::vector<Node*>& folds) {
    const py::object lent = settled(folds);
    if (lent.is_none()) return false;
    lend(lent.cast<py::list>());
    return true;
  };
}

void PythonEdit::give(const Edit::NewWeight& weight) {
  const auto own = std::find_if(arrays_.rbegin(), arrays_.rend(), [&](const py::array& each) {
    return each.data() == weight.tensor->data_ptr;
  });
  if (own != arrays_.rend()) arrays_.erase(std::next(own).base());
  py::dict made;
  made[decode(weight.node->name)] = described(weight);
  settle_(made, py::list(), py::list());
}

py::object PythonEdit::settled(const std::vector<Node*>& folds) {
  py::dict made;
  for (const Edit::NewWeight& each : edit_->takeMade()) {
    made[decode(each.node->name)] = described(each);
  }
  py::list gone;
  for (const std::string& name : edit_->takeGone()) gone.append(decode(name));
  if (made.empty() && gone.empty() && folds.empty()) return py::none();
  py::list nodes;
  for (Node* node : folds) nodes.append(NodeHandle{owner_, owner_->root(), node});
  return settle_(made, gone, nodes);
}

void bindEdits(py::module_* m) {
  bindDim(m);
  py::class_<Assumptions>(*m, "Assumptions")
      .def(py::init([](bool large_sizes, bool empty_errors) {
             return Assumptions{large_sizes, empty_errors};
           }),
           py::arg("large_sizes") = true, py::arg("empty_errors") = true);
  py::class_<EditedFacts>(*m, "EditedFacts")
      .def("type", &EditedFacts::type, py::arg("value"))
      .def("shape", &EditedFacts::shape, py::arg("value"))
      .def("items", &EditedFacts::items, py::arg("value"));
  py::class_<PythonEdit>(*m, "Edit")
      .def(py::init<const GraphHandle&, const AttributeTexts&, const py::list&, const py::object&,
                    py::function, py::function>(),
           py::arg("graph"), py::arg("attributes"), py::arg("params"), py::arg("file"),
           py::arg("allocate"), py::arg("settle"))
      .def("apply", &applyRules, py::arg("book"), py::arg("chosen"), py::arg("assumptions"),
           py::arg("kept"))
      .def(
          "why",
          [](PythonEdit& edit, const rules::Book& book, std::size_t rule, const NodeHandle& node) {
            return edit.edit().why(book, rule, node.live());
          },
          py::arg("book"), py::arg("rule"), py::arg("node"))
      .def(
          "facts",
          [](PythonEdit& edit, const Assumptions& assumptions) {
            return EditedFacts(&edit, assumptions);
          },
          py::arg("assumptions"));
  py::class_<StandardPasses>(*m, "StandardPasses")
      .def(py::init<const std::string&>(), py::arg("folder"))
      .def("run", &runStandard, py::arg("name"), py::arg("edit"), py::arg("options"),
           py::arg("assumptions"))
      .def("is_of_messages",
           [](const StandardPasses& passes, const std::string& name) {
             return passes.isOfMessages(passes.numberOf(name));
           })
      .def("changed_message", &changedMessage, py::arg("name"), py::arg("model"),
           py::arg("options"), py::arg("since"));
  m->def("compute", &compute, py::arg("node"), py::arg("arrays"), py::arg("allocate"));
  m->def("has_kernel", &moves::hasKernel, py::arg("op"), py::arg("type"), py::arg("opset"));
  m->def("kernels", &moves::kernels);
  m->def("half_types", &moves::halfTypes, py::arg("op"), py::arg("opset"), py::arg("type"));
}

}  // namespace passlib
