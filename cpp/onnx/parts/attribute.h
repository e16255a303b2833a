// Attributes of nodes in a file.
#ifndef PASSLIB_ONNX_PARTS_ATTRIBUTE_H_
#define PASSLIB_ONNX_PARTS_ATTRIBUTE_H_

#include <cstdint>
#include <cstring>
#include <vector>

#include "onnx/wire/arena.h"
#include "onnx/wire/fields.h"
#include "onnx/wire/numbers.h"

namespace passlib::onnx {

/// As in AttributeProto.AttributeType.
enum class Kind : uint8_t {
  kUnknown,
  kFloat,
  kInt,
  kString,
  kTensor,
  kGraph,
  kFloats,
  kInts,
  kStrings,
  kTensors,
  kGraphs,
  kSparseTensor,
  kSparseTensors,
  kTypeProto,
  kTypeProtos,
};

/// An AttributeProto.
struct Attribute {
  Bytes message;
  Bytes name = "";  // never null: names are hashed
  Bytes reference;  ///< the name of a function's attribute that this one stands for
  Bytes content;    ///< of a string, a tensor, a graph, a sparse tensor or a type
  int64_t whole = 0;
  float real = 0;
  Kind kind = Kind::kUnknown;

  bool isGraph() const { return kind == Kind::kGraph || kind == Kind::kGraphs; }
};

/// Reads an attribute. Models of the first versions leave its kind out; then it is that of the
/// first value.
Attribute readAttribute(Bytes message, Arena* arena);

/// Calls `visit` with each body of a repeated field of bytes.
template <typename Visit>
void forEachBody(Bytes message, uint32_t number, Visit visit) {
  Field field;
  for (Fields fields(message); fields.next(&field);) {
    if (field.number == number && field.type == kBytes) visit(field.body);
  }
}

/// Returns the body of a message's field, joined from its parts as protocol buffers have it; null
/// if there is none.
inline Bytes mergedBody(Bytes message, uint32_t number, Arena* arena) {
  Message merged;
  forEachBody(message, number, [&](Bytes body) { merged.add(body, arena); });
  return merged.bytes();
}

/// The elements of an attribute that has numbers.
template <typename Number>
std::vector<Number> numbersOf(const Attribute& value) {
  std::vector<Number> numbers;
  Field field;
  for (Fields fields(value.message); fields.next(&field);) {
    if (value.kind == Kind::kInts && field.number == numbers::kInts) {
      forEachVarint(field, [&](uint64_t bits) {
        numbers.push_back(static_cast<Number>(static_cast<int64_t>(bits)));
      });
    } else if (value.kind == Kind::kFloats && field.number == numbers::kFloats) {
      forEachFixed(field, kFixed32, [&](const char* place) {
        float number = 0;
        std::memcpy(&number, place, sizeof number);
        numbers.push_back(static_cast<Number>(number));
      });
    }
  }
  return numbers;
}

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_PARTS_ATTRIBUTE_H_
