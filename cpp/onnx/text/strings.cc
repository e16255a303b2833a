#include "onnx/text/strings.h"

#include <cstdint>
#include <cstring>

#include "header.h"

namespace passlib::onnx {
namespace {

using mxnet::ext::host::utf8Length;

const char kDigits[] = "0123456789abcdef";

void appendByte(unsigned char byte, std::string* out) {
  out->append("\\x");
  out->push_back(kDigits[byte >> 4]);
  out->push_back(kDigits[byte & 15]);
}

void appendUnit(uint32_t unit, std::string* out) {
  out->append("\\u");
  for (int shift = 12; shift >= 0; shift -= 4) out->push_back(kDigits[unit >> shift & 15]);
}

/// Decodes one character of more than one byte.
uint32_t codePoint(const char* text, std::size_t length) {
  uint32_t code = static_cast<unsigned char>(*text) & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3f);
  }
  return code;
}

void appendEscaped(uint32_t code, std::string* out) {
  if (code >= 0x10000) {
    appendUnit(0xd800 + ((code - 0x10000) >> 10), out);
    appendUnit(0xdc00 + ((code - 0x10000) & 0x3ff), out);
  } else {
    appendUnit(code, out);
  }
}

/// Calls `plain(from, length)` for each character in UTF-8, and `damaged(byte)` for other bytes.
template <typename Plain, typename Damaged>
void forEachCharacter(Bytes text, Plain plain, Damaged damaged) {
  const char* cursor = text.data();
  const char* const end = cursor + text.size();
  while (cursor < end) {
    const auto byte = static_cast<unsigned char>(*cursor);
    const std::size_t length = byte < 0x80 ? 1 : utf8Length(cursor, end);
    if (length == 0) {
      damaged(byte);
    } else {
      plain(cursor, length);
    }
    cursor += length == 0 ? 1 : length;
  }
}

}  // namespace

std::string decoded(Bytes text) {
  std::string out;
  out.reserve(text.size());
  forEachCharacter(
      text,
      [&](const char* from, std::size_t length) {
        if (*from == '\0') return appendByte(0, &out);
        out.append(from, length);
      },
      [&](unsigned char byte) { appendByte(byte, &out); });
  return out;
}

void appendJsonString(const std::string& text, bool ascii, std::string* out) {
  static const std::string from = "\"\\\n\r\t\b\f";
  static const std::string target = "\"\\nrtbf";
  out->push_back('"');
  forEachCharacter(
      text,
      [&](const char* place, std::size_t length) {
        const auto byte = static_cast<unsigned char>(*place);
        if (length > 1 && ascii) return appendEscaped(codePoint(place, length), out);
        const std::size_t simple = from.find(*place);
        if (length == 1 && simple != std::string::npos) {
          out->push_back('\\');
          out->push_back(target[simple]);
        } else if (byte < 0x20 || (ascii && byte == 0x7f)) {
          appendUnit(byte, out);
        } else {
          out->append(place, length);
        }
      },
      [&](unsigned char byte) { appendByte(byte, out); });
  out->push_back('"');
}

std::string shortened(Bytes text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // a character
  return std::string(text.substr(0, end)) + "...";
}

std::string printable(Bytes text) {
  std::string out;
  forEachCharacter(
      text,
      [&](const char* from, std::size_t length) {
        const auto byte = static_cast<unsigned char>(*from);
        const uint32_t code = length == 1 ? byte : codePoint(from, length);
        if (code != '\n' && (code < 0x20 || (code >= 0x7F && code <= 0xA0) || code == 0xAD)) {
          appendByte(static_cast<unsigned char>(code), &out);
        } else if (code == 0x61C || code == 0xFEFF || (code >= 0x200B && code <= 0x200F) ||
                   (code >= 0x2028 && code <= 0x202E) || (code >= 0x2060 && code <= 0x206F)) {
          appendUnit(code, &out);
        } else {
          out.append(from, length);
        }
      },
      [&](unsigned char byte) { appendByte(byte, &out); });
  return out;
}

std::string shown(Bytes text) {
  std::string out;
  bool damaged = false;
  const char quote = text.find('\'') != Bytes::npos && text.find('"') == Bytes::npos ? '"' : '\'';
  forEachCharacter(
      text,
      [&](const char* from, std::size_t length) {
        static const std::string special = "\n\r\t";
        const std::size_t simple = special.find(*from);
        if (*from == '\\' || *from == quote) {
          out.push_back('\\');
          out.push_back(*from);
        } else if (simple != std::string::npos) {
          out.push_back('\\');
          out.push_back("nrt"[simple]);
        } else if (static_cast<unsigned char>(*from) < 0x20 || *from == 0x7f) {
          appendByte(static_cast<unsigned char>(*from), &out);
        } else {
          out.append(from, length);
        }
      },
      [&](unsigned char byte) {
        damaged = true;
        appendByte(byte, &out);
      });
  return (damaged ? "b" : "") + (quote + out + quote);
}

bool isName(Bytes text) {
  const char* cursor = text.data();
  const char* const end = cursor + text.size();
  // Eight characters at a time, as long as all are ASCII and none is zero.
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kHigh = 0x8080808080808080;
  for (uint64_t bytes = 0; end - cursor >= 8; cursor += 8) {
    std::memcpy(&bytes, cursor, sizeof bytes);
    if (((bytes | (bytes - kOnes)) & kHigh) != 0) break;
  }
  while (cursor < end) {
    const auto byte = static_cast<unsigned char>(*cursor);
    const std::size_t length = byte == 0 ? 0 : byte < 0x80 ? 1 : utf8Length(cursor, end);
    if (length == 0) return false;
    cursor += length;
  }
  return true;
}

}  // namespace passlib::onnx
