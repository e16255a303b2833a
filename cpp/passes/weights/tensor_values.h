// Elements of real tensors of any precision, as double.
#ifndef PASSES_TENSOR_VALUES_H_
#define PASSES_TENSOR_VALUES_H_

#include <vector>

#include "lib_api.h"

namespace passes {

using namespace mxnet::ext;

/// Whether a type is supported here: float16, float32, float64.
bool isReal(MXDType dtype);

/// Returns all elements in row-major order. The tensor must be real, dense and on the CPU.
std::vector<double> valuesOf(const MXTensor& tensor);

/// Writes all elements of the tensor, each rounded to the nearest value of its type.
void setValues(MXTensor* tensor, const std::vector<double>& values);

/// Whether all values are finite, and stay finite as elements of a type.
bool isFiniteAs(const std::vector<double>& values, MXDType dtype);

/// Whether the elements stay finite when each run of size / factors.size() elements is multiplied
/// by one factor. There are no more factors than elements.
bool scalesToFinite(const MXTensor& tensor, const std::vector<double>& factors);

/// Writes the elements of a tensor of the same type and size, multiplied in the same way, without a
/// copy of all elements as double.
void setScaled(MXTensor* target, const MXTensor& source, const std::vector<double>& factors);

}  // namespace passes

#endif  // PASSES_TENSOR_VALUES_H_
