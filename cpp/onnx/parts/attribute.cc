#include "onnx/parts/attribute.h"

#include <algorithm>
#include <cstring>

#include "onnx/wire/numbers.h"

namespace passlib::onnx {
namespace {

using namespace numbers;  // NOLINT: this file only

constexpr uint64_t kMostKinds = 14;

/// The kind of attribute that a field is the value of.
Kind kindOf(const Field& field) {
  const bool is_bytes = field.type == kBytes;
  const bool filled = is_bytes && !field.body.empty();
  switch (field.number) {
    case kF:
      return field.type == kFixed32 ? Kind::kFloat : Kind::kUnknown;
    case kI:
      return field.type == kVarint ? Kind::kInt : Kind::kUnknown;
    case kFloats:
      return filled || field.type == kFixed32 ? Kind::kFloats : Kind::kUnknown;
    case kInts:
      return filled || field.type == kVarint ? Kind::kInts : Kind::kUnknown;
    default:
      break;
  }
  if (!is_bytes) return Kind::kUnknown;
  switch (field.number) {
    case kS:
      return Kind::kString;
    case kT:
      return Kind::kTensor;
    case kG:
      return Kind::kGraph;
    case kStrings:
      return Kind::kStrings;
    case kTensors:
      return Kind::kTensors;
    case kGraphs:
      return Kind::kGraphs;
    case kSparseTensor:
      return Kind::kSparseTensor;
    case kSparseTensors:
      return Kind::kSparseTensors;
    case kTp:
      return Kind::kTypeProto;
    case kTypeProtos:
      return Kind::kTypeProtos;
    default:
      return Kind::kUnknown;
  }
}

}  // namespace

Attribute readAttribute(Bytes message, Arena* arena) {
  Attribute attribute;
  attribute.message = message;
  Kind first = Kind::kUnknown;
  Bytes text;
  Message tensor;
  Message graph;
  Message sparse;
  Message type;
  Field field;
  for (Fields fields(message); fields.next(&field);) {
    const Kind kind = kindOf(field);
    if (kind != Kind::kUnknown) first = first == Kind::kUnknown ? kind : std::min(first, kind);
    if (kind == Kind::kFloat) {
      std::memcpy(&attribute.real, field.body.data(), sizeof attribute.real);
    } else if (kind == Kind::kInt) {
      attribute.whole = static_cast<int64_t>(field.value);
    } else if (kind == Kind::kString) {
      text = field.body;
    } else if (kind == Kind::kTensor) {
      tensor.add(field.body, arena);
    } else if (kind == Kind::kGraph) {
      graph.add(field.body, arena);
    } else if (kind == Kind::kSparseTensor) {
      sparse.add(field.body, arena);
    } else if (kind == Kind::kTypeProto) {
      type.add(field.body, arena);
    } else if (field.number == kName && field.type == kBytes) {
      attribute.name = field.body;
    } else if (field.number == kRefAttrName && field.type == kBytes) {
      attribute.reference = field.body;
    } else if (field.number == kType && field.type == kVarint) {
      // Unknown members of an enumeration are unknown fields.
      if (field.value <= kMostKinds) attribute.kind = static_cast<Kind>(field.value);
    }
  }
  if (attribute.kind == Kind::kUnknown) attribute.kind = first;
  switch (attribute.kind) {
    case Kind::kTensor:
      attribute.content = tensor.bytes();
      break;
    case Kind::kGraph:
      attribute.content = graph.bytes();
      break;
    case Kind::kSparseTensor:
      attribute.content = sparse.bytes();
      break;
    case Kind::kTypeProto:
      attribute.content = type.bytes();
      break;
    default:
      attribute.content = text;
  }
  return attribute;
}

}  // namespace passlib::onnx
