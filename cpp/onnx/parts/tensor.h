// Tensors of a file: what they state, and their elements.
#ifndef PASSLIB_ONNX_PARTS_TENSOR_H_
#define PASSLIB_ONNX_PARTS_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "onnx/wire/fields.h"

namespace passlib::onnx {

/// An element type that passes see as arrays, by its number in TensorProto.DataType.
struct ElementType {
  const char* name;
  std::size_t size;
  uint32_t field;  ///< of values that are not raw
};

/// Returns null for strings, complex numbers, types smaller than a byte, and types without a code
/// in the extension ABI.
const ElementType* elementType(int32_t code);

/// Returns ONNX's name of an element type in lower case, or "?".
const char* kindName(int32_t code);

/// A TensorProto without dimensions and elements.
struct TensorHead {
  Bytes message;
  Bytes name;
  int32_t type = 0;
  bool segment = false;
  bool external = false;
};

/// A TensorProto.
struct Tensor : TensorHead {
  Bytes raw;
  std::vector<int64_t> dims;
  bool has_raw = false;
};

Tensor readTensor(Bytes message);
/// The same into a tensor whose memory is used again.
void readTensor(Bytes message, Tensor* tensor);
TensorHead readTensorHead(Bytes message);

/// The elements of a tensor, if they can be seen.
struct Elements {
  const ElementType* type = nullptr;  ///< null if they cannot
  std::size_t count = 0;
  Bytes raw;  ///< empty unless they are raw
};

/// Returns the number of elements of dimensions. Throws FormatError if one is negative, or there
/// are more than any memory has; the message begins with what `place` returns.
std::size_t countElements(const std::vector<int64_t>& dims,
                          const std::function<std::string()>& place);

/// Checks the number of elements of a tensor whose data is in the file. Throws FormatError, whose
/// message begins with what `place` returns.
Elements checkElements(const Tensor& tensor, const std::function<std::string()>& place);

/// Writes the elements of a tensor that are not raw, each in the size of its type.
void copyElements(const Tensor& tensor, const Elements& elements, char* target);

/// Returns numbers as Python shows a list of them.
std::string listed(const std::vector<int64_t>& numbers);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_PARTS_TENSOR_H_
