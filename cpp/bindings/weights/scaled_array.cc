#include "bindings/weights/scaled_array.h"

#include <pybind11/stl.h>

#include <utility>

#include "bindings/arrays.h"
#include "bindings/calls/exit_gate.h"
#include "library/memory.h"

namespace passlib {

namespace py = pybind11;

py::array ScaledArray::compute() const {
  Buffer memory(elements_.size(), false);
  {
    const ReleasedGil released;
    elements_.compute(0, elements_.size(), memory.data());
  }
  return ownedArray(std::move(memory), type_, shape_);
}

py::array ScaledArray::array() {
  if (!made_) {
    const py::array array = compute();
    freeze(array);
    if (!made_) made_ = array;  // another thread may have been first
  }
  return py::reinterpret_borrow<py::array>(made_);
}

bool isScaled(py::handle object) {
  const PyTypeObject* const plain = py::detail::npy_api::get().PyArray_Type_;
  return Py_TYPE(object.ptr()) != plain && py::isinstance<ScaledArray>(object);
}

void bindScaledArrays(py::module_* m) {
  py::class_<ScaledArray>(*m, "ScaledArray")
      .def_property_readonly(
          "shape", [](const ScaledArray& scaled) { return py::tuple(py::cast(scaled.shape())); })
      .def_property_readonly("dtype", &ScaledArray::type)
      .def_property_readonly("nbytes",
                             [](const ScaledArray& scaled) { return scaled.elements().size(); })
      .def_property_readonly("array", &ScaledArray::array)
      .def("computed", &ScaledArray::compute);
}

}  // namespace passlib
