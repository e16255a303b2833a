#include "node_text.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace passes {
namespace {

/// Whether an attribute has no effect on the result of a node.
bool isNote(std::string_view key) {
  return key == "__id__" || key == "__tensor__" || key == "__outputs__" ||
         key == "__profiler_scope__" || key == MX_STR_ORIGIN || key == MX_STR_RULES ||
         key == MX_STR_SHAPE || key == MX_STR_DTYPE;
}

/// Size of an element in bytes; 0 for unknown types.
std::size_t elementSize(MXDType dtype) {
  switch (dtype) {
    case kFloat64:
    case kInt64:
    case kUint64:
      return 8;
    case kFloat32:
    case kInt32:
    case kUint32:
      return 4;
    case kFloat16:
    case kBfloat16:
    case kInt16:
    case kUint16:
      return 2;
    case kUint8:
    case kInt8:
    case kBool:
      return 1;
    case kUNSET:
      break;
  }
  return 0;
}

}  // namespace

void NodeText::add(std::string_view piece) {
  text_ += std::to_string(piece.size());
  text_ += ':';
  text_ += piece;
}

void NodeText::addNumber(std::size_t number) {
  text_ += std::to_string(number);
  text_ += ',';
}

void NodeText::addAttributes(const Node& node) {
  std::vector<std::pair<std::string, std::string>> attributes;
  node.attrs.forEach([&](const std::string& key, const std::string& text) {
    if (!isNote(key)) attributes.emplace_back(key, text);
  });
  std::sort(attributes.begin(), attributes.end());
  addNumber(attributes.size());
  for (const auto& [key, text] : attributes) {
    add(key);
    add(text);
  }
}

void NodeText::addType(const MXTensor& tensor) {
  addNumber(static_cast<std::size_t>(tensor.dtype));
  addNumber(tensor.shape.size());
  for (int64_t size : tensor.shape) addNumber(static_cast<std::size_t>(size));
}

std::string_view bytesOf(const MXTensor& tensor) {
  const std::size_t size = static_cast<std::size_t>(tensor.size()) * elementSize(tensor.dtype);
  return size == 0 ? std::string_view() : std::string_view(tensor.data<char>(), size);
}

bool isDense(const MXTensor* tensor) {
  return tensor != nullptr && tensor->ctx.dev_type.compare(0, 3, "cpu") == 0 &&
         tensor->stype == kDefaultStorage && elementSize(tensor->dtype) != 0;
}

}  // namespace passes
