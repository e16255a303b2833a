// passlib._core.FileMapping and LentArrays: arrays lent to one call of a pass.

#include "bindings/lending.h"

#include <pybind11/numpy.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bindings/calls/exit_gate.h"
#include "library/file_mapping.h"

namespace passlib {

namespace py = pybind11;

namespace {

/// Arrays of fewer bytes are copied together; of others, pages are copied that are written to.
constexpr std::size_t kSmall = std::size_t{1} << 16;

constexpr std::size_t kAlignment = 64;

/// An array that is lent as a copy.
struct Copy {
  std::size_t place;  ///< in the list of parameters
  py::object name;
  py::array original;
  py::array array;
  Lender::Loan loan;
  bool packed = false;  ///< in memory with other copies
};

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

/// Lends the arrays of a dictionary by name: their own memory if it can be written to, else a copy.
class LentArrays {
 public:
  /// `code_of` returns MXNet's number of an element type. `other` lends what is no plain array: it
  /// gets name and value, and returns a parameter.
  LentArrays(const py::dict& given, const py::sequence& names, const py::function& code_of,
             const py::function& other) {
    for (const py::handle name : names) {
      PyObject* const value = PyDict_GetItemWithError(given.ptr(), name.ptr());
      if (value == nullptr) {
        if (PyErr_Occurred() != nullptr) throw py::error_already_set();
        continue;
      }
      if (!py::isinstance<py::array>(value) || !isPlain(py::reinterpret_borrow<py::array>(value))) {
        params_.append(other(name, py::handle(value)));
        continue;
      }
      auto array = py::reinterpret_borrow<py::array>(value);
      const py::object code = codeOf(array.dtype(), code_of);
      if (!array.writeable()) {
        copies_.push_back(
            {params_.size(), py::reinterpret_borrow<py::object>(name), array, py::array(), {}});
      }
      params_.append(py::make_tuple(name, array, code));
    }
    copy();
  }

  const py::list& params() const { return params_; }

  /// The copies that differ in any bit from their originals, but those of some names: pairs of name
  /// and array.
  py::list changed(const py::set& except) const {
    std::vector<const Copy*> left;
    for (const Copy& each : copies_) {
      if (!except.contains(each.name)) left.push_back(&each);
    }
    {
      const ReleasedGil released;
      const auto same = [](const Copy* each) { return !differs(*each); };
      left.erase(std::remove_if(left.begin(), left.end(), same), left.end());
    }
    py::list list;
    for (const Copy* each : left) {
      py::object array = each->array;
      if (each->packed) array = array.attr("copy")();
      list.append(py::make_tuple(each->name, array));
    }
    return list;
  }

 private:
  const py::object& codeOf(const py::dtype& type, const py::function& code_of) {
    const auto found = codes_.find(type.ptr());
    if (found != codes_.end()) return found->second.second;
    py::object code = code_of(type);
    return codes_.emplace(type.ptr(), std::make_pair(type, std::move(code))).first->second.second;
  }

  static bool differs(const Copy& copy) {
    const auto size = static_cast<std::size_t>(copy.original.nbytes());
    const auto* original = static_cast<const char*>(copy.original.data());
    if (copy.loan.mapping != nullptr) {
      return copy.loan.mapping->differs(copy.loan.offset, size, original);
    }
    return std::memcmp(copy.array.data(), original, size) != 0;
  }

  void copy() {
    Lender lender;
    std::size_t packed = 0;
    for (Copy& each : copies_) {
      const auto size = static_cast<std::size_t>(each.original.nbytes());
      if (size < kSmall) {
        each.packed = true;
        packed += (size + kAlignment - 1) / kAlignment * kAlignment;
      } else if (isAligned(each.original)) {
        each.loan = lender.lend(each.original.data(), size);
      }
    }
    char* place = new char[packed + kAlignment];
    const py::capsule block(place, [](void* memory) { delete[] static_cast<char*>(memory); });
    place += kAlignment - reinterpret_cast<uintptr_t>(place) % kAlignment;
    for (Copy& each : copies_) {
      const auto size = static_cast<std::size_t>(each.original.nbytes());
      if (each.packed) {
        std::memcpy(place, each.original.data(), size);
        each.array = view(each.original, place, block);
        place += (size + kAlignment - 1) / kAlignment * kAlignment;
      } else if (each.loan.mapping != nullptr) {
        auto* shared = new std::shared_ptr<const PrivateMapping>(each.loan.mapping);
        const py::capsule owner(shared, [](void* memory) {
          delete static_cast<std::shared_ptr<const PrivateMapping>*>(memory);
        });
        each.array = view(each.original, each.loan.mapping->data() + each.loan.offset, owner);
      } else {
        each.array = view(each.original, nullptr, py::object());
        const auto* from = static_cast<const char*>(each.original.data());
        auto* target = static_cast<char*>(each.array.mutable_data());
        const ReleasedGil released;
        std::memcpy(target, from, size);
      }
      const auto param = params_[each.place].cast<py::tuple>();
      params_[each.place] = py::make_tuple(each.name, each.array, param[2]);
    }
  }

  /// Makes an array like another one in other memory; without, in memory of its own.
  static py::array view(const py::array& like, void* data, const py::object& owner) {
    const std::vector<py::ssize_t> shape(like.shape(), like.shape() + like.ndim());
    if (data == nullptr) return py::array(like.dtype(), shape);
    return py::array(like.dtype(), shape, data, owner);
  }

  py::list params_;
  std::vector<Copy> copies_;
  std::unordered_map<PyObject*, std::pair<py::dtype, py::object>> codes_;
};

std::unique_ptr<FileMapping> mapFile(int file) {
  try {
    return std::make_unique<FileMapping>(file);
  } catch (const std::system_error& error) {
    errno = error.code().value();
    PyErr_SetFromErrno(PyExc_OSError);
    throw py::error_already_set();
  }
}

py::bytes sliceOf(const FileMapping& file, const py::slice& slice) {
  std::size_t start = 0;
  std::size_t stop = 0;
  std::size_t step = 0;
  std::size_t count = 0;
  if (!slice.compute(file.size(), &start, &stop, &step, &count)) throw py::error_already_set();
  if (step != 1) throw py::value_error("bytes of a file are taken without steps");
  return py::bytes(file.data() + start, count);
}

}  // namespace

void bindLending(py::module_* m) {
  py::class_<FileMapping>(*m, "FileMapping", py::buffer_protocol())
      .def(py::init(&mapFile), py::arg("file"))
      .def_buffer([](const FileMapping& file) {
        return py::buffer_info(reinterpret_cast<const uint8_t*>(file.data()),
                               static_cast<py::ssize_t>(file.size()), true);
      })
      .def("__len__", &FileMapping::size)
      .def("__getitem__", &sliceOf);
  py::class_<LentArrays>(*m, "LentArrays")
      .def(py::init<const py::dict&, const py::sequence&, const py::function&,
                    const py::function&>(),
           py::arg("given"), py::arg("names"), py::arg("code_of"), py::arg("other"))
      .def_property_readonly("params", &LentArrays::params)
      .def("changed", &LentArrays::changed, py::arg("but"));
}

}  // namespace passlib
