#include "facts/fact.h"

#include <algorithm>

namespace passlib::facts {

bool isInteger(Type type) {
  return (type >= kUint8 && type <= kInt64) || type == kUint32 || type == kUint64 ||
         type == kUint4 || type == kInt4;
}

bool isReal(Type type) {
  return type == kFloat || type == kFloat16 || type == kDouble || type == kBfloat16;
}

bool isStatic(const Shape& shape) {
  for (const Dim& dim : shape) {
    if (!dim.isNumber()) return false;
  }
  return true;
}

std::optional<std::size_t> fewElements(const Shape& shape) {
  if (!isStatic(shape)) return std::nullopt;
  const Dim count = product(shape);
  if (!count.isNumber() || count.number() < 0) return std::nullopt;
  const auto size = static_cast<std::size_t>(count.number());
  return size <= kMostElements ? std::optional<std::size_t>(size) : std::nullopt;
}

const std::vector<Dim>* wholeItems(const Fact& fact) {
  if (!fact.isTensor() || fact.content == nullptr || isReal(fact.type)) return nullptr;
  if (!fact.shape || !fewElements(*fact.shape)) return nullptr;
  const std::vector<Dim>& items = fact.content->items;
  const auto is_known = [](const Dim& item) { return item.isKnown(); };
  return std::all_of(items.begin(), items.end(), is_known) ? &items : nullptr;
}

std::string print(const Shape& shape) {
  std::string text = "[";
  for (const Dim& dim : shape) text += (text.size() > 1 ? ", " : "") + print(dim);
  return text + "]";
}

std::string print(const Fact& fact) {
  static const char* const kNames[] = {"?",
                                       "float",
                                       "uint8",
                                       "int8",
                                       "uint16",
                                       "int16",
                                       "int32",
                                       "int64",
                                       "string",
                                       "bool",
                                       "float16",
                                       "double",
                                       "uint32",
                                       "uint64",
                                       "complex64",
                                       "complex128",
                                       "bfloat16",
                                       "float8e4m3fn",
                                       "float8e4m3fnuz",
                                       "float8e5m2",
                                       "float8e5m2fnuz",
                                       "uint4",
                                       "int4",
                                       "float4e2m1"};
  const auto nameOf = [](Type type) {
    const auto index = static_cast<std::size_t>(type);
    return index < sizeof kNames / sizeof *kNames ? std::string(kNames[index])
                                                  : std::to_string(type);
  };
  std::string text;
  for (const Wrapper wrapper : fact.wrappers) {
    text += wrapper == Wrapper::kSequence   ? "seq("
            : wrapper == Wrapper::kOptional ? "optional("
                                            : "map(" + nameOf(fact.key) + ", ";
  }
  text += nameOf(fact.type);
  text += fact.shape ? print(*fact.shape) : "[...]";
  text.append(fact.wrappers.size(), ')');
  return text;
}

}  // namespace passlib::facts
