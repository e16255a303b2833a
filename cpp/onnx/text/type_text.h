// Types in attributes as JSON.
#ifndef PASSLIB_ONNX_TEXT_TYPE_TEXT_H_
#define PASSLIB_ONNX_TEXT_TYPE_TEXT_H_

#include <string>

#include "header.h"
#include "onnx/wire/arena.h"

namespace passlib::onnx {

/// Appends a TypeProto in protobuf's JSON form.
void appendTypeText(Bytes type, Arena* arena, std::string* out);

/// Appends the TypeProto that such a text describes; false if it describes none.
bool readType(const mxnet::ext::JsonVal& value, std::string* message);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_TEXT_TYPE_TEXT_H_
