#include "onnx/text/tensor_text.h"

#include <cstring>

#include "errors.h"
#include "onnx/text/numbers.h"
#include "onnx/text/strings.h"

namespace passlib::onnx {
namespace {

/// Tensors of up to this many elements are spelled out in full.
constexpr std::size_t kMostShown = 256;

template <typename Number>
Number loaded(const char* place) {
  Number number;
  std::memcpy(&number, place, sizeof number);
  return number;
}

void appendElement(int32_t type, const char* place, std::string* out) {
  switch (type) {
    case 1:
      return appendJsonNumber(static_cast<double>(loaded<float>(place)), out);
    case 2:
      out->append(std::to_string(loaded<uint8_t>(place)));
      return;
    case 3:
      out->append(std::to_string(loaded<int8_t>(place)));
      return;
    case 4:
      out->append(std::to_string(loaded<uint16_t>(place)));
      return;
    case 5:
      out->append(std::to_string(loaded<int16_t>(place)));
      return;
    case 6:
      out->append(std::to_string(loaded<int32_t>(place)));
      return;
    case 7:
      out->append(std::to_string(loaded<int64_t>(place)));
      return;
    case 9:
      out->append(*place != 0 ? "true" : "false");
      return;
    case 10:
      return appendJsonNumber(widenHalf(loaded<uint16_t>(place)), out);
    case 11:
      return appendJsonNumber(loaded<double>(place), out);
    case 12:
      out->append(std::to_string(loaded<uint32_t>(place)));
      return;
    case 13:
      out->append(std::to_string(loaded<uint64_t>(place)));
      return;
    default: {  // bfloat16: the upper half of a float32
      const uint32_t bits = static_cast<uint32_t>(loaded<uint16_t>(place)) << 16;
      return appendJsonNumber(
          static_cast<double>(loaded<float>(reinterpret_cast<const char*>(&bits))), out);
    }
  }
}

Elements shownElements(const Tensor& tensor) {
  if (tensor.external) return {};
  try {
    return checkElements(tensor, [] { return std::string(); });
  } catch (const FormatError&) {
    return {};  // of no use to a pass; validation reports it
  }
}

void appendTypeAndShape(int32_t type, const std::vector<int64_t>& dims, std::string* out) {
  const ElementType* known = elementType(type);
  const std::string name = known == nullptr ? "type " + std::to_string(type) : known->name;
  out->append("{\"dtype\": \"").append(name).append("\", \"shape\": ").append(listed(dims));
}

void appendItems(int32_t type, const char* data, std::size_t count, std::string* out) {
  const std::size_t size = elementType(type)->size;
  out->append(", \"data\": [");
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) out->append(", ");
    appendElement(type, data + i * size, out);
  }
  out->append("]}");
}

}  // namespace

void appendElementsText(int32_t type, const std::vector<int64_t>& dims, const char* data,
                        std::string* out) {
  appendTypeAndShape(type, dims, out);
  appendItems(type, data, countElements(dims, [] { return std::string("a weight"); }), out);
}

void appendTensorText(const Tensor& tensor, const std::string& where, std::string* out) {
  appendTypeAndShape(tensor.type, tensor.dims, out);
  const Elements elements = shownElements(tensor);
  if (elements.type == nullptr || elements.count > kMostShown) {
    out->append(", \"same_as\": ");
    appendJsonString(where, true, out);
    out->push_back('}');
    return;
  }
  std::string copied;
  if (!tensor.has_raw) {
    copied.resize(elements.count * elements.type->size);
    copyElements(tensor, elements, copied.data());
  }
  const char* const data = tensor.has_raw ? elements.raw.data() : copied.data();
  appendItems(tensor.type, data, elements.count, out);
}

}  // namespace passlib::onnx
