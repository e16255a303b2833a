#include "bindings_common.h"

#include <pybind11/numpy.h>

#include <utility>

namespace passlib {

py::str decode(const std::string& text) {
  PyObject* string =
      PyUnicode_DecodeUTF8(text.data(), static_cast<py::ssize_t>(text.size()), "replace");
  if (string == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(string);
}

void setError(const char* name, const std::string& message, const py::dict& details) {
  const py::object type = py::module_::import("passlib.errors").attr(name);
  const py::object error = type(decode(message), **details);
  PyErr_SetObject(type.ptr(), error.ptr());
}

void setLibraryError(const char* name, const LibraryError& error, const py::dict& details) {
  py::list messages;
  for (const std::string& text : error.messages) messages.append(decode(text));
  details["messages"] = py::tuple(messages);
  setError(name, error.what(), details);
}

std::map<std::string, mxnet::ext::JsonVal> parseAttributes(const AttributeTexts& texts) {
  std::map<std::string, mxnet::ext::JsonVal> attributes;
  for (const auto& [key, json] : texts) {
    attributes.emplace(key, mxnet::ext::JsonVal::parse(json));
  }
  return attributes;
}

ParamBlock makeBlock(const py::list& params) {
  ParamBlock block;
  for (const py::handle& item : params) {
    const auto fields = item.cast<py::tuple>();
    const auto array = fields[1].cast<py::array>();
    std::vector<int64_t> shape(array.shape(), array.shape() + array.ndim());
    block.add(fields[0].cast<std::string>(), const_cast<void*>(array.data()), std::move(shape),
              fields[2].cast<int>());
  }
  return block;
}

}  // namespace passlib
