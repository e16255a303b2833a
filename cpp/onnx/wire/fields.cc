#include "onnx/wire/fields.h"

#include <vector>

namespace passlib::onnx {
namespace {

constexpr int kLongestVarint = 10;
constexpr std::size_t kDeepestGroup = 100;
constexpr uint64_t kEndGroup = 4;

const char* const kBeyond =
    "a protobuf field ends beyond its message; the file is truncated or damaged";
const char* const kNoGroup = "a protobuf group does not end where it should; the file is damaged";

}  // namespace

uint64_t readLongVarint(const char** cursor, const char* end) {
  const char* place = *cursor;
  uint64_t value = 0;
  for (int shift = 0; place < end && shift < 7 * kLongestVarint; shift += 7) {
    const auto byte = static_cast<unsigned char>(*place++);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) {
      *cursor = place;
      return value;
    }
  }
  throw WireError("this protobuf number has no end; the file is truncated or damaged", place);
}

void Fields::read(Field* field) {
  field->start = cursor_;
  const uint64_t tag = readVarint(&cursor_, end_);
  if (tag >> 32 != 0 || tag < 8) {
    throw WireError("this is no protobuf field: its number is out of range", field->start);
  }
  field->number = static_cast<uint32_t>(tag >> 3);
  const uint64_t type = tag & 7;
  std::size_t size = 0;
  switch (type) {
    case kVarint:
      field->value = readVarint(&cursor_, end_);
      break;
    case kBytes: {
      const uint64_t length = readVarint(&cursor_, end_);
      if (length > static_cast<uint64_t>(end_ - cursor_)) throw WireError(kBeyond, field->start);
      size = static_cast<std::size_t>(length);
      break;
    }
    case kFixed64:
    case kFixed32:
      size = type == kFixed64 ? 8 : 4;
      if (size > static_cast<std::size_t>(end_ - cursor_)) throw WireError(kBeyond, field->start);
      break;
    case kGroup:
      skipGroup(field->number, field->start);
      break;
    case kEndGroup:
      throw WireError(kNoGroup, field->start);
    default:
      throw WireError(type == 6 ? "protobuf has no wire type 6" : "protobuf has no wire type 7",
                      field->start);
  }
  field->type = static_cast<WireType>(type);
  field->body = Bytes(cursor_, size);
  cursor_ += size;
  field->end = cursor_;
}

void Fields::skipGroup(uint32_t number, const char* start) {
  std::vector<uint32_t> open(1, number);
  while (!open.empty()) {
    const char* place = cursor_;
    if (cursor_ == end_ || open.size() > kDeepestGroup) throw WireError(kNoGroup, start);
    const uint64_t tag = readVarint(&cursor_, end_);
    const uint64_t type = tag & 7;
    if (tag >> 32 != 0 || tag < 8) throw WireError(kNoGroup, place);
    const auto inner = static_cast<uint32_t>(tag >> 3);
    if (type == kGroup) {
      open.push_back(inner);
    } else if (type == kEndGroup) {
      if (open.back() != inner) throw WireError(kNoGroup, place);
      open.pop_back();
    } else {
      cursor_ = place;
      Field field;
      read(&field);
    }
  }
}

}  // namespace passlib::onnx
