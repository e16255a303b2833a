#include "bindings/files/named_arrays.h"

#include <cstddef>
#include <utility>

namespace passlib {

namespace py = pybind11;

namespace {

/// Returns a text, kept by its object; null for anything else, and for text that UTF-8 cannot
/// express, which names nothing in a graph.
std::string_view textOf(PyObject* object) {
  py::ssize_t size = 0;
  const char* const text =
      PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, &size) : nullptr;
  if (text == nullptr) PyErr_Clear();
  return {text, static_cast<std::size_t>(size)};
}

}  // namespace

NamedArrays::NamedArrays(const py::dict& dict)
    : items_(py::reinterpret_steal<py::dict>(PyDict_Copy(dict.ptr()))) {
  if (!items_) throw py::error_already_set();
  std::vector<std::string_view> names;
  names.reserve(items_.size());
  values_.reserve(items_.size());
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  for (py::ssize_t at = 0; PyDict_Next(items_.ptr(), &at, &key, &value) != 0;) {
    const std::string_view name = textOf(key);
    if (name.data() == nullptr) continue;
    names.push_back(name);
    values_.push_back(value);
  }
  places_ = onnx::NameIndex(std::move(names));
}

PyObject* NamedArrays::find(py::handle name) {
  const std::string_view text = textOf(name.ptr());
  return text.data() == nullptr ? nullptr : find(text);
}

PyObject* NamedArrays::find(std::string_view name) {
  const std::size_t place = places_.find(name);
  return place == onnx::NameIndex::kNone ? nullptr : values_[place];
}

}  // namespace passlib
