#include "rules/known.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace passlib::rules {

using mxnet::ext::MXDType;
using mxnet::ext::MXTensor;

namespace {

struct TypePair {
  MXDType array;
  int code;
  std::size_t bytes;
};
constexpr std::array<TypePair, 13> kArrayTypes = {{{mxnet::ext::kFloat32, 1, 4},
                                                   {mxnet::ext::kFloat64, 11, 8},
                                                   {mxnet::ext::kFloat16, 10, 2},
                                                   {mxnet::ext::kUint8, 2, 1},
                                                   {mxnet::ext::kInt32, 6, 4},
                                                   {mxnet::ext::kInt8, 3, 1},
                                                   {mxnet::ext::kInt64, 7, 8},
                                                   {mxnet::ext::kBool, 9, 1},
                                                   {mxnet::ext::kInt16, 5, 2},
                                                   {mxnet::ext::kUint16, 4, 2},
                                                   {mxnet::ext::kUint32, 12, 4},
                                                   {mxnet::ext::kUint64, 13, 8},
                                                   {mxnet::ext::kBfloat16, 16, 2}}};

template <typename Number>
Number loaded(const MXTensor& tensor, std::size_t pos) {
  Number value;
  std::memcpy(&value, static_cast<const char*>(tensor.data_ptr) + pos * sizeof(value),
              sizeof(value));
  return value;
}

template <typename Number>
void store(const MXTensor& tensor, std::size_t pos, Number value) {
  std::memcpy(static_cast<char*>(tensor.data_ptr) + pos * sizeof(value), &value, sizeof(value));
}

float halfToFloat(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const float fraction = static_cast<float>(bits & 1023);
  float size = std::ldexp(fraction + 1024, exponent - 25);
  if (exponent == 0) size = std::ldexp(fraction, -24);
  if (exponent == 31) {
    size = fraction != 0 ? std::numeric_limits<float>::quiet_NaN()
                         : std::numeric_limits<float>::infinity();
  }
  return (bits & 0x8000) != 0 ? -size : size;
}

/// Rounds to the nearest, ties to even, without branches, so that a loop takes many at once. NaN
/// keeps the first bits of its payload, as in NumPy.
uint16_t floatToHalf(float value) {
  constexpr uint32_t kInfinity = 0x7f800000;
  constexpr uint32_t kLarge = 0x47800000;   // 65536
  constexpr uint32_t kNormal = 0x38800000;  // 2^-14
  constexpr float kLastBit = 0.5F;          // its last bit is worth 2^-24
  const auto bitsOf = [](float number) {
    uint32_t bits = 0;
    std::memcpy(&bits, &number, sizeof(bits));
    return bits;
  };
  const uint32_t sign = bitsOf(value) >> 31 << 15;
  const uint32_t size = bitsOf(value) & 0x7fffffffU;
  const uint32_t payload = (size >> 13) & 0x3ffU;
  const uint32_t nan = 0x7c00U + (payload == 0 ? 1U : payload);
  const uint32_t large = size > kInfinity ? nan : 0x7c00U;
  const uint32_t normal = (size - (112U << 23) + 0xfffU + ((size >> 13) & 1U)) >> 13;
  const uint32_t small = bitsOf(std::fabs(value) + kLastBit) - bitsOf(kLastBit);
  const uint32_t made = size >= kLarge ? large : size < kNormal ? small : normal;
  return static_cast<uint16_t>(sign | made);
}

/// The same for the upper half of a float. NaN has no payload, as in ml_dtypes.
uint16_t floatToBfloat(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint32_t nan = 0x7fc0U | (bits >> 31 << 15);
  const uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  return static_cast<uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? nan : rounded);
}

template <uint16_t (*round)(float)>
void roundAll(const char* from, std::size_t count, char* made) {
  for (std::size_t pos = 0; pos < count; ++pos) {
    float value = 0;
    std::memcpy(&value, from + pos * sizeof(value), sizeof(value));
    const uint16_t bits = round(value);
    std::memcpy(made + pos * sizeof(bits), &bits, sizeof(bits));
  }
}

/// Stores a number as an element.
template <typename Number>
void storeNumber(const MXTensor& tensor, std::size_t pos, Number value) {
  switch (tensor.dtype) {
    case mxnet::ext::kFloat32:
      return store(tensor, pos, static_cast<float>(value));
    case mxnet::ext::kFloat64:
      return store(tensor, pos, static_cast<double>(value));
    case mxnet::ext::kFloat16:
      return store(tensor, pos, floatToHalf(static_cast<float>(value)));
    case mxnet::ext::kBfloat16:
      return store(tensor, pos, floatToBfloat(static_cast<float>(value)));
    case mxnet::ext::kBool:
      return store(tensor, pos, static_cast<uint8_t>(value != 0 ? 1 : 0));
    case mxnet::ext::kUint8:
      return store(tensor, pos, static_cast<uint8_t>(value));
    case mxnet::ext::kInt8:
      return store(tensor, pos, static_cast<int8_t>(value));
    case mxnet::ext::kInt16:
      return store(tensor, pos, static_cast<int16_t>(value));
    case mxnet::ext::kUint16:
      return store(tensor, pos, static_cast<uint16_t>(value));
    case mxnet::ext::kInt32:
      return store(tensor, pos, static_cast<int32_t>(value));
    case mxnet::ext::kUint32:
      return store(tensor, pos, static_cast<uint32_t>(value));
    case mxnet::ext::kUint64:
      return store(tensor, pos, static_cast<uint64_t>(value));
    default:
      return store(tensor, pos, static_cast<int64_t>(value));
  }
}

}  // namespace

int onnxType(MXDType type) {
  for (const TypePair& each : kArrayTypes) {
    if (each.array == type) return each.code;
  }
  return 0;
}

MXDType arrayType(int code) {
  for (const TypePair& each : kArrayTypes) {
    if (each.code == code) return each.array;
  }
  return mxnet::ext::kUNSET;
}

std::size_t bytesOf(MXDType type) {
  for (const TypePair& each : kArrayTypes) {
    if (each.array == type) return each.bytes;
  }
  return 0;
}

bool isWhole(int code) { return (code >= 2 && code <= 7) || code == 12 || code == 13; }
bool isReal(int code) { return code == 1 || code == 10 || code == 11 || code == 16; }

bool fits(double number, int code) {
  if (isReal(code)) return true;
  if (code == 9) return number == 0 || number == 1;
  if (!isWhole(code) || number != std::floor(number)) return false;
  // Codes 2, 4, 12 and 13 are without signs, 3, 5, 6 and 7 with them.
  const bool has_sign = code == 3 || (code >= 5 && code <= 7);
  const int bits = static_cast<int>(8 * bytesOf(arrayType(code))) - (has_sign ? 1 : 0);
  const double end = std::ldexp(1.0, bits);
  return number < end && number >= (has_sign ? -end : 0);
}

int64_t integerAt(const MXTensor& tensor, std::size_t pos) {
  switch (tensor.dtype) {
    case mxnet::ext::kUint8:
      return loaded<uint8_t>(tensor, pos);
    case mxnet::ext::kBool:
      return loaded<uint8_t>(tensor, pos) != 0 ? 1 : 0;
    case mxnet::ext::kInt8:
      return loaded<int8_t>(tensor, pos);
    case mxnet::ext::kInt16:
      return loaded<int16_t>(tensor, pos);
    case mxnet::ext::kUint16:
      return loaded<uint16_t>(tensor, pos);
    case mxnet::ext::kInt32:
      return loaded<int32_t>(tensor, pos);
    case mxnet::ext::kUint32:
      return loaded<uint32_t>(tensor, pos);
    default:
      return loaded<int64_t>(tensor, pos);
  }
}

double elementAt(const MXTensor& tensor, std::size_t pos) {
  switch (tensor.dtype) {
    case mxnet::ext::kFloat32:
      return loaded<float>(tensor, pos);
    case mxnet::ext::kFloat64:
      return loaded<double>(tensor, pos);
    case mxnet::ext::kFloat16:
      return halfToFloat(loaded<uint16_t>(tensor, pos));
    case mxnet::ext::kBfloat16: {
      const uint32_t bits = static_cast<uint32_t>(loaded<uint16_t>(tensor, pos)) << 16;
      float value = 0;
      std::memcpy(&value, &bits, sizeof(value));
      return value;
    }
    case mxnet::ext::kUint64:
      return static_cast<double>(loaded<uint64_t>(tensor, pos));
    default:
      return static_cast<double>(integerAt(tensor, pos));
  }
}

void setElementAt(const MXTensor& tensor, std::size_t pos, double value) {
  storeNumber(tensor, pos, value);
}

void setIntegerAt(const MXTensor& tensor, std::size_t pos, int64_t value) {
  storeNumber(tensor, pos, value);
}

void roundToHalf(const char* from, const MXTensor& made) {
  const auto count = static_cast<std::size_t>(std::max<int64_t>(made.size(), 0));
  const auto round =
      made.dtype == mxnet::ext::kFloat16 ? &roundAll<floatToHalf> : &roundAll<floatToBfloat>;
  round(from, count, static_cast<char*>(made.data_ptr));
}

bool isFinite(const MXTensor& tensor) {
  if (!isReal(onnxType(tensor.dtype))) return true;
  const std::size_t count = static_cast<std::size_t>(std::max<int64_t>(tensor.size(), 0));
  if (tensor.dtype == mxnet::ext::kFloat32) {
    // Infinity and NaN have all bits of the exponent. Without a branch the loop takes many at once.
    uint32_t found = 0;
    for (std::size_t pos = 0; pos < count; ++pos)
      found |= (loaded<uint32_t>(tensor, pos) & 0x7f800000U) == 0x7f800000U ? 1U : 0U;
    return found == 0;
  }
  for (std::size_t pos = 0; pos < count; ++pos) {
    if (!std::isfinite(elementAt(tensor, pos))) return false;
  }
  return true;
}

}  // namespace passlib::rules
