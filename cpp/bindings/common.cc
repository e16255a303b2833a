#include "bindings/common.h"

#include "graph/attributes.h"

namespace passlib {

py::str decode(std::string_view text) {
  PyObject* string =
      PyUnicode_DecodeUTF8(text.data(), static_cast<py::ssize_t>(text.size()), "replace");
  if (string == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(string);
}

py::dict attributeDict(const mxnet::ext::Node& node) {
  py::dict attributes;
  forEachAttribute(node, [&attributes](std::string_view key, std::string_view text) {
    attributes[decode(key)] = decode(text);
  });
  return attributes;
}

}  // namespace passlib
