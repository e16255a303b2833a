#include "onnx/parts/long_attribute.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "onnx/parts/tensor.h"
#include "onnx/wire/numbers.h"
#include "onnx/wire/output.h"

namespace passlib::onnx {
namespace {

using namespace numbers;  // NOLINT: this file only

constexpr std::size_t kLong = 4096;

/// Elements of a list that is cut.
constexpr std::size_t kKept = 64;

constexpr Bytes kLongStart = "{\"long\": \"";

const char* nameOf(Kind kind) {
  switch (kind) {
    case Kind::kString:
      return "string";
    case Kind::kInts:
      return "ints";
    case Kind::kFloats:
      return "floats";
    case Kind::kStrings:
      return "strings";
    default:
      return nullptr;
  }
}

/// A number for bytes that other bytes do not have by chance, in hexadecimal digits.
std::string hashOf(Bytes bytes) {
  uint64_t low = 0x9e3779b97f4a7c15U ^ bytes.size();
  uint64_t high = 0xc2b2ae3d27d4eb4fU;
  const auto mix = [&](uint64_t word) {
    low = (low ^ word) * 0xff51afd7ed558ccdU;
    low ^= low >> 32U;
    high = (high + word) * 0xc4ceb9fe1a85ec53U;
    high ^= high >> 29U;
  };
  while (!bytes.empty()) {
    uint64_t word = 0;
    const std::size_t size = std::min(bytes.size(), sizeof word);
    std::memcpy(&word, bytes.data(), size);
    mix(word);
    bytes.remove_prefix(size);
  }
  char digits[33];
  std::snprintf(digits, sizeof digits, "%016llx%016llx", static_cast<unsigned long long>(high),
                static_cast<unsigned long long>(low));
  return digits;
}

std::size_t countOf(const Attribute& attribute) {
  std::size_t count = 0;
  Field field;
  for (Fields fields(attribute.message); fields.next(&field);) {
    if (field.number == kInts && attribute.kind == Kind::kInts) {
      forEachVarint(field, [&](uint64_t) { ++count; });
    } else if (field.number == kFloats && attribute.kind == Kind::kFloats) {
      forEachFixed(field, kFixed32, [&](const char*) { ++count; });
    } else if (field.number == kStrings && attribute.kind == Kind::kStrings) {
      ++count;
    }
  }
  return attribute.kind == Kind::kString ? attribute.content.size() : count;
}

/// Returns as much of packed numbers as holds `most` of them, and their number.
Bytes firstOf(const Field& field, std::size_t most, std::size_t* count) {
  if (field.number == kFloats) {
    *count = std::min(most, field.body.size() / 4);
    return field.body.substr(0, *count * 4);
  }
  const char* cursor = field.body.data();
  const char* const end = cursor + field.body.size();
  for (*count = 0; cursor < end && *count < most; ++*count) readVarint(&cursor, end);
  return field.body.substr(0, static_cast<std::size_t>(cursor - field.body.data()));
}

/// Appends type and name of a tensor, with no elements.
void appendEmpty(Bytes tensor, std::string* out) {
  std::string made;
  appendNumber(kDims, 0, &made);
  appendFields(
      tensor,
      [](const Field& field) { return field.number == kDataType || field.number == kTensorName; },
      &made);
  appendBody(kT, made, out);
}

}  // namespace

bool isLong(const Attribute& attribute) {
  return attribute.message.size() >= kLong && attribute.reference.empty() &&
         nameOf(attribute.kind) != nullptr;
}

std::string summaryOf(const Attribute& attribute) {
  return std::string(kLongStart) + nameOf(attribute.kind) +
         "\", \"count\": " + std::to_string(countOf(attribute)) + ", \"hash\": \"" +
         hashOf(attribute.message) + "\"}";
}

bool isSummary(Bytes text) { return text.substr(0, kLongStart.size()) == kLongStart; }

bool cutAttribute(Bytes domain, Bytes attribute, std::string* out) {
  if (attribute.size() < kLong || domain.empty() || domain == "ai.onnx") return false;
  std::size_t left = kKept;
  std::string made;
  Field field;
  for (Fields fields(attribute); fields.next(&field);) {
    const bool is_number = field.number == kInts || field.number == kFloats;
    if (is_number && field.type == kBytes) {
      std::size_t count = 0;
      const Bytes first = firstOf(field, left, &count);
      left -= count;
      if (count > 0) appendBody(field.number, first, &made);
    } else if (is_number || field.number == kStrings) {
      if (left > 0) made.append(wholeField(field));
      left -= left > 0 ? 1 : 0;
    } else if (field.number == kT && field.type == kBytes && field.body.size() >= kLong) {
      appendEmpty(field.body, &made);
    } else {
      made.append(wholeField(field));
    }
  }
  out->append(made);
  return true;
}

bool cutNode(Bytes node, std::string* out) {
  if (node.size() < kLong) return false;
  Bytes domain;
  forEachBody(node, kDomain, [&](Bytes body) { domain = body; });
  std::string made;
  bool cut = false;
  Field field;
  for (Fields fields(node); fields.next(&field);) {
    std::string rest;
    if (field.number == kAttribute && field.type == kBytes &&
        cutAttribute(domain, field.body, &rest)) {
      appendBody(kAttribute, rest, &made);
      cut = true;
    } else {
      made.append(wholeField(field));
    }
  }
  if (cut) out->append(made);
  return cut;
}

}  // namespace passlib::onnx
