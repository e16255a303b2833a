#include "bindings/arrays.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/files/named_arrays.h"
#include "bindings/weights/scaled_array.h"
#include "errors.h"
#include "library/weights/written.h"

namespace passlib {

namespace py = pybind11;

namespace {

/// Positions of the pairs whose arrays differ in any bit. Both of a pair must be C-contiguous.
std::vector<std::size_t> differingArrays(const py::iterable& pairs) {
  std::vector<std::size_t> positions;
  std::size_t position = 0;
  for (const py::handle& item : pairs) {
    const auto pair = item.cast<py::tuple>();
    const auto left = pair[0].cast<py::array>();
    const auto right = pair[1].cast<py::array>();
    const auto bytes = static_cast<std::size_t>(left.nbytes());
    const bool same_place = left.data() == right.data() || bytes == 0;
    if (left.nbytes() != right.nbytes() ||
        (!same_place && std::memcmp(left.data(), right.data(), bytes) != 0)) {
      positions.push_back(position);
    }
    ++position;
  }
  return positions;
}

/// Whether each array equals that of its name in `among` in type, shape and every bit.
bool sameArrays(const py::dict& arrays, const py::dict& among) {
  NamedArrays others(among);
  for (const auto& [name, array] : arrays) {
    PyObject* const other = others.find(name);
    if (other == nullptr || !py::isinstance<py::array>(array)) return false;
    if (array.ptr() == other) continue;
    if (!sameContent(py::reinterpret_borrow<py::array>(array),
                     py::reinterpret_borrow<py::array>(other))) {
      return false;
    }
  }
  return true;
}

/// Makes arrays that nobody else knows read-only; those that are still to be computed will be.
void freezeArrays(const py::dict& arrays) {
  for (const auto& [name, value] : arrays) {
    if (!isScaled(value)) freeze(value.cast<py::array>());
  }
}

/// Names of the values that are not read-only arrays of NumPy or of the class `own`.
py::list writableArrays(const py::dict& arrays, const py::type& own) {
  const PyTypeObject* const plain = py::detail::npy_api::get().PyArray_Type_;
  py::list names;
  for (const auto& [name, value] : arrays) {
    const PyTypeObject* const type = Py_TYPE(value.ptr());
    const bool known = type == plain || type == reinterpret_cast<PyTypeObject*>(own.ptr());
    if (known ? py::reinterpret_borrow<py::array>(value).writeable() : !isScaled(value)) {
      names.append(name);
    }
  }
  return names;
}

}  // namespace

std::shared_ptr<const void> ownerOf(const py::array& array) {
  return {new py::array(array), [](const py::array* held) { delete held; }};
}

void freeze(const py::array& array) {
  py::detail::array_proxy(array.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
}

bool sameContent(const py::array& left, const py::array& right) {
  if (left.ndim() != right.ndim() ||
      !std::equal(left.shape(), left.shape() + left.ndim(), right.shape()) ||
      !(left.dtype().is(right.dtype()) || left.dtype().equal(right.dtype()))) {
    return false;
  }
  const auto bytes = static_cast<std::size_t>(left.nbytes());
  const bool contiguous = (left.flags() & right.flags() & py::array::c_style) != 0;
  if (left.data() == right.data() && contiguous) return true;
  if (contiguous) return std::memcmp(left.data(), right.data(), bytes) == 0;
  const auto plain = [](const py::array& array) {
    return py::array::ensure(array, py::array::c_style);
  };
  return std::memcmp(plain(left).data(), plain(right).data(), bytes) == 0;
}

py::array viewOf(const void* data, const py::dtype& type, const std::vector<int64_t>& shape,
                 const py::object& owner) {
  const auto& api = py::detail::npy_api::get();
  Py_intptr_t sizes[kMostDims];
  Py_intptr_t strides[kMostDims];
  if (shape.size() > kMostDims) throw py::value_error("an array has too many dimensions");
  Py_intptr_t stride = type.itemsize();
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    sizes[axis] = static_cast<Py_intptr_t>(shape[axis]);
    strides[axis] = stride;
    stride *= sizes[axis];
  }
  // The call takes over one reference to the type. Without flags, the array cannot be written to.
  PyObject* const made = api.PyArray_NewFromDescr_(api.PyArray_Type_, type.inc_ref().ptr(),
                                                   static_cast<int>(shape.size()), sizes, strides,
                                                   const_cast<void*>(data), 0, nullptr);
  if (made == nullptr) throw py::error_already_set();
  api.PyArray_SetBaseObject_(made, owner.inc_ref().ptr());
  return py::reinterpret_steal<py::array>(made);
}

py::array packed(const py::array& array) {
  if (array.itemsize() != 1) throw py::value_error("the elements of the array are no bytes");
  const py::array plain = py::array::ensure(array, py::array::c_style);
  const WrittenPacked bytes(
      {static_cast<const char*>(plain.data()), static_cast<std::size_t>(plain.size())});
  py::array_t<uint8_t> made(static_cast<py::ssize_t>(bytes.size()));
  bytes.compute(0, bytes.size(), reinterpret_cast<char*>(made.mutable_data()));
  return std::move(made);
}

py::array ownedBytes(Buffer buffer) {
  const auto size = static_cast<int64_t>(buffer.size());
  return ownedArray(std::move(buffer), py::dtype::of<uint8_t>(), {size});
}

py::array ownedArray(Buffer buffer, const py::dtype& type, const std::vector<int64_t>& shape) {
  OwnedMemory memory = buffer.release();
  const py::capsule owner(memory.get(), [](void* pointer) { FreeMemory()(pointer); });
  memory.release();
  return py::array(type, std::vector<py::ssize_t>(shape.begin(), shape.end()), buffer.data(),
                   owner);
}

void bindArrays(py::module_* m) {
  m->def("differing_arrays", &differingArrays, py::arg("pairs"));
  m->def("freeze_arrays", &freezeArrays, py::arg("arrays"));
  m->def("writable_arrays", &writableArrays, py::arg("arrays"), py::arg("own"));
  m->def("packed", &packed, py::arg("array"));
  m->def("same_arrays", &sameArrays, py::arg("arrays"), py::arg("among"));
}

}  // namespace passlib
