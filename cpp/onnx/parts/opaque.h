// Constants that NumPy cannot represent.
#ifndef PASSLIB_ONNX_PARTS_OPAQUE_H_
#define PASSLIB_ONNX_PARTS_OPAQUE_H_

#include "onnx/parts/attribute.h"
#include "onnx/parts/tensor.h"

namespace passlib::onnx {

/// Returns the element type of a tensor that passes do not see as an array; null if they do.
inline const char* opaqueKind(const TensorHead& tensor) {
  const bool seen = elementType(tensor.type) != nullptr && (tensor.external || !tensor.segment);
  return seen ? nullptr : kindName(tensor.type);
}

/// The same for the value of a node Constant.
inline const char* opaqueKind(const Attribute& value) {
  switch (value.kind) {
    case Kind::kTensor:
      return opaqueKind(readTensorHead(value.content));
    case Kind::kSparseTensor:
      return "sparse";
    case Kind::kString:
    case Kind::kStrings:
      return "string";
    default:
      return nullptr;
  }
}

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_PARTS_OPAQUE_H_
