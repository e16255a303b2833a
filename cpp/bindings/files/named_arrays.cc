#include "bindings/files/named_arrays.h"

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

NamedArrays::NamedArrays(py::dict dict) : dict_(std::move(dict)) {
  items_.reserve(dict_.size());
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  for (py::ssize_t at = 0; PyDict_Next(dict_.ptr(), &at, &key, &value) != 0;) {
    const std::string_view name = textOf(key);
    if (name.data() != nullptr) items_.emplace_back(name, value);
  }
}

PyObject* NamedArrays::find(py::handle name) {
  const std::string_view text = textOf(name.ptr());
  return text.data() == nullptr ? nullptr : find(text);
}

PyObject* NamedArrays::find(std::string_view name) {
  for (std::size_t at = next_ > 0 ? next_ - 1 : 0; at < items_.size() && at <= next_; ++at) {
    if (items_[at].first != name) continue;
    next_ = at + 1;
    return items_[at].second;
  }
  if (!searchable_) {
    places_ = onnx::NameMap<std::size_t>(items_.size());
    for (std::size_t i = 0; i < items_.size(); ++i) places_.insert(items_[i].first, i);
    searchable_ = true;
  }
  const std::size_t* const place = places_.find(name);
  if (place == nullptr) return nullptr;
  next_ = *place + 1;
  return items_[*place].second;
}

}  // namespace passlib
