#include "onnx/wire/output.h"

#include <algorithm>

namespace passlib::onnx {

void appendVarint(uint64_t value, std::string* out) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>((value & 0x7f) | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

void appendNumber(uint32_t number, uint64_t value, std::string* out) {
  appendVarint(uint64_t{number} << 3 | kVarint, out);
  appendVarint(value, out);
}

void appendHead(uint32_t number, std::size_t size, std::string* out) {
  appendVarint(uint64_t{number} << 3 | kBytes, out);
  appendVarint(size, out);
}

void Pieces::copyTo(char* target) const {
  for (const Piece& piece : pieces_) {
    if (piece.computed != nullptr) {
      piece.computed->compute(0, piece.computed->size(), target);
      target += piece.computed->size();
    } else {
      const Bytes bytes = piece.span.empty() ? Bytes(piece.text) : piece.span;
      target = std::copy(bytes.begin(), bytes.end(), target);
    }
  }
}

}  // namespace passlib::onnx
