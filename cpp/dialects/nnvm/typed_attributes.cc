#include "dialects/nnvm/typed_attributes.h"

#include <cstdint>
#include <string_view>

namespace passlib::nnvm {
namespace {

/// Reads a value of a type, any value of an unknown one. Returns its number of items, 0 if it is no
/// list.
std::size_t readTyped(PlainJson* json, std::string_view type) {
  std::size_t count = 0;
  if (type == "int") {
    json->integer();
  } else if (type == "size_t") {
    json->integer(0, INT64_MAX);
  } else if (type == "str") {
    json->text();
  } else if (type == "list_int") {
    json->list([&] { json->integer(), ++count; });
  } else if (type == "list_str" || type == "list_layout") {
    json->list([&] { json->text(), ++count; });
  } else if (type == "list_shape") {
    json->list([&] { json->list([&] { json->integer(); }), ++count; });
  } else {
    json->valueText();
  }
  return count;
}

}  // namespace

std::vector<std::size_t> readTypedAttributes(PlainJson* json,
                                             const TextMap<std::string>& per_entry) {
  std::vector<std::size_t> counts;
  TextSet names;
  json->object([&](std::string_view key) {
    const auto [name, fresh] = names.emplace(key);
    require(fresh);
    const auto wanted = per_entry.find(*name);
    std::string type;
    int part = 0;
    json->list([&] {
      if (part == 0) type = json->text();
      if (part == 1) counts.push_back(readTyped(json, type));
      require(part++ < 2);
    });
    require(part == 2 && (wanted == per_entry.end() || wanted->second == type));
    if (wanted == per_entry.end()) counts.pop_back();
  });
  return counts;
}

}  // namespace passlib::nnvm
