// Elements of float tensors of any precision, as double.
#ifndef FOLD_NUMBERS_H_
#define FOLD_NUMBERS_H_

#include <algorithm>

#include "lib_api.h"

namespace fold {

using namespace mxnet::ext;

/// Value of an IEEE half-precision number.
inline double fromHalf(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  double value = exponent == 0 ? std::ldexp(fraction, -24)  // subnormal
                               : std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 31) value = fraction == 0 ? INFINITY : NAN;
  return (bits & 0x8000) != 0 ? -value : value;
}

/// The nearest half-precision number to a value for which `fits` is true.
inline uint16_t toHalf(double value) {
  int exponent;
  std::frexp(value, &exponent);
  // Exponent of the last binary digit.
  const int unit = value == 0 ? -24 : std::max(exponent - 11, -24);
  const int digits = static_cast<int>(std::nearbyint(std::ldexp(std::fabs(value), -unit)));
  const int magnitude = ((unit + 25) << 10) + digits - 1024;
  return static_cast<uint16_t>(magnitude | (std::signbit(value) ? 0x8000 : 0));
}

inline bool isReal(MXDType dtype) {
  return dtype == kFloat32 || dtype == kFloat64 || dtype == kFloat16;
}

inline std::vector<double> readAll(const MXTensor& tensor) {
  std::vector<double> values(static_cast<std::size_t>(tensor.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (tensor.dtype == kFloat16) {
      values[i] = fromHalf(tensor.data<uint16_t>()[i]);
    } else {
      values[i] = tensor.dtype == kFloat32 ? tensor.data<float>()[i] : tensor.data<double>()[i];
    }
  }
  return values;
}

inline void writeAll(const std::vector<double>& values, MXTensor* tensor) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (tensor->dtype == kFloat16) {
      tensor->data<uint16_t>()[i] = toHalf(values[i]);
    } else if (tensor->dtype == kFloat32) {
      tensor->data<float>()[i] = static_cast<float>(values[i]);
    } else {
      tensor->data<double>()[i] = values[i];
    }
  }
}

/// Whether all values are finite, and stay finite as elements of this type.
inline bool fits(const std::vector<double>& values, MXDType dtype) {
  double limit = std::numeric_limits<double>::max();
  if (dtype == kFloat32) limit = std::numeric_limits<float>::max();
  if (dtype == kFloat16) limit = 65504;
  // Not "> limit": that would let NaN pass.
  return std::all_of(values.begin(), values.end(),
                     [limit](double value) { return std::fabs(value) <= limit; });
}

}  // namespace fold

#endif  // FOLD_NUMBERS_H_
