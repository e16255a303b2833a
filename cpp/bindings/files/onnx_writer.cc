// passlib._core.OnnxWriter: ONNX models written from memory.

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/array_facts.h"
#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/common.h"
#include "bindings/files/named_arrays.h"
#include "bindings/files/onnx_file.h"
#include "bindings/weights/scaled_array.h"
#include "errors.h"
#include "facts/fact.h"
#include "library/weights/written.h"
#include "model/attributes.h"
#include "model/library_nodes.h"
#include "model/renewal.h"
#include "onnx/acceptance/kinds.h"
#include "onnx/text/strings.h"
#include "onnx/wire/file_output.h"
#include "onnx/writing/model.h"

namespace passlib {

namespace {

using onnx::Bytes;
using onnx::GivenArray;
using onnx::StatedType;

using StatedTuple = std::tuple<std::optional<int32_t>, std::optional<std::vector<int64_t>>>;
using OutputTuple = std::tuple<std::string, std::string, std::string, uint32_t>;
using PresentTuple = std::tuple<bool, std::optional<std::vector<OutputTuple>>>;

/// Types inferred again, for another writer of the same graph.
struct RenewedModel {
  py::object writer;
  std::unique_ptr<const model::Renewed> types;
  std::set<std::string> disputed;
};

StatedType statedOf(const StatedTuple& type) { return {std::get<0>(type), std::get<1>(type)}; }

onnx::Present makePresent(const PresentTuple& given) {
  onnx::Present present;
  present.by_place = std::get<0>(given);
  present.of_file = !std::get<1>(given).has_value();
  if (!present.of_file) {
    for (const auto& [name, key, node, output] : *std::get<1>(given)) {
      present.outputs.push_back({name, key, node, output});
    }
  }
  return present;
}

/// Answers a writer from dictionaries of arrays and functions in Python.
class PythonHost : public onnx::WriteHost {
 public:
  PythonHost(const py::dict& params, const py::dict& constants,
             const std::map<std::string, StatedTuple>& fed, py::function code_of,
             py::function kind_of, std::string omitted)
      : params_(params),
        constants_(constants),
        code_of_(std::move(code_of)),
        kind_of_(std::move(kind_of)),
        omitted_(std::move(omitted)) {
    for (const auto& [name, type] : fed) fed_[name] = statedOf(type);
  }

  void setRenewed(model::RenewedTypes renewed) { renewed_ = std::move(renewed); }

  /// `nodes`: of the graph that is written; may be null, and outlives this object.
  void setLibraryNodes(const model::LibraryNodes* nodes) { library_nodes_ = nodes; }

  bool has(Bytes variable) override {
    PyObject* const found = params_.find(variable);
    if (found == nullptr || found == Py_None) return false;
    if (!py::isinstance<py::array>(found) && !isScaled(found)) {
      throw UnsupportedError("parameter " + onnx::shown(variable) +
                             " is sparse; ONNX files are written with dense ones only");
    }
    return true;
  }

  bool same(Bytes variable, Bytes constant) override {
    PyObject* const left = params_.find(variable);
    PyObject* const right = constants_.find(constant);
    if (left == nullptr || right == nullptr) return false;
    return left == right ||
           (!isScaled(left) && sameContent(py::reinterpret_borrow<py::array>(left),
                                           py::reinterpret_borrow<py::array>(right)));
  }

  GivenArray array(Bytes variable) override {
    PyObject* const found = params_.find(variable);
    if (isScaled(found)) return describeScaled(found, variable);
    auto array = py::reinterpret_borrow<py::array>(found);
    GivenArray given = describe(array, "parameter", variable);
    if ((array.flags() & py::array::c_style) == 0 || array.dtype().byteorder() == '>') {
      const py::object little = array.dtype().attr("newbyteorder")("<");
      array = py::module_::import("numpy").attr("ascontiguousarray")(array, little);
    }
    kept_.push_back(array);
    const Bytes data(static_cast<const char*>(array.data()),
                     static_cast<std::size_t>(array.nbytes()));
    if (given.type == facts::kUint4 || given.type == facts::kInt4) {
      given.computed = &packed_.emplace_back(data);
    } else {
      given.data = data;
    }
    return given;
  }

  bool isInFile(Bytes constant) override { return constants_.find(constant) != nullptr; }

  bool inFile(Bytes constant, GivenArray* array) override {
    PyObject* const found = constants_.find(constant);
    if (found == nullptr) return false;
    *array = describe(py::reinterpret_borrow<py::array>(found), "constant", constant);
    return true;
  }

  const StatedType* fed(Bytes variable) override {
    if (fed_.empty()) return nullptr;
    const auto found = fed_.find(std::string(variable));
    return found == fed_.end() ? nullptr : &found->second;
  }

  StatedType stated(const Node& variable, std::optional<int32_t> code) override {
    return model::statedType(variable, code);
  }

  onnx::MadeAttribute attribute(const Node& node, Bytes key, Bytes text, int kind) override {
    if (kind == 0) {
      kind = kind_of_(decode(node.op), decode(attributeOf(node, onnx::keys::kDomain)), decode(key))
                 .cast<int>();
    }
    return model::makeAttribute(node, key, text, kind);
  }

  Bytes omitted() const override { return omitted_; }

  const std::vector<StatedType>* results(const Node& node) override {
    if (library_nodes_ == nullptr) return nullptr;
    const auto found = library_nodes_->results.find(&node);
    return found == library_nodes_->results.end() ? nullptr : &found->second;
  }

  const onnx::RenewedTypes* renewed(const std::string& place) override {
    const auto found = renewed_.find(place);
    return found == renewed_.end() ? nullptr : &found->second;
  }

 private:
  GivenArray describe(const py::array& array, const char* what, Bytes name) {
    return described(array.dtype(), {array.shape(), array.shape() + array.ndim()}, what, name);
  }

  GivenArray describeScaled(PyObject* found, Bytes variable) {
    kept_.push_back(py::reinterpret_borrow<py::object>(found));
    const auto& array = kept_.back().cast<const ScaledArray&>();
    GivenArray given = described(array.type(), array.shape(), "parameter", variable);
    scaled_.emplace_back(array.elements());
    given.computed = &scaled_.back();
    return given;
  }

  /// `what` and `name` are for messages.
  GivenArray described(const py::dtype& type, std::vector<int64_t> shape, const char* what,
                       Bytes name) {
    const auto [code, fresh] = codes_.try_emplace(type.ptr(), 0);
    if (fresh) {
      kept_.push_back(type);
      try {
        const std::string title = std::string(what) + " " + onnx::shown(name);
        code->second = code_of_(type, decode(title)).cast<int32_t>();
      } catch (...) {
        codes_.erase(type.ptr());
        throw;
      }
    }
    GivenArray given;
    given.type = code->second;
    given.dims = std::move(shape);
    return given;
  }

  NamedArrays params_;
  NamedArrays constants_;
  py::function code_of_;  ///< an element type and a text for messages to ONNX's number
  py::function kind_of_;  ///< operator, domain and key of an attribute to its type, 0 for none
  std::string omitted_;
  std::map<std::string, StatedType> fed_;
  const model::LibraryNodes* library_nodes_ = nullptr;
  model::RenewedTypes renewed_;
  std::map<PyObject*, int32_t> codes_;  ///< by element type, which `kept_` keeps
  std::vector<py::object> kept_;
  std::deque<WrittenScaled> scaled_;
  std::deque<WrittenPacked> packed_;
};

/// A model that is written. Keeps the file and the arrays that it refers to.
class OnnxWriter {
 public:
  OnnxWriter(py::object owner, std::shared_ptr<const Graph> graph, std::unique_ptr<PythonHost> host,
             const PresentTuple& present, std::shared_ptr<model::LibraryNodes> nodes)
      : owner_(std::move(owner)),
        graph_(std::move(graph)),
        library_nodes_(std::move(nodes)),
        host_(std::move(host)),
        present_(makePresent(present)),
        model_(owner_.cast<OnnxFile&>().originals(), *graph_, present_, host_.get()) {}

  onnx::ModelWriter& model() { return model_; }

  py::list outputs() const {
    py::list list;
    for (const Bytes name : model_.graph().names.outputs) list.append(decode(name));
    return list;
  }

  /// The names of the values of each node.
  py::list names() const {
    const onnx::Names& names = model_.graph().names;
    py::list list;
    for (std::size_t node = 0; node + 1 < names.firsts.size(); ++node) {
      py::list own;
      for (uint32_t i = names.firsts[node]; i < names.firsts[node + 1]; ++i) {
        own.append(decode(names.of[i]));
      }
      list.append(own);
    }
    return list;
  }

  /// The values whose types may have changed: place of the graph, and name.
  py::list doubtful() const {
    py::list list;
    for (const onnx::DoubtfulValue& each : model_.writer().doubtful) {
      list.append(py::make_tuple(decode(each.place), decode(each.name)));
    }
    return list;
  }

  /// Infers the types of these values again; null if what the file states holds. The parameters are
  /// those of model::Renewal.
  std::unique_ptr<const model::Renewed> renewed(
      const facts::Opsets& opsets, const py::dict& params, facts::GivenTypes given,
      const std::map<std::string, StatedTuple>& outputs) const {
    if (model_.writer().doubtful.empty()) return nullptr;
    auto& file = owner_.cast<OnnxFile&>();
    model::Renewal renewal;
    renewal.graph = graph_;
    renewal.sources = {file.originals(), arrayFacts(*graph_, params), opsets, std::move(given)};
    if (library_nodes_ != nullptr) renewal.results = &library_nodes_->results;
    for (const auto& [name, type] : outputs) renewal.outputs[name] = statedOf(type);
    const ReleasedGil released;
    auto made = std::make_unique<const model::Renewed>(model_, std::move(renewal));
    return made->holds() ? nullptr : std::move(made);
  }

  /// The initializers whose elements are not in the message: number, array, whether that is a
  /// parameter, and if its data is in another file, whether it changed.
  py::list aside() const {
    py::list list;
    std::size_t number = 0;
    for (const onnx::WrittenInitializer& each : model_.graph().initializers) {
      if (each.aside) {
        const py::object changed =
            each.external == onnx::External::kNo
                ? py::object(py::none())
                : py::object(py::bool_(each.external == onnx::External::kChanged));
        list.append(py::make_tuple(number, decode(each.array), each.given, changed));
      }
      ++number;
    }
    return list;
  }

  py::bytes message(bool outline) const {
    const onnx::Pieces pieces = model_.assemble(outline ? onnx::kOutline : onnx::kWithoutArrays);
    PyObject* const bytes =
        PyBytes_FromStringAndSize(nullptr, static_cast<py::ssize_t>(pieces.size()));
    if (bytes == nullptr) throw py::error_already_set();
    pieces.copyTo(PyBytes_AS_STRING(bytes));
    return py::reinterpret_steal<py::bytes>(bytes);
  }

  std::size_t size() { return whole().size(); }

  void setImports(std::map<std::size_t, int64_t> changed,
                  std::vector<std::pair<std::string, int64_t>> added) {
    whole_.reset();
    model_.setImports(std::move(changed), std::move(added));
  }

  void writeTo(int file) {
    const ReleasedGil released;
    onnx::writePieces(whole(), file);
    whole_.reset();
  }

 private:
  /// The model in pieces, kept from the question for its size until it is written.
  const onnx::Pieces& whole() {
    if (!whole_) whole_ = model_.assemble(onnx::kWhole);
    return *whole_;
  }

  py::object owner_;
  std::shared_ptr<const Graph> graph_;
  std::shared_ptr<model::LibraryNodes> library_nodes_;
  std::unique_ptr<PythonHost> host_;
  onnx::Present present_;
  onnx::ModelWriter model_;
  std::optional<onnx::Pieces> whole_;
};

}  // namespace

void bindOnnxWriter(py::module_* m) {
  py::class_<RenewedModel>(*m, "RenewedTypes").def_readwrite("disputed", &RenewedModel::disputed);
  py::class_<OnnxWriter>(*m, "OnnxWriter")
      .def(py::init([](py::object file, GraphSource& graph, const PresentTuple& present,
                       const py::dict& params, const py::dict& constants,
                       const std::map<std::string, StatedTuple>& fed, const RenewedModel* renewed,
                       py::function code_of, py::function kind_of, std::string omitted,
                       std::shared_ptr<model::LibraryNodes> nodes) {
             auto host = std::make_unique<PythonHost>(params, constants, fed, std::move(code_of),
                                                      std::move(kind_of), std::move(omitted));
             if (renewed != nullptr) {
               host->setRenewed(renewed->types->types(renewed->disputed));
             }
             host->setLibraryNodes(nodes.get());
             std::shared_ptr<const Graph> written = nodes ? nodes->graph : graph.get();
             return std::make_unique<OnnxWriter>(std::move(file), std::move(written),
                                                 std::move(host), present, std::move(nodes));
           }),
           py::arg("file"), py::arg("graph"), py::arg("present"), py::arg("params"),
           py::arg("constants"), py::arg("fed"), py::arg("renewed"), py::arg("code_of"),
           py::arg("kind_of"), py::arg("omitted"), py::arg("library_nodes").none(true))
      .def_property_readonly("outputs", &OnnxWriter::outputs)
      .def_property_readonly("doubtful", &OnnxWriter::doubtful)
      .def(
          "renewed_types",
          [](py::object self, const facts::Opsets& opsets, const py::dict& params,
             facts::GivenTypes given, const std::map<std::string, StatedTuple>& outputs) {
            auto types =
                self.cast<OnnxWriter&>().renewed(opsets, params, std::move(given), outputs);
            if (types == nullptr) return std::unique_ptr<RenewedModel>();
            return std::make_unique<RenewedModel>(
                RenewedModel{std::move(self), std::move(types), {}});
          },
          py::arg("opsets"), py::arg("params"), py::arg("given"), py::arg("outputs"))
      .def_property_readonly(
          "domains", [](OnnxWriter& writer) { return writer.model().writer().nodes.domains; })
      .def_property_readonly("aside", &OnnxWriter::aside)
      .def(
          "kinds",
          [](OnnxWriter& writer, std::size_t most) -> py::object {
            const auto kinds = onnx::kindsOfChanges(writer.model(), most);
            if (!kinds) return py::none();
            py::list list;
            for (const std::string& kind : *kinds) list.append(py::bytes(kind));
            return std::move(list);
          },
          py::arg("most"))
      .def("changed_outputs",
           [](OnnxWriter& writer) {
             const onnx::WrittenGraph& graph = writer.model().graph();
             const std::set<Bytes> old(graph.file->outputs.begin(), graph.file->outputs.end());
             py::list list;
             for (const Bytes output : graph.outputs) {
               if (old.count(output) == 0) list.append(py::bytes(output.data(), output.size()));
             }
             return list;
           })
      .def("require_references", [](OnnxWriter& writer) { writer.model().requireReferences(); })
      .def_property_readonly("alters",
                             [](OnnxWriter& writer) { return writer.model().graph().alters; })
      .def_property_readonly("size", &OnnxWriter::size)
      .def("names", &OnnxWriter::names)
      .def("set_imports", &OnnxWriter::setImports, py::arg("changed"), py::arg("added"))
      .def("message", &OnnxWriter::message, py::arg("outline"))
      .def("write_to", &OnnxWriter::writeTo, py::arg("file"));
  m->def(
      "onnx_output_names",
      [](OnnxFile& file, GraphSource& graph, const PresentTuple& present) {
        return onnx::nameOutputs(*file.originals(), *graph.get(), makePresent(present));
      },
      py::arg("file"), py::arg("graph"), py::arg("present"));
}

}  // namespace passlib
