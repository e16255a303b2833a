// Parts of a model, changed as models of their own.
#ifndef PASSLIB_MODEL_PARTS_H_
#define PASSLIB_MODEL_PARTS_H_

#include <cstddef>
#include <functional>
#include <optional>

#include "model/functions.h"
#include "model/model.h"

namespace passlib::model {

/// Gets a model whose graph is a part of another one, and returns one that computes the same.
/// Nothing if the part stays; it also stays after an error, but for those of the system.
using ChangePart = std::function<std::optional<Model>(const Model&)>;

/// Whether a node of the main graph of a model of ONNX has nested graphs.
bool hasNested(const Model& model);

/// Changes the nested graphs of the nodes of a model's main graph, with the values that they
/// capture as inputs and weights. Returns nothing if all stay. Throws as `save`.
std::optional<Model> withNested(const Model& model, const ChangePart& change);

/// The same with the bodies of local functions, see `withFunctions`. Throws PassError, which names
/// the function, for errors of `change` that are passed on.
std::optional<Model> withBodies(const Model& model, const ChangePart& change,
                                const KeptBodies& kept);

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_PARTS_H_
