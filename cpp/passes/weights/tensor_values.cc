#include "tensor_values.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace passes {
namespace {

// IEEE 754 binary16: a sign, 5 bits of exponent with bias 15, 10 bits of fraction.
constexpr int kSmallestExponent = -24;  // of the last bit of a subnormal number
constexpr double kLargestHalf = 65504;

double halfToDouble(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const double fraction = bits & 0x3ff;
  double magnitude;
  if (exponent == 0x1f) {
    magnitude = fraction == 0 ? std::numeric_limits<double>::infinity()
                              : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, kSmallestExponent);
  } else {
    magnitude = std::ldexp(fraction + 1024, exponent - 1 + kSmallestExponent);
  }
  return (bits >> 15) != 0 ? -magnitude : magnitude;
}

/// Rounds to the nearest, ties to even; the value is at most kLargestHalf in magnitude.
uint16_t doubleToHalf(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  const int scale =
      magnitude == 0 ? 0 : std::max(std::ilogb(magnitude) - 10 - kSmallestExponent, 0);
  const auto units =
      static_cast<int>(std::nearbyint(std::ldexp(magnitude, -scale - kSmallestExponent)));
  // Adding lets a fraction that was rounded up to 2 carry into the exponent; a normal number's
  // leading bit counts for one step of the exponent by itself.
  return static_cast<uint16_t>(sign | (scale * 1024 + units));
}

template <typename Element>
std::vector<double> widened(const MXTensor& tensor) {
  const Element* first = tensor.data<Element>();
  return std::vector<double>(first, first + tensor.size());
}

template <typename Element>
bool staysFinite(const MXTensor& tensor, const std::vector<double>& factors) {
  const Element* value = tensor.data<Element>();
  const std::size_t run = static_cast<std::size_t>(tensor.size()) / factors.size();
  constexpr double kMost = std::numeric_limits<Element>::max();
  bool finite = true;
  for (const double factor : factors) {
    for (std::size_t k = 0; k < run; ++k) {
      finite &= std::fabs(static_cast<double>(value[k]) * factor) <= kMost;
    }
    value += run;
  }
  return finite;
}

template <typename Element>
void writeScaled(MXTensor* target, const MXTensor& source, const std::vector<double>& factors) {
  const Element* from = source.data<Element>();
  Element* to = target->data<Element>();
  const std::size_t run = static_cast<std::size_t>(source.size()) / factors.size();
  for (const double factor : factors) {
    for (std::size_t k = 0; k < run; ++k) {
      to[k] = static_cast<Element>(static_cast<double>(from[k]) * factor);
    }
    from += run;
    to += run;
  }
}

std::vector<double> scaled(const MXTensor& tensor, const std::vector<double>& factors) {
  std::vector<double> values = valuesOf(tensor);
  const std::size_t run = values.size() / factors.size();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] *= factors[i / run];
  return values;
}

}  // namespace

bool isReal(MXDType dtype) { return dtype == kFloat16 || dtype == kFloat32 || dtype == kFloat64; }

std::vector<double> valuesOf(const MXTensor& tensor) {
  if (tensor.dtype == kFloat64) return widened<double>(tensor);
  if (tensor.dtype == kFloat32) return widened<float>(tensor);
  const uint16_t* first = tensor.data<uint16_t>();
  std::vector<double> values(static_cast<std::size_t>(tensor.size()));
  std::transform(first, first + tensor.size(), values.begin(), halfToDouble);
  return values;
}

void setValues(MXTensor* tensor, const std::vector<double>& values) {
  if (tensor->dtype == kFloat64) {
    std::copy(values.begin(), values.end(), tensor->data<double>());
  } else if (tensor->dtype == kFloat32) {
    std::transform(values.begin(), values.end(), tensor->data<float>(),
                   [](double value) { return static_cast<float>(value); });
  } else {
    std::transform(values.begin(), values.end(), tensor->data<uint16_t>(), doubleToHalf);
  }
}

bool isFiniteAs(const std::vector<double>& values, MXDType dtype) {
  double most = std::numeric_limits<double>::max();
  if (dtype == kFloat32) most = std::numeric_limits<float>::max();
  if (dtype == kFloat16) most = kLargestHalf;
  return std::none_of(values.begin(), values.end(),
                      [most](double value) { return !(std::fabs(value) <= most); });
}

bool scalesToFinite(const MXTensor& tensor, const std::vector<double>& factors) {
  if (factors.empty()) return true;
  if (tensor.dtype == kFloat64) return staysFinite<double>(tensor, factors);
  if (tensor.dtype == kFloat32) return staysFinite<float>(tensor, factors);
  return isFiniteAs(scaled(tensor, factors), tensor.dtype);
}

void setScaled(MXTensor* target, const MXTensor& source, const std::vector<double>& factors) {
  if (factors.empty()) return;
  if (source.dtype == kFloat64) {
    writeScaled<double>(target, source, factors);
  } else if (source.dtype == kFloat32) {
    writeScaled<float>(target, source, factors);
  } else {
    setValues(target, scaled(source, factors));
  }
}

}  // namespace passes
