// Shapes of inputs as a caller states them.
#ifndef PASSLIB_MODEL_SHAPES_H_
#define PASSLIB_MODEL_SHAPES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/model.h"

namespace passlib::model {

/// Sizes of inputs by name; nothing for those that stay open.
using Shapes = std::vector<std::pair<std::string, std::vector<std::optional<uint64_t>>>>;

/// Reads texts such as `x:1,?,4`, where `?` is an open size and nothing after the colon is a
/// scalar; the last one of a name counts. Throws std::invalid_argument.
Shapes readShapes(const std::vector<std::string>& texts);

/// Returns a model of ONNX whose inputs state sizes where they left them open. Throws
/// std::invalid_argument for a shape that contradicts the stated one, GraphError for an unknown
/// input and an invalid size, UnsupportedError for other dialects.
Model withShapes(const Model& model, const Shapes& shapes);

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_SHAPES_H_
