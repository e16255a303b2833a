#include "onnx/types/messages.h"

#include "onnx/wire/numbers.h"
#include "onnx/wire/output.h"

namespace passlib::onnx {

using namespace numbers;  // NOLINT: this file only

std::string valueInfo(Bytes name, const StatedType& type) {
  std::string tensor;
  if (type.code) appendNumber(kElementType, static_cast<uint64_t>(*type.code), &tensor);
  if (type.dims) {
    std::string shape;
    for (const int64_t size : *type.dims) {
      std::string dim;
      if (size >= 0) appendNumber(kDimValue, static_cast<uint64_t>(size), &dim);
      appendBody(kDim, dim, &shape);
    }
    appendBody(kShape, shape, &tensor);
  }
  std::string made;
  appendBody(kValueName, name, &made);
  if (type.code || type.dims) {
    std::string kind;
    appendBody(kTensorType, tensor, &kind);
    appendBody(kValueType, kind, &made);
  }
  return made;
}

std::string withBody(Bytes message, uint32_t number, Bytes body) {
  std::string made;
  appendFields(message, [number](const Field& field) { return field.number < number; }, &made);
  appendBody(number, body, &made);
  appendFields(message, [number](const Field& field) { return field.number > number; }, &made);
  return made;
}

Bytes withName(Bytes message, uint32_t field, Bytes name, Arena* arena) {
  if (bodyOf(message, field) == name) return message;
  return arena->emplace_back(withBody(message, field, name));
}

void appendElements(uint32_t number, const GivenArray& array, std::string* out) {
  if (array.computed == nullptr) return appendBody(number, array.data, out);
  const std::size_t size = array.size();
  appendHead(number, size, out);
  out->resize(out->size() + size);
  array.computed->compute(0, size, out->data() + out->size() - size);
}

void appendTensorHead(const GivenArray& array, Bytes name, Bytes old, bool external,
                      std::string* out) {
  for (const int64_t size : array.dims) appendNumber(kDims, static_cast<uint64_t>(size), out);
  appendNumber(kDataType, static_cast<uint64_t>(array.type), out);
  const auto keep = [external](const Field& field) {
    switch (field.number) {
      case kDims:
      case kDataType:
      case kSegment:
      case kFloatData:
      case kInt32Data:
      case kStringData:
      case kInt64Data:
      case kTensorName:
      case kRawData:
      case kDoubleData:
      case kUint64Data:
        return false;
      case kExternalData:
      case kDataLocation:
        return external;
      default:
        return true;
    }
  };
  appendFields(old, keep, out);
  appendBody(kTensorName, name, out);
}

}  // namespace passlib::onnx
