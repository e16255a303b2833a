#include "onnx/text/numbers.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

namespace passlib::onnx {
namespace {

/// Numbers from one of the first two on, and below the third, are written as 1e+16 and 1e-05.
constexpr double kLeastLarge = 1e16, kLeastLargeFloat = 1e6, kLeastPlain = 1e-4;

template <typename Real>
void appendShortest(Real value, double least_large, std::string* out) {
  char buffer[64];
  const auto written =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string text(buffer, written.ptr);
  const auto size = std::fabs(static_cast<double>(value));
  if (size >= least_large || (size < kLeastPlain && size > 0)) {
    out->append(text);
    return;
  }
  const std::size_t mark = text.find('e');
  const int exponent = std::atoi(text.c_str() + mark + 1);
  std::string digits;
  for (std::size_t i = 0; i < mark; ++i) {
    if (text[i] == '-') out->push_back('-');
    if (text[i] >= '0' && text[i] <= '9') digits.push_back(text[i]);
  }
  if (exponent < 0) {
    out->append("0.").append(static_cast<std::size_t>(-exponent - 1), '0').append(digits);
    return;
  }
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) digits.append(whole + 1 - digits.size(), '0');
  out->append(digits, 0, whole).push_back('.');
  out->append(digits, whole, std::string::npos);
}

}  // namespace

void appendFloat(float value, std::string* out) {
  if (std::isnan(value)) {
    out->append("nan");
  } else if (std::isinf(value)) {
    out->append(value < 0 ? "-inf" : "inf");
  } else {
    appendShortest(value, kLeastLargeFloat, out);
  }
}

void appendJsonNumber(double value, std::string* out) {
  if (std::isnan(value)) {
    out->append("NaN");
  } else if (std::isinf(value)) {
    out->append(value < 0 ? "-Infinity" : "Infinity");
  } else {
    appendShortest(value, kLeastLarge, out);
  }
}

double widenHalf(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  double value = 0;
  if (exponent == 31) {
    value = fraction == 0 ? HUGE_VAL : std::nan("");
  } else if (exponent == 0) {
    value = std::ldexp(fraction, -24);
  } else {
    value = std::ldexp(fraction + 1024, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

}  // namespace passlib::onnx
