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

/// Makes an attribute of a type, 0 for that of the operator's schema, and without one for the type
/// that the text looks like. Nested graphs and types are only taken from the file. Throws
/// UnsupportedError.
onnx::MadeAttribute makeAttribute(const Node& node, onnx::Bytes key, onnx::Bytes text, int kind,
                                  const facts::Opsets& opsets);

/// Returns the type that a variable without values states in `__dtype__` and `__shape__`. `code`:
/// the element type where it states none. Throws UnsupportedError.
onnx::StatedType statedType(const Node& variable, std::optional<int32_t> code);
/// The same from the two texts, null views for those that it does not have.
onnx::StatedType statedType(onnx::Bytes variable, onnx::Bytes type, onnx::Bytes shape,
                            std::optional<int32_t> code);

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_ATTRIBUTES_H_
