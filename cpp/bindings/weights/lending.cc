// passlib._core.FileMapping and LentArrays: arrays lent to one call of a pass.

#include "bindings/weights/lending.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/calls/exit_gate.h"
#include "bindings/files/named_arrays.h"
#include "bindings/weights/scaled_array.h"
#include "errors.h"
#include "library/file_mapping.h"

namespace passlib {

namespace py = pybind11;

namespace {

bool isAligned(const py::array& array) {
  return (array.flags() & py::detail::npy_api::NPY_ARRAY_ALIGNED_) != 0;
}

/// Whether an array is one sequence of elements in native byte order that can be written to, or
/// that is to be copied.
bool isPlain(const py::array& array) {
  const bool sequential = (array.flags() & py::array::c_style) != 0;
  const bool native = array.dtype().byteorder() != '>';
  return sequential && native && (!array.writeable() || isAligned(array));
}

/// By Lending.
constexpr const char* kLendings[] = {"nothing", "on demand", "whole"};

Lending lendingNamed(const std::string& name) {
  const auto* found = std::find(std::begin(kLendings), std::end(kLendings), name);
  if (found == std::end(kLendings)) throw py::value_error("no way to lend arrays: " + name);
  return static_cast<Lending>(found - kLendings);
}

std::vector<py::ssize_t> shapeOf(const py::array& array) {
  return {array.shape(), array.shape() + array.ndim()};
}

py::bytes sliceOf(const FileMapping& file, const py::slice& slice) {
  file.check();
  std::size_t start = 0;
  std::size_t stop = 0;
  std::size_t step = 0;
  std::size_t count = 0;
  if (!slice.compute(file.size(), &start, &stop, &step, &count)) throw py::error_already_set();
  if (step != 1) throw py::value_error("bytes of a file are taken without steps");
  return py::bytes(file.data() + start, count);
}

/// Throws FormatError if arrays lie in a file that was changed since it was mapped.
void checkFiles(const py::iterable& arrays) {
  FileChecks files;
  for (const py::handle array : arrays) {
    if (py::isinstance<py::array>(array)) {
      files.check(py::reinterpret_borrow<py::array>(array).data());
    } else if (py::isinstance<ScaledArray>(array)) {
      files.check(array.cast<const ScaledArray&>().elements().source());
    } else if (py::hasattr(array, "indices")) {  // sparse
      for (const char* const part : {"data", "indices", "indptr"}) {
        const py::object found = py::getattr(array, part, py::none());
        if (py::isinstance<py::array>(found)) files.check(found.cast<py::array>().data());
      }
    }
  }
}

}  // namespace

LentArrays::LentArrays(const py::dict& given, const py::sequence& names,
                       const py::function& code_of, const py::function& other,
                       const std::string& lending, bool are_args)
    : lending_(lendingNamed(lending)) {
  NamedArrays known(given);
  given_.reserve(names.size());
  block_.reserve(names.size());
  if (lending_ == Lending::kWhole) copies_.reserve(names.size());
  for (const py::handle name : names) {
    PyObject* const value = known.find(name);
    if (value == nullptr) continue;
    if (!py::isinstance<py::array>(value) || !isPlain(py::reinterpret_borrow<py::array>(value))) {
      const auto made = other(name, py::handle(value)).cast<py::tuple>();
      add(made[0], made[1], made[2]);
      continue;
    }
    auto array = py::reinterpret_borrow<py::array>(value);
    const py::object code = codeOf(array.dtype(), code_of);
    if (code.is_none()) continue;
    const auto size = static_cast<std::size_t>(array.nbytes());
    const auto* const original = static_cast<const char*>(array.data());
    const std::size_t number = given_.size();
    if (lending_ == Lending::kWhole && !array.writeable()) {
      copies_.add(number, original, size, isAligned(array));
    }
    add(py::reinterpret_borrow<py::object>(name), std::move(array), code);
    if (lending_ == Lending::kOnDemand) {
      block_.setData(number, nullptr);
      block_.setOnDemand(number, are_args, {original, size, code.cast<int>()});
    }
  }
  if (copies_.count() > 0) {
    const ReleasedGil released;
    copies_.make();
  }
  for (std::size_t i = 0; i < copies_.count(); ++i) {
    block_.setData(copies_.place(i), copies_.data(i));
  }
}

void LentArrays::add(py::object name, py::array array, py::object code) {
  const auto text = name.cast<std::string_view>();
  if (text.find('\0') != std::string::npos) {
    throw GraphError("the parameter named '" + std::string(text.substr(0, text.find('\0'))) +
                     "' and more after a NUL byte cannot be passed to a library, whose texts end "
                     "there: rename it");
  }
  void* const data = lending_ == Lending::kNothing ? nullptr : const_cast<void*>(array.data());
  const auto dims = static_cast<std::size_t>(array.ndim());
  std::copy(array.shape(), array.shape() + dims, block_.add(text, data, dims, code.cast<int>()));
  given_.push_back({std::move(name), std::move(array), std::move(code)});
}

py::list LentArrays::params() const {
  py::list list;
  for (const Given& each : given_) list.append(py::make_tuple(each.name, each.array, each.code));
  return list;
}

py::list LentArrays::changed(const py::set& except) const {
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < copies_.count(); ++i) {
    if (except.empty() || !except.contains(given_[copies_.place(i)].name)) left.push_back(i);
  }
  {
    const ReleasedGil released;
    const auto same = [this](std::size_t each) { return !copies_.differs(each); };
    left.erase(std::remove_if(left.begin(), left.end(), same), left.end());
  }
  py::list list;
  for (const std::size_t each : left) {
    list.append(py::make_tuple(given_[copies_.place(each)].name, arrayOf(each)));
  }
  return list;
}

const py::object& LentArrays::codeOf(const py::dtype& type, const py::function& code_of) {
  const auto found = codes_.find(type.ptr());
  if (found != codes_.end()) return found->second.second;
  py::object code = code_of(type);
  return codes_.emplace(type.ptr(), std::make_pair(type, std::move(code))).first->second.second;
}

/// The array of a copy, which outlives this object.
py::array LentArrays::arrayOf(std::size_t copy) const {
  const py::array& original = given_[copies_.place(copy)].array;
  auto* kept = new std::shared_ptr<const char>(copies_.kept(copy));
  const py::capsule owner(
      kept, [](void* memory) { delete static_cast<std::shared_ptr<const char>*>(memory); });
  return py::array(original.dtype(), shapeOf(original), kept->get(), owner);
}

void bindLending(py::module_* m) {
  py::class_<FileMapping, std::shared_ptr<FileMapping>>(*m, "FileMapping", py::buffer_protocol())
      .def(py::init([](int file, std::string path, bool is_private) {
             const ReleasedGil released;
             return std::make_shared<FileMapping>(file, std::move(path), is_private);
           }),
           py::arg("file"), py::arg("path"), py::arg("is_private") = false)
      .def_buffer([](const FileMapping& file) {
        return py::buffer_info(reinterpret_cast<const uint8_t*>(file.data()),
                               static_cast<py::ssize_t>(file.size()), !file.isPrivate());
      })
      .def("check", &FileMapping::check)
      .def("is_at", &FileMapping::isAt, py::arg("path"))
      .def("__len__", &FileMapping::size)
      .def("__getitem__", &sliceOf);
  py::class_<LentArrays>(*m, "LentArrays")
      .def(py::init<const py::dict&, const py::sequence&, const py::function&, const py::function&,
                    const std::string&, bool>(),
           py::arg("given"), py::arg("names"), py::arg("code_of"), py::arg("other"),
           py::arg("lending"), py::arg("are_args"))
      .def_property_readonly("params", &LentArrays::params)
      .def("changed", &LentArrays::changed, py::arg("but"));
  m->def(
      "is_in_file",
      [](const py::array& array) {
        return placeInFile(array.data(), static_cast<std::size_t>(array.nbytes())).file >= 0;
      },
      py::arg("array"));
  m->def("check_files", &checkFiles, py::arg("arrays"));
}

}  // namespace passlib
