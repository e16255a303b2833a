// The messages of onnx.proto: which fields of each are messages or packed numbers.
#ifndef PASSLIB_ONNX_WIRE_SCHEMA_H_
#define PASSLIB_ONNX_WIRE_SCHEMA_H_

#include <functional>
#include <vector>

#include "onnx/wire/fields.h"

namespace passlib::onnx {

/// Checks that bytes are a ModelProto: every field of every message in it, at any depth, ends
/// within its message. Throws WireError. Messages nested more than 100 deep are refused, as by
/// protobuf's parsers, so what is read afterwards is not deeper. Returns whether any tensor states
/// a place for its data in another file.
bool checkModel(Bytes model);

/// The way to a message: fields, each in the body of the one before; the last one is the message.
using Path = std::vector<Field>;

/// Calls `visit` for each tensor in a ModelProto that was checked, at any depth, in their order.
void forEachTensor(Bytes model, const std::function<void(const Path&)>& visit);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_WIRE_SCHEMA_H_
