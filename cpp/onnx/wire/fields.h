// Protocol buffers on the wire: the fields of one message.
// Encoding: https://protobuf.dev/programming-guides/encoding.
#ifndef PASSLIB_ONNX_WIRE_FIELDS_H_
#define PASSLIB_ONNX_WIRE_FIELDS_H_

#include <cstdint>
#include <stdexcept>
#include <string_view>

namespace passlib::onnx {

using Bytes = std::string_view;

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
uint64_t readVarint(const char** cursor, const char* end);

/// Iterates over the fields of a message. Groups, which ONNX does not use, are one field each.
class Fields {
 public:
  explicit Fields(Bytes message) : cursor_(message.data()), end_(message.data() + message.size()) {}

  /// Reads the next field; false at the end. Throws WireError.
  bool next(Field* field) {
    if (cursor_ == end_) return false;
    read(field);
    return true;
  }

 private:
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
