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
  attributes._setTexts(&members);
  return attributes;
}

AttributeTexts printAttributes(const mxnet::ext::GraphAttributes& attributes) {
  AttributeTexts texts;
  mxnet::ext::JsonMembers room;
  mxnet::ext::JsonReader::Slice key;
  mxnet::ext::JsonReader::Slice text;
  mxnet::ext::JsonMembers::Walk walk(attributes._texts(&room));
  while (walk.next(&key, &text)) texts.emplace(key.str(), text.str());
  return texts;
}

}  // namespace passlib
