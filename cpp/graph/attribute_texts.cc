#include "graph/attribute_texts.h"

namespace passlib {

mxnet::ext::GraphAttributes parseAttributes(const GraphTexts& texts) {
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

GraphTexts printAttributes(const mxnet::ext::GraphAttributes& attributes) {
  GraphTexts texts;
  mxnet::ext::JsonMembers room;
  for (const auto& [key, text] : mxnet::ext::host::GraphAttributeTexts::list(attributes, &room)) {
    texts.emplace(key, text);
  }
  return texts;
}

}  // namespace passlib
