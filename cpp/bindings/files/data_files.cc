// passlib._core.PlacedModel: ONNX models with the data files that are written with them.

#include "model/data_files.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/common.h"
#include "bindings/files/onnx_file.h"
#include "library/file_mapping.h"
#include "model/folder.h"
#include "onnx/external/relocation.h"

namespace passlib {

namespace {

using onnx::Bytes;

/// The number of an initializer, its elements, and if they are in a data file, whether they
/// changed.
using WeightTuple = std::tuple<std::size_t, py::array, std::optional<bool>>;
using PlacementTuple = std::tuple<bool, std::string, std::size_t>;
using MappedFile = std::optional<std::shared_ptr<const FileMapping>>;

/// Keeps what its contents refer to.
struct PlacedModel {
  std::vector<py::object> owners;
  model::Placed placed;
};

Bytes bytesOf(const py::array& array) {
  if ((array.flags() & py::array::c_style) == 0) throw py::value_error("an array with gaps");
  return {static_cast<const char*>(array.data()), static_cast<std::size_t>(array.nbytes())};
}

MappedFile fileOf(const py::object& found) {
  if (found.is_none()) return std::nullopt;
  if (!py::isinstance<FileMapping>(found)) return nullptr;  // empty bytes
  return found.cast<std::shared_ptr<FileMapping>>();
}

std::unique_ptr<PlacedModel> place(
    const py::bytes& message, const std::vector<WeightTuple>& weights, const py::function& file,
    const std::optional<py::function>& held, std::map<std::string, std::size_t> users,
    std::string path, std::size_t most, const std::optional<PlacementTuple>& placement) {
  auto made = std::make_unique<PlacedModel>();
  made->owners.push_back(message);
  model::Unplaced given;
  given.message = static_cast<Bytes>(message);
  for (const auto& [number, array, changed] : weights) {
    made->owners.push_back(array);
    model::WeightAside& weight = given.weights[number];
    weight.elements.data = bytesOf(array);
    if (changed) weight.external = *changed ? onnx::External::kChanged : onnx::External::kUnchanged;
  }
  given.file = [&](const std::string& location, bool needed) {
    const py::object found = file(decode(location), needed);
    made->owners.push_back(found);
    return fileOf(found);
  };
  if (held) {
    given.held = [&](const std::string& location) {
      made->owners.push_back((*held)(decode(location)));
      return bytesOf(py::reinterpret_borrow<py::array>(made->owners.back()));
    };
  }
  given.users = std::move(users);
  given.path = std::move(path);
  given.most = most;
  if (placement) {
    const auto& [external, location, threshold] = *placement;
    given.placement = model::Placement{external, location, threshold};
  }
  made->placed = model::placeData(given);
  return made;
}

/// A model whose data is in files of other names, by the plain present ones.
std::unique_ptr<PlacedModel> withFiles(const py::buffer& data,
                                       std::map<std::string, std::string> files) {
  auto made = std::make_unique<PlacedModel>();
  made->owners.push_back(data);
  onnx::Relocation relocation;
  relocation.files = std::move(files);
  made->placed.content = withoutGil(Memory(data).bytes(), [&relocation](Bytes message) {
    onnx::checkModel(message);
    return onnx::relocate(message, relocation);
  });
  return made;
}

std::string locationOf(const py::bytes& tensor, const std::string& what) {
  return onnx::placeOf(static_cast<Bytes>(tensor), what).location;
}

/// The element type, the dimensions, and where the data of a tensor starts in a file, and its
/// size.
py::tuple spanIn(const py::object& file, const py::bytes& message, const std::string& what) {
  const MappedFile mapping = fileOf(file);
  const onnx::Tensor tensor = onnx::readTensor(static_cast<Bytes>(message));
  const onnx::DataPlace place = onnx::placeOf(tensor.message, what);
  const Bytes found = model::dataIn(mapping->get(), tensor, place, what);
  return py::make_tuple(tensor.type, tensor.dims, place.offset, found.size());
}

}  // namespace

void bindDataFiles(py::module_* m) {
  py::class_<PlacedModel>(*m, "PlacedModel")
      .def_property_readonly("moved", [](const PlacedModel& model) { return model.placed.moved; })
      .def_property_readonly("files",
                             [](const PlacedModel& model) {
                               py::list paths;
                               for (const model::DataFile& file : model.placed.files) {
                                 paths.append(py::bytes(file.path));
                               }
                               return paths;
                             })
      .def_property_readonly("kept",
                             [](const PlacedModel& model) {
                               py::list paths;
                               for (const model::KeptFile& file : model.placed.kept) {
                                 paths.append(py::bytes(file.path));
                               }
                               return paths;
                             })
      .def_property_readonly("elsewhere",
                             [](const PlacedModel& model) {
                               py::list locations;
                               for (const std::string& each : model.placed.elsewhere) {
                                 locations.append(decode(each));
                               }
                               return locations;
                             })
      .def(
          "write_to",
          [](const PlacedModel& model, int file) {
            const ReleasedGil released;
            model::writeSharing(model.placed.content, file);
          },
          py::arg("file"))
      .def(
          "write_file",
          [](const PlacedModel& model, std::size_t number, int file) {
            const ReleasedGil released;
            model::writeSharing(model.placed.files.at(number).content, file);
          },
          py::arg("number"), py::arg("file"));
  m->def("place_data", &place, py::arg("message"), py::arg("weights"), py::arg("file"),
         py::arg("held").none(true), py::arg("users"), py::arg("path"), py::arg("most"),
         py::arg("placement").none(true));
  m->def(
      "write_array",
      [](const py::array& array, int file) {
        onnx::Pieces elements;
        elements.append(bytesOf(array));
        const ReleasedGil released;
        model::writeSharing(elements, file);
      },
      py::arg("array"), py::arg("file"));
  m->def("data_location", &locationOf, py::arg("tensor"), py::arg("what"));
  m->def("data_span", &spanIn, py::arg("file"), py::arg("tensor"), py::arg("what"));
  m->def(
      "resolve_data",
      [](const std::string& folder, const std::string& location, const std::string& what) {
        return py::bytes(model::resolveData(folder, location, what));
      },
      py::arg("folder"), py::arg("location"), py::arg("what"));
  m->def("with_data_files", &withFiles, py::arg("data"), py::arg("files"));
}

}  // namespace passlib
