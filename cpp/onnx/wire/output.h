// Protocol buffers on the wire: writing messages.
#ifndef PASSLIB_ONNX_WIRE_OUTPUT_H_
#define PASSLIB_ONNX_WIRE_OUTPUT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "onnx/wire/computed.h"
#include "onnx/wire/fields.h"

namespace passlib::onnx {

void appendVarint(uint64_t value, std::string* out);

/// Appends a field that is a number.
void appendNumber(uint32_t number, uint64_t value, std::string* out);

/// Appends tag and length of a field of `size` bytes.
void appendHead(uint32_t number, std::size_t size, std::string* out);

/// Appends a field of bytes.
inline void appendBody(uint32_t number, Bytes body, std::string* out) {
  appendHead(number, body.size(), out);
  out->append(body);
}

/// Appends the fields of a message that `keep` accepts.
template <typename Keep>
void appendFields(Bytes message, Keep keep, std::string* out) {
  Field field;
  for (Fields fields(message); fields.next(&field);) {
    if (keep(field)) out->append(field.start, field.end);
  }
}

inline Bytes wholeField(const Field& field) {
  return Bytes(field.start, static_cast<std::size_t>(field.end - field.start));
}

/// A long message in pieces: large spans of memory elsewhere, and bytes of its own between them.
class Pieces {
 public:
  /// Appends bytes; large ones are referred to.
  void append(Bytes bytes) {
    if (bytes.size() < kLarge) {
      text()->append(bytes);
    } else {
      pieces_.emplace_back();
      pieces_.back().span = bytes;
      pieces_.emplace_back();
    }
  }
  /// Refers to bytes that are computed when they are written.
  void append(const Computed* computed) {
    pieces_.emplace_back();
    pieces_.back().computed = computed;
    pieces_.emplace_back();
  }
  void append(const Pieces& other) {
    pieces_.insert(pieces_.end(), other.pieces_.begin(), other.pieces_.end());
  }
  void append(Pieces&& other) {
    for (Piece& piece : other.pieces_) pieces_.push_back(std::move(piece));
  }
  /// Returns the text that grows at the end.
  std::string* text() {
    if (pieces_.empty() || !pieces_.back().isOpen()) {
      pieces_.emplace_back();
      pieces_.back().text.reserve(kLarge + kLarge / 8);
    }
    return &pieces_.back().text;
  }
  std::size_t size() const {
    std::size_t sum = 0;
    forEach([&](const auto& bytes) { sum += bytes.size(); });
    return sum;
  }
  /// Copies all bytes to memory of that size.
  void copyTo(char* target) const;
  std::string copy() const {
    std::string made(size(), '\0');
    copyTo(made.data());
    return made;
  }
  /// Visits Bytes, and Computed.
  template <typename Visit>
  void forEach(Visit visit) const {
    for (const Piece& piece : pieces_) {
      const Bytes bytes = piece.span.empty() ? Bytes(piece.text) : piece.span;
      if (piece.computed != nullptr) {
        visit(*piece.computed);
      } else if (!bytes.empty()) {
        visit(bytes);
      }
    }
  }

 private:
  static constexpr std::size_t kLarge = std::size_t{1} << 16;
  struct Piece {
    std::string text;
    Bytes span;                          ///< in place of the text, unless empty
    const Computed* computed = nullptr;  ///< in place of both, unless null
    bool isOpen() const { return text.size() < kLarge && span.empty() && computed == nullptr; }
  };
  std::vector<Piece> pieces_;
};

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_WIRE_OUTPUT_H_
