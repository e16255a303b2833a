#include "onnx/text/attribute_text.h"

#include <cstring>

#include "onnx/parts/long_attribute.h"
#include "onnx/parts/sparse.h"
#include "onnx/text/numbers.h"
#include "onnx/text/strings.h"
#include "onnx/text/tensor_text.h"
#include "onnx/text/type_text.h"
#include "onnx/wire/numbers.h"

namespace passlib::onnx {
namespace {

/// Calls `item` with each body of a repeated field, and writes commas and brackets around.
template <typename Append>
std::string listOf(const Attribute& attribute, uint32_t number, Append item) {
  std::string text = "[";
  std::size_t count = 0;
  forEachBody(attribute.message, number, [&](Bytes body) {
    if (count > 0) text += ", ";
    item(body, count++, &text);
  });
  return text + "]";
}

std::string realsText(const Attribute& attribute) {
  std::string text = "[";
  Field field;
  for (Fields fields(attribute.message); fields.next(&field);) {
    if (field.number != numbers::kFloats) continue;
    forEachFixed(field, kFixed32, [&](const char* place) {
      float value = 0;
      std::memcpy(&value, place, sizeof value);
      if (text.size() > 1) text += ", ";
      appendFloat(value, &text);
    });
  }
  text.push_back(']');
  return text;
}

std::string wholesText(const Attribute& attribute) {
  std::string text = "[";
  Field field;
  for (Fields fields(attribute.message); fields.next(&field);) {
    if (field.number != numbers::kInts) continue;
    forEachVarint(field, [&](uint64_t value) {
      if (text.size() > 1) text += ", ";
      text += std::to_string(static_cast<int64_t>(value));
    });
  }
  return text + "]";
}

void appendSparse(Bytes message, const std::string& where, Arena* arena, std::string* out) {
  const SparseTensor sparse = readSparse(message, arena);
  out->append("{\"shape\": ").append(listed(sparse.dims)).append(", \"values\": ");
  appendTensorText(readTensor(sparse.values), where, out);
  out->append(", \"indices\": ");
  appendTensorText(readTensor(sparse.indices), where, out);
  out->push_back('}');
}

std::string at(const std::string& where, std::size_t number) {
  return where + "[" + std::to_string(number) + "]";
}

}  // namespace

std::string attributeText(const Attribute& attribute, const std::string& node,
                          std::size_t graphs_before, std::size_t graphs, Arena* arena) {
  if (!attribute.reference.empty()) return "@" + decoded(attribute.reference);
  if (isLong(attribute)) return summaryOf(attribute);
  const auto where = [&] { return node + "/" + std::string(attribute.name); };
  std::string text;
  switch (attribute.kind) {
    case Kind::kInt:
      return std::to_string(attribute.whole);
    case Kind::kFloat:
      appendFloat(attribute.real, &text);
      return text;
    case Kind::kString:
      return decoded(attribute.content);
    case Kind::kInts:
      return wholesText(attribute);
    case Kind::kFloats:
      return realsText(attribute);
    case Kind::kStrings:
      return listOf(attribute, numbers::kStrings, [](Bytes body, std::size_t, std::string* out) {
        appendJsonString(decoded(body), false, out);
      });
    case Kind::kGraph:
      return "subgraph[" + std::to_string(graphs_before) + "]";
    case Kind::kGraphs:
      return "subgraph[" + std::to_string(graphs_before) + ":" +
             std::to_string(graphs_before + graphs) + "]";
    case Kind::kTensor:
      appendTensorText(readTensor(attribute.content), where(), &text);
      return text;
    case Kind::kTensors:
      return listOf(attribute, numbers::kTensors, [&](Bytes body, std::size_t i, std::string* out) {
        appendTensorText(readTensor(body), at(where(), i), out);
      });
    case Kind::kSparseTensor:
      appendSparse(attribute.content, where(), arena, &text);
      return text;
    case Kind::kSparseTensors:
      return listOf(attribute, numbers::kSparseTensors,
                    [&](Bytes body, std::size_t i, std::string* out) {
                      appendSparse(body, at(where(), i), arena, out);
                    });
    case Kind::kTypeProto:
      appendTypeText(attribute.content, arena, &text);
      return text;
    case Kind::kTypeProtos:
      return listOf(
          attribute, numbers::kTypeProtos,
          [&](Bytes body, std::size_t, std::string* out) { appendTypeText(body, arena, out); });
    case Kind::kUnknown:
      break;
  }
  text = "{\"kind\": 0, \"same_as\": ";
  appendJsonString(where(), true, &text);
  return text + "}";
}

}  // namespace passlib::onnx
