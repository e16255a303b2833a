// Attributes and types of nodes that passes made, from their texts.
#ifndef PASSLIB_MODEL_ATTRIBUTES_H_
#define PASSLIB_MODEL_ATTRIBUTES_H_

#include <cstdint>
#include <optional>

#include "facts/facts.h"
#include "onnx/writing/host.h"

namespace passlib::model {

/// A text without the white space around it.
onnx::Bytes trimmed(onnx::Bytes text);

/// Returns the type that an attribute has in all operators of ONNX, 0 where its text tells it.
int schemaKindOf(const Node& node, onnx::Bytes key, const facts::Opsets& opsets);

/// Makes an attribute of a type, 0 for the one that the text looks like. Nested graphs are only
/// taken from the file. Throws UnsupportedError.
onnx::MadeAttribute makeAttribute(const Node& node, onnx::Bytes key, onnx::Bytes text, int kind);

/// Returns the type that a variable without values states in `__dtype__` and `__shape__`. `code`:
/// the element type where it states none. Throws UnsupportedError.
onnx::StatedType statedType(const Node& variable, std::optional<int32_t> code);

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_ATTRIBUTES_H_
