// passlib._core.EditableAttributes: the attributes of a node as a mutable mapping.

#include "graph/attributes.h"

#include <pybind11/stl.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/common.h"
#include "bindings/editing/handles.h"

namespace passlib {
namespace {

namespace py = pybind11;

/// For all attributes.
mxnet::ext::NodeAttributes& of(const AttributesHandle& handle) {
  mxnet::ext::NodeAttributes& attributes = handle.node.live()->attrs;
  handle.node.owner->readTypes();
  return attributes;
}

/// For the attribute of a key.
mxnet::ext::NodeAttributes& of(const AttributesHandle& handle, const std::string& key) {
  mxnet::ext::NodeAttributes& attributes = handle.node.live()->attrs;
  handle.node.owner->readTypes(key);
  return attributes;
}

std::string_view at(const AttributesHandle& handle, const std::string& key) {
  of(handle, key);
  const std::string_view text = attributeOf(*handle.node.live(), key);
  if (text.data() == nullptr) throw py::key_error(key);
  return text;
}

/// The keys, sorted: the order of a hash table must not decide what a pass does.
std::vector<std::string> keysOf(const AttributesHandle& handle) {
  std::vector<std::string> keys;
  of(handle);
  for (const auto& attribute : sortedAttributes(*handle.node.live())) {
    keys.emplace_back(attribute.first);
  }
  return keys;
}

/// As the mapping's own, which is slow, because a key that is missing is an exception there.
py::object get(const AttributesHandle& handle, const std::string& key, const py::object& preset) {
  of(handle, key);
  const std::string_view text = attributeOf(*handle.node.live(), key);
  return text.data() == nullptr ? preset : py::cast(text);
}

void set(const AttributesHandle& handle, const py::object& key, const py::object& value) {
  const auto [name, text] = attributeText(key, value);
  of(handle, name)[name] = text;
  handle.node.owner->noteChange();
}

void erase(const AttributesHandle& handle, const std::string& key) {
  if (of(handle, key).erase(key) == 0) throw py::key_error(key);
  handle.node.owner->noteChange();
}

}  // namespace

std::pair<std::string, std::string> attributeText(const py::handle& key, const py::handle& value) {
  for (const py::handle& part : {key, value}) {
    if (py::isinstance<py::str>(part)) continue;
    throw py::type_error("attribute " + std::string(py::repr(key)) + " must be text by text, not " +
                         std::string(py::repr(value)) + ": write it as str");
  }
  return {key.cast<std::string>(), value.cast<std::string>()};
}

void bindEditedAttributes(py::module_* m) {
  py::class_<AttributesHandle> attributes(*m, "EditableAttributes");
  attributes.def("__getitem__", &at)
      .def("get", &get, py::arg("key"), py::arg("default") = py::none())
      .def("__setitem__", &set)
      .def("__delitem__", &erase)
      .def("__contains__",
           [](const AttributesHandle& h, const py::object& key) {
             if (!py::isinstance<py::str>(key)) return false;
             const auto text = key.cast<std::string>();
             return of(h, text).count(text) != 0;
           })
      .def("__len__", [](const AttributesHandle& h) { return of(h).size(); })
      .def("__iter__", [](const AttributesHandle& h) { return py::iter(py::cast(keysOf(h))); });
  attributes.def("__repr__", [](const AttributesHandle& h) {
    of(h);
    return py::repr(attributeDict(*h.node.live()));
  });
  // The rest of the protocol, as for a class that is derived from MutableMapping.
  const py::object mapping = py::module_::import("collections.abc").attr("MutableMapping");
  for (const char* name :
       {"keys", "items", "values", "pop", "popitem", "clear", "update", "setdefault", "__eq__"}) {
    attributes.attr(name) = mapping.attr(name);
  }
  // pop compares its default with this.
  attributes.attr("_MutableMapping__marker") = mapping.attr("_MutableMapping__marker");
  mapping.attr("register")(attributes);
}

}  // namespace passlib
