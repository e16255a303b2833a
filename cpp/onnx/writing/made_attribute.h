// Attributes of numbers and text from what a pass wrote.
#ifndef PASSLIB_ONNX_WRITING_MADE_ATTRIBUTE_H_
#define PASSLIB_ONNX_WRITING_MADE_ATTRIBUTE_H_

#include <optional>
#include <string>

#include "onnx/parts/attribute.h"

namespace passlib::onnx {

/// Returns the type of an attribute of ONNX's own operators by its name; unknown if it depends on
/// the operator, or if its text is none of numbers or plain text.
Kind typeByName(Bytes name);

/// Makes an AttributeProto, as protocol buffers write it, from the text of a value; none for types
/// other than numbers, lists of numbers and text, and for texts that need a closer look.
std::optional<std::string> makeAttribute(Bytes name, Bytes text, Kind kind);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_WRITING_MADE_ATTRIBUTE_H_
