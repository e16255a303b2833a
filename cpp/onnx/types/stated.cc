#include "onnx/types/stated.h"

#include "onnx/wire/numbers.h"

namespace passlib::onnx {
namespace {

using numbers::kDim;
using numbers::kDimParam;
using numbers::kDimValue;
using numbers::kElementType;
using numbers::kInput;
using numbers::kShape;
using numbers::kTensorType;
using numbers::kValueType;

/// Returns a size, or -1. Of the members of a oneof, the last one counts.
int64_t readSize(Bytes dimension) {
  int64_t size = -1;
  Field field;
  for (Fields fields(dimension); fields.next(&field);) {
    if (field.number == kDimValue && field.type == kVarint) {
      size = static_cast<int64_t>(field.value);
    } else if (field.number == kDimParam) {
      size = -1;
    }
  }
  return size < 0 ? -1 : size;
}

/// Whether a field of a TypeProto is one of those of which it has one.
bool isMember(uint32_t number) {
  switch (number) {
    case kTensorType:
    case numbers::kSequenceType:
    case numbers::kMapType:
    case numbers::kOpaqueType:
    case numbers::kSparseType:
    case numbers::kOptionalType:
      return true;
    default:
      return false;
  }
}

/// Returns the tensor type of a TypeProto; null if it is another one or none.
Bytes tensorOf(Bytes type, Arena* arena, bool* other) {
  Message tensor;
  Field field;
  for (Fields fields(type); fields.next(&field);) {
    if (field.type != kBytes || !isMember(field.number)) continue;
    *other = field.number != kTensorType;
    if (*other) {
      tensor = Message();
    } else {
      tensor.add(field.body, arena);
    }
  }
  return tensor.bytes();
}

InputType readType(Bytes type, Arena* arena) {
  InputType stated;
  const Bytes tensor = tensorOf(type, arena, &stated.other);
  if (tensor.data() == nullptr) return stated;
  stated.code = 0;
  Field field;
  for (Fields fields(tensor); fields.next(&field);) {
    if (field.number == kElementType && field.type == kVarint) {
      stated.code = static_cast<int32_t>(field.value);
    }
  }
  const Bytes shape = mergedBody(tensor, kShape, arena);
  if (shape.data() == nullptr) return stated;
  stated.dims.emplace();
  forEachBody(shape, kDim, [&](Bytes dimension) { stated.dims->push_back(readSize(dimension)); });
  return stated;
}

}  // namespace

InputType typeOf(Bytes type) {
  Arena arena;
  return readType(type, &arena);
}

std::vector<InputType> inputTypes(Bytes graph) {
  Arena arena;
  std::vector<InputType> types;
  forEachBody(graph, kInput, [&](Bytes input) {
    types.push_back(readType(mergedBody(input, kValueType, &arena), &arena));
  });
  return types;
}

}  // namespace passlib::onnx
