// Types in attributes as JSON.
#ifndef PASSLIB_ONNX_TEXT_TYPE_TEXT_H_
#define PASSLIB_ONNX_TEXT_TYPE_TEXT_H_

#include <string>

#include "onnx/wire/arena.h"

namespace passlib::onnx {

/// Appends a TypeProto in protobuf's JSON form.
void appendTypeText(Bytes type, Arena* arena, std::string* out);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_TEXT_TYPE_TEXT_H_
