// Tensors in attributes as JSON.
#ifndef PASSLIB_ONNX_TEXT_TENSOR_TEXT_H_
#define PASSLIB_ONNX_TEXT_TENSOR_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "onnx/parts/tensor.h"

namespace passlib::onnx {

/// Appends type, shape and elements of a tensor; of larger ones, and of those whose elements
/// cannot be seen, the place to refer to.
void appendTensorText(const Tensor& tensor, const std::string& where, std::string* out);

/// The same for elements in memory, of whatever number.
void appendElementsText(int32_t type, const std::vector<int64_t>& dims, const char* data,
                        std::string* out);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_TEXT_TENSOR_TEXT_H_
