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

mxnet::ext::GraphAttributes parseAttributes(const AttributeTexts& texts) {
  mxnet::ext::host::JsonTree object(mxnet::ext::MAP);
  for (const auto& [key, json] : texts) {
    mxnet::ext::JsonReader reader(json.data(), json.size());
    reader._readItem(&object, object.add(0, {key.data(), key.size()}));
    reader.finish();
  }
  mxnet::ext::JsonMembers members;
  object.print(&members);
  mxnet::ext::GraphAttributes attributes;
  mxnet::ext::host::GraphAttributeTexts::set(&members, &attributes);
  return attributes;
}

AttributeTexts printAttributes(const mxnet::ext::GraphAttributes& attributes) {
  AttributeTexts texts;
  mxnet::ext::JsonMembers room;
  for (const auto& [key, text] : mxnet::ext::host::GraphAttributeTexts::list(attributes, &room)) {
    texts.emplace(key, text);
  }
  return texts;
}

}  // namespace passlib
