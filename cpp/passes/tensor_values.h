// Elements of real tensors as double, of whichever precision they are.
#ifndef PASSES_TENSOR_VALUES_H_
#define PASSES_TENSOR_VALUES_H_

#include <vector>

#include "lib_api.h"

namespace passes {

using namespace mxnet::ext;

/// Whether elements of a type can be read and written here: float16, float32, float64.
bool isReal(MXDType dtype);

/// All elements, row by row. The type must be real, the tensor dense and on the CPU.
std::vector<double> valuesOf(const MXTensor& tensor);

/// Writes as many elements as the tensor has, each rounded to the nearest of its type.
void setValues(MXTensor* tensor, const std::vector<double>& values);

/// Whether all values are finite, and stay finite as elements of a type.
bool isFiniteAs(const std::vector<double>& values, MXDType dtype);

/// Whether the elements stay finite when they are multiplied: each run of
/// size / factors.size() of them by one factor. There are no more factors than elements.
bool scalesToFinite(const MXTensor& tensor, const std::vector<double>& factors);

/// Writes the elements of a tensor of the same type and size, multiplied in that way, without a
/// copy of all of them as double.
void setScaled(MXTensor* target, const MXTensor& source, const std::vector<double>& factors);

}  // namespace passes

#endif  // PASSES_TENSOR_VALUES_H_
