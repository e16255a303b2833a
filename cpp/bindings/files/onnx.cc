// passlib._core.OnnxFile: ONNX models read from memory.

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/calls/exit_gate.h"
#include "bindings/common.h"
#include "bindings/files/onnx_file.h"
#include "graph/graph.h"
#include "onnx/external/places.h"
#include "onnx/parts/bodies.h"
#include "onnx/parts/long_attribute.h"
#include "onnx/parts/tensor.h"
#include "onnx/types/stated.h"
#include "onnx/wire/numbers.h"
#include "onnx/wire/output.h"
#include "onnx/wire/schema.h"
#include "onnx/wire/strip.h"

namespace passlib {

namespace {

using onnx::Bytes;
using onnx::Constant;
using onnx::Kind;

py::list listImports(const OnnxFile& file) {
  py::list list;
  for (const auto& [domain, version] : file.model.imports) {
    list.append(py::make_tuple(decode(domain), version));
  }
  return list;
}

/// Makes arrays of constants.
class ArrayMaker {
 public:
  ArrayMaker(py::object owner, py::function type_of)
      : owner_(std::move(owner)), type_of_(std::move(type_of)) {}

  py::array make(const Constant& constant) {
    const std::vector<py::ssize_t> none;
    if (constant.kind == Kind::kTensor) return tensor(constant);
    onnx::Arena arena;
    const onnx::Attribute value = onnx::readAttribute(constant.message, &arena);
    switch (constant.kind) {
      case Kind::kInt:
        return frozen(py::array(py::dtype::of<int64_t>(), none, &value.whole));
      case Kind::kFloat:
        return frozen(py::array(py::dtype::of<float>(), none, &value.real));
      case Kind::kInts:
        return list(onnx::numbersOf<int64_t>(value));
      default:
        return list(onnx::numbersOf<float>(value));
    }
  }

 private:
  static py::array frozen(py::array array) {
    freeze(array);
    return array;
  }

  template <typename Number>
  static py::array list(const std::vector<Number>& numbers) {
    return frozen(py::array(py::dtype::of<Number>(), {static_cast<py::ssize_t>(numbers.size())},
                            numbers.data()));
  }

  py::array tensor(const Constant& constant) {
    onnx::readTensor(constant.message, &tensor_);
    const py::dtype& type = typeOf(tensor_.type);
    if (tensor_.has_raw) return viewOf(tensor_.raw.data(), type, tensor_.dims, owner_);
    py::array array(type, std::vector<py::ssize_t>(tensor_.dims.begin(), tensor_.dims.end()));
    const onnx::Elements elements = onnx::checkElements(tensor_, [&] { return constant.place(); });
    onnx::copyElements(tensor_, elements, static_cast<char*>(array.mutable_data()));
    return frozen(std::move(array));
  }

  const py::dtype& typeOf(int32_t code) {
    const auto index = static_cast<std::size_t>(code);
    if (types_.size() <= index) types_.resize(index + 1);
    if (!types_[index]) types_[index] = type_of_(code);
    return *types_[index];
  }

  py::object owner_;
  py::function type_of_;
  std::vector<std::optional<py::dtype>> types_;
  onnx::Tensor tensor_;  ///< of the constant at hand
};

/// The arrays of the main graph by name, in the order of the file.
///
/// `array_of`: returns the array of a tensor whose data is in another file, or None; gets its
/// message, and what messages call it.
py::dict makeArrays(const py::object& self, const py::function& type_of,
                    const py::function& array_of) {
  auto& file = self.cast<OnnxFile&>();
  file.memory.check();
  ArrayMaker maker(self, type_of);
  py::dict arrays;
  for (const Constant& constant : file.model.constants) {
    py::object array = py::none();
    if (constant.external) {
      array = array_of(py::bytes(constant.message.data(), constant.message.size()),
                       decode(constant.place()));
    } else {
      array = maker.make(constant);
    }
    if (array.is_none()) continue;
    if (constant.main) {
      arrays[decode(constant.name)] = array;
      if (constant.external && constant.what == Constant::What::kInitializer) {
        const onnx::DataPlace place = onnx::placeOf(constant.message, constant.place());
        ++file.users[onnx::plainPath(place.location)];
      }
    } else {
      file.addElsewhere(constant, py::array::ensure(array, py::array::c_style));
    }
  }
  file.model.constants.clear();
  file.model.constants.shrink_to_fit();
  return arrays;
}

/// The types of the main graph's inputs: element type, sizes (-1 for unknown ones), and whether it
/// is neither a tensor nor unknown.
py::list listInputs(const OnnxFile& file) {
  file.memory.check();
  py::list list;
  for (const onnx::InputType& type : onnx::inputTypes(file.model.message)) {
    list.append(py::make_tuple(type.code, type.dims, type.other));
  }
  return list;
}

/// Whether a graph is the one that was read, attributes of one key left out.
bool holds(const OnnxFile& file, GraphSource& other, const std::string& but) {
  const std::shared_ptr<const Graph> own = file.graph->get();
  const std::shared_ptr<const Graph> graph = other.get();
  const ReleasedGil released;
  return equalGraphs(*own, *graph, but);
}

/// Where the tensors of a model say that their data is.
py::list dataLocations(const py::buffer& data) {
  const Memory memory(data);
  const std::set<std::string> found = withoutGil(memory.bytes(), [](Bytes message) {
    std::set<std::string> locations;
    onnx::checkModel(message);
    onnx::forEachTensor(message, [&locations](const onnx::Path& path) {
      if (!onnx::readTensorHead(path.back().body).external) return;
      for (const auto& [key, value] : onnx::placeEntries(path.back().body)) {
        if (key == "location") locations.emplace(value);
      }
    });
    return locations;
  });
  py::list list;
  for (const std::string& each : found) list.append(decode(each));
  return list;
}

py::tuple strip(const py::buffer& data, bool outline) {
  const Memory memory(data);
  const Bytes bytes = memory.bytes();
  const onnx::Stripped stripped = withoutGil(bytes, [outline](Bytes message) {
    return onnx::stripModel(message, outline ? &onnx::cutNode : nullptr);
  });
  py::dict payloads;
  for (const onnx::StrippedPayload& payload : stripped.payloads) {
    payloads[py::int_(payload.number)] =
        py::make_tuple(payload.data.data() - bytes.data(), payload.data.size());
  }
  return py::make_tuple(py::bytes(stripped.message), payloads);
}

}  // namespace

void bindOnnx(py::module_* m) {
  py::class_<OnnxFile>(*m, "OnnxFile")
      .def(py::init<const py::buffer&>(), py::arg("data"))
      .def_readonly("graph", &OnnxFile::graph)
      .def_property_readonly("ir_version",
                             [](const OnnxFile& file) { return file.model.ir_version; })
      .def_property_readonly("producer",
                             [](const OnnxFile& file) {
                               file.memory.check();
                               const Bytes model = file.memory.bytes();
                               return py::make_tuple(
                                   decode(onnx::bodyOf(model, onnx::numbers::kProducerName)),
                                   decode(onnx::bodyOf(model, onnx::numbers::kProducerVersion)));
                             })
      .def_property_readonly("has_external",
                             [](const OnnxFile& file) { return file.model.has_external; })
      .def_property_readonly("has_functions",
                             [](const OnnxFile& file) {
                               file.memory.check();
                               bool found = false;
                               onnx::forEachBody(file.memory.bytes(), onnx::numbers::kFunctions,
                                                 [&found](Bytes) { found = true; });
                               return found;
                             })
      .def_property_readonly("refers_to_results",
                             [](OnnxFile& file) { return file.originals()->refersToResults(); })
      .def("holds", &holds, py::arg("graph"), py::arg("but"))
      .def("imports", &listImports)
      .def("inputs", &listInputs)
      .def_readonly("users", &OnnxFile::users)
      .def("arrays", &makeArrays, py::arg("type_of"), py::arg("array_of"));
  m->def(
      "is_onnx", [](const py::buffer& data) { return onnx::isModel(Memory(data).bytes()); },
      py::arg("data"));
  m->def("strip_onnx", &strip, py::arg("data"), py::arg("outline") = false);
  m->def("data_locations", &dataLocations, py::arg("data"));
}

}  // namespace passlib
