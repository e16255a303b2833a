// Tensors in attributes as JSON.
#ifndef PASSLIB_ONNX_TEXT_TENSOR_TEXT_H_
#define PASSLIB_ONNX_TEXT_TENSOR_TEXT_H_

#include <string>

#include "onnx/parts/tensor.h"

namespace passlib::onnx {

/// Appends type, shape and elements of a tensor; of larger ones, and of those whose elements
/// cannot be seen, the place to refer to.
void appendTensorText(const Tensor& tensor, const std::string& where, std::string* out);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_TEXT_TENSOR_TEXT_H_
