#include "onnx/parts/tensor.h"

#include <cstring>
#include <iterator>

#include "errors.h"
#include "onnx/wire/numbers.h"

namespace passlib::onnx {
namespace {

using namespace numbers;  // NOLINT: this file only

/// Element counts above this one are refused.
constexpr int64_t kMostElements = int64_t{1} << 58;

/// The limit of NumPy 1.
constexpr std::size_t kMostDimensions = 32;

/// Returns the product of the dimensions, those of zero left out; beyond the limit, the limit + 1.
int64_t productOfPositive(const std::vector<int64_t>& dims) {
  int64_t product = 1;
  for (const int64_t size : dims) {
    if (size == 0) continue;
    if (__builtin_mul_overflow(product, size, &product) || product > kMostElements) {
      return kMostElements + 1;
    }
  }
  return product;
}

using Place = std::function<std::string()>;

/// Calls `visit` for the values of a field that is not raw: their bits, widened to 64.
template <typename Visit>
void forEachValue(const Tensor& tensor, const ElementType& type, Visit visit) {
  Field field;
  for (Fields fields(tensor.message); fields.next(&field);) {
    if (field.number != type.field) continue;
    if (type.field == kFloatData) {
      forEachFixed(field, kFixed32, [&](const char* place) {
        uint32_t bits = 0;
        std::memcpy(&bits, place, sizeof bits);
        visit(uint64_t{bits});
      });
    } else if (type.field == kDoubleData) {
      forEachFixed(field, kFixed64, [&](const char* place) {
        uint64_t bits = 0;
        std::memcpy(&bits, place, sizeof bits);
        visit(bits);
      });
    } else {
      forEachVarint(field, visit);
    }
  }
}

void readHeadField(const Field& field, TensorHead* tensor) {
  const bool is_bytes = field.type == kBytes;
  if (field.number == kDataType && field.type == kVarint) {
    tensor->type = static_cast<int32_t>(field.value);
  } else if (field.number == kSegment && is_bytes) {
    tensor->segment = true;
  } else if (field.number == kTensorName && is_bytes) {
    tensor->name = field.body;
  } else if (field.number == kDataLocation && field.type == kVarint) {
    // Unknown members of an enumeration are unknown fields.
    const auto location = static_cast<int32_t>(field.value);
    if (location == 0 || location == 1) tensor->external = location == 1;
  }
}

const char* fieldName(uint32_t field) {
  switch (field) {
    case kFloatData:
      return "float_data";
    case kDoubleData:
      return "double_data";
    case kInt64Data:
      return "int64_data";
    case kUint64Data:
      return "uint64_data";
    default:
      return "int32_data";
  }
}

}  // namespace

const ElementType* elementType(int32_t code) {
  static const ElementType types[] = {
      {nullptr, 0, 0},
      {"float32", 4, kFloatData},
      {"uint8", 1, kInt32Data},
      {"int8", 1, kInt32Data},
      {"uint16", 2, kInt32Data},
      {"int16", 2, kInt32Data},
      {"int32", 4, kInt32Data},
      {"int64", 8, kInt64Data},
      {nullptr, 0, 0},
      {"bool", 1, kInt32Data},
      {"float16", 2, kInt32Data},
      {"float64", 8, kDoubleData},
      {"uint32", 4, kUint64Data},
      {"uint64", 8, kUint64Data},
      {nullptr, 0, 0},
      {nullptr, 0, 0},
      {"bfloat16", 2, kInt32Data},
  };
  if (code < 0 || static_cast<std::size_t>(code) >= std::size(types)) return nullptr;
  return types[code].name == nullptr ? nullptr : &types[code];
}

const char* kindName(int32_t code) {
  static const char* const names[] = {
      "undefined",      "float",      "uint8",          "int8",       "uint16",     "int16",
      "int32",          "int64",      "string",         "bool",       "float16",    "double",
      "uint32",         "uint64",     "complex64",      "complex128", "bfloat16",   "float8e4m3fn",
      "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4",      "int4",       "float4e2m1",
      "float8e8m0",     "uint2",      "int2",           "float6e2m3", "float6e3m2",
  };
  const bool known = code >= 0 && static_cast<std::size_t>(code) < std::size(names);
  return known ? names[code] : "?";
}

TensorHead readTensorHead(Bytes message) {
  TensorHead tensor;
  tensor.message = message;
  Field field;
  for (Fields fields(message); fields.next(&field);) readHeadField(field, &tensor);
  return tensor;
}

void readTensor(Bytes message, Tensor* tensor) {
  static_cast<TensorHead&>(*tensor) = TensorHead();
  tensor->message = message;
  tensor->raw = Bytes();
  tensor->has_raw = false;
  tensor->dims.clear();
  Field field;
  for (Fields fields(message); fields.next(&field);) {
    if (field.number == kDims) {
      forEachVarint(field,
                    [&](uint64_t size) { tensor->dims.push_back(static_cast<int64_t>(size)); });
    } else if (field.number == kRawData && field.type == kBytes) {
      tensor->has_raw = true;
      tensor->raw = field.body;
    } else {
      readHeadField(field, tensor);
    }
  }
}

Tensor readTensor(Bytes message) {
  Tensor tensor;
  readTensor(message, &tensor);
  return tensor;
}

std::size_t countElements(const std::vector<int64_t>& dims, const Place& place) {
  bool empty = false;
  for (const int64_t size : dims) {
    if (size < 0) throw FormatError(place() + ": a dimension of " + listed(dims) + " is negative");
    empty = empty || size == 0;
  }
  const int64_t product = productOfPositive(dims);
  if (dims.size() > kMostDimensions || product > kMostElements) {
    throw FormatError(place() + ": dimensions " + listed(dims) + " are too large for any memory");
  }
  return empty ? 0 : static_cast<std::size_t>(product);
}

Elements checkElements(const Tensor& tensor, const Place& place) {
  Elements elements;
  elements.count = countElements(tensor.dims, place);
  const ElementType* type = elementType(tensor.type);
  if (type == nullptr || tensor.segment) return elements;
  elements.type = type;
  if (tensor.has_raw) {
    const std::size_t size = elements.count * type->size;
    if (tensor.raw.size() != size) {
      throw FormatError(place() + ": raw data of " + std::to_string(tensor.raw.size()) +
                        " bytes, but dimensions " + listed(tensor.dims) + " of " + type->name +
                        " take " + std::to_string(size));
    }
    elements.raw = tensor.raw;
    return elements;
  }
  std::size_t found = 0;
  forEachValue(tensor, *type, [&](uint64_t) { ++found; });
  if (found != elements.count) {
    throw FormatError(place() + ": " + std::to_string(found) + " elements in " +
                      fieldName(type->field) + ", but dimensions " + listed(tensor.dims) +
                      " require " + std::to_string(elements.count));
  }
  return elements;
}

void copyElements(const Tensor& tensor, const Elements& elements, char* target) {
  const ElementType& type = *elements.type;
  const bool is_bool = tensor.type == 9;
  forEachValue(tensor, type, [&](uint64_t bits) {
    if (is_bool) bits = static_cast<uint32_t>(bits) != 0 ? 1 : 0;
    std::memcpy(target, &bits, type.size);  // little endian, as the format is
    target += type.size;
  });
}

std::string listed(const std::vector<int64_t>& numbers) {
  std::string text = "[";
  for (const int64_t number : numbers) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(number);
  }
  return text + "]";
}

}  // namespace passlib::onnx
