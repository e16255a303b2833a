// Strings of a file as text for passes, and for messages.
#ifndef PASSLIB_ONNX_TEXT_STRINGS_H_
#define PASSLIB_ONNX_TEXT_STRINGS_H_

#include <string>

#include "onnx/wire/fields.h"

namespace passlib::onnx {

/// Returns the text with bytes that are not UTF-8, and zeros, which end strings in C, as ``\xff``.
std::string decoded(Bytes text);

/// Appends a string in quotes as JSON: plain UTF-8, or with ``\u`` for all that is not ASCII.
void appendJsonString(const std::string& text, bool ascii, std::string* out);

/// Returns a name in quotes, as Python shows it.
std::string shown(Bytes text);

/// Returns lines of text with escapes for other characters that a terminal may act on: controls,
/// and marks of direction and of format.
std::string printable(Bytes text);

/// Returns the beginning of a text with more than `most` bytes and three points, or all of it.
std::string shortened(Bytes text, std::size_t most);

/// Whether a text is UTF-8 without zeros.
bool isName(Bytes text);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_TEXT_STRINGS_H_
