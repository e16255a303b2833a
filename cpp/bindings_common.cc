#include "bindings_common.h"

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

}  // namespace passlib
