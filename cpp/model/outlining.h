// outline: makes local functions of the repeated layers of models of ONNX.
#ifndef PASSLIB_MODEL_OUTLINING_H_
#define PASSLIB_MODEL_OUTLINING_H_

#include <cstddef>
#include <optional>
#include <string>

#include "onnx/wire/fields.h"

namespace passlib::model {

/// Returns a model whose repeated layers are calls of local functions; nothing if it has none.
/// Layers are equal up to their weights, which become inputs of the function. `least`: the smallest
/// number of operators of a layer. `domain`: of the functions, which are called Layer, Layer_1 and
/// so on.
std::optional<std::string> outline(onnx::Bytes model, std::size_t least, const std::string& domain);

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_OUTLINING_H_
