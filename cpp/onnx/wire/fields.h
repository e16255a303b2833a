// Protocol buffers on the wire: the fields of one message.
// Encoding: https://protobuf.dev/programming-guides/encoding.
#ifndef PASSLIB_ONNX_WIRE_FIELDS_H_
#define PASSLIB_ONNX_WIRE_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>

namespace passlib::onnx {

using Bytes = std::string_view;

/// Whether two texts are equal; those at one place are not read.
inline bool sameText(Bytes left, Bytes right) {
  return left.size() == right.size() && (left.data() == right.data() || left == right);
}

/// Bytes are no message; `at` is the place in memory.
struct WireError : std::runtime_error {
  WireError(const char* message, const char* place) : std::runtime_error(message), at(place) {}
  const char* at;
};

enum WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kGroup = 3, kFixed32 = 5 };

struct Field {
  uint32_t number = 0;
  WireType type = kVarint;
  uint64_t value = 0;           ///< of a varint
  Bytes body;                   ///< of bytes; the four or eight bytes of a fixed number
  const char* start = nullptr;  ///< of the tag
  const char* end = nullptr;
};

/// Reads a varint of at most ten bytes and moves the cursor behind it.
uint64_t readLongVarint(const char** cursor, const char* end);

/// The same; most are of one byte.
inline uint64_t readVarint(const char** cursor, const char* end) {
  if (*cursor == end || static_cast<unsigned char>(**cursor) >= 0x80) {
    return readLongVarint(cursor, end);
  }
  return static_cast<unsigned char>(*(*cursor)++);
}

/// Iterates over the fields of a message. Groups, which ONNX does not use, are one field each.
class Fields {
 public:
  explicit Fields(Bytes message) : cursor_(message.data()), end_(message.data() + message.size()) {}

  /// Reads the next field; false at the end. Throws WireError.
  bool next(Field* field) {
    if (cursor_ == end_) return false;
    if (!readShort(field)) read(field);
    return true;
  }

 private:
  /// Reads a field whose tag and length, or tag and number, are of one byte each, as most are;
  /// false if it is another one.
  bool readShort(Field* field) {
    if (end_ - cursor_ < 2) return false;
    const auto tag = static_cast<unsigned char>(cursor_[0]);
    const auto next = static_cast<unsigned char>(cursor_[1]);
    const unsigned type = tag & 7U;
    if (tag >= 0x80 || tag < 8 || next >= 0x80) return false;
    std::size_t size = 0;
    if (type == kBytes) {
      size = next;
      if (size > static_cast<std::size_t>(end_ - cursor_) - 2) return false;
    } else if (type == kVarint) {
      field->value = next;
    } else {
      return false;
    }
    field->number = tag >> 3U;
    field->type = static_cast<WireType>(type);
    field->start = cursor_;
    field->body = Bytes(cursor_ + 2, size);
    cursor_ += 2 + size;
    field->end = cursor_;
    return true;
  }
  void read(Field* field);
  void skipGroup(uint32_t number, const char* start);

  const char* cursor_;
  const char* end_;
};

/// Calls `visit` for each number of a repeated field, packed or not.
template <typename Visit>
void forEachVarint(const Field& field, Visit visit) {
  if (field.type == kVarint) {
    visit(field.value);
  } else if (field.type == kBytes) {
    const char* cursor = field.body.data();
    const char* const end = cursor + field.body.size();
    while (cursor < end) visit(readVarint(&cursor, end));
  }
}

/// The same for numbers of a fixed size; `visit` gets the address of each.
template <typename Visit>
void forEachFixed(const Field& field, WireType single, Visit visit) {
  const std::size_t size = single == kFixed32 ? 4 : 8;
  if (field.type != single && field.type != kBytes) return;
  for (std::size_t pos = 0; pos + size <= field.body.size(); pos += size) {
    visit(field.body.data() + pos);
  }
}

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_WIRE_FIELDS_H_
