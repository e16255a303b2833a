// The kinds of nodes that a pass made or changed, each as a model of one node that can be checked.
#ifndef PASSLIB_ONNX_ACCEPTANCE_KINDS_H_
#define PASSLIB_ONNX_ACCEPTANCE_KINDS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "onnx/acceptance/known_values.h"
#include "onnx/writing/model.h"

namespace passlib::onnx {

/// Returns a model for each kind of node of the main graph that is not as in the file, or takes
/// values that are not. Nodes are of one kind if they differ in names alone: operator, attributes,
/// types of inputs and outputs, and elements of small inputs that may determine a shape are the
/// same. So the whole is accepted if the file is, and each kind.
///
/// Returns nothing if that cannot be said of the model: it has functions, other operator sets, a
/// changed node with nested graphs, an input without a stated type, or more than `most` kinds.
std::optional<std::vector<std::string>> kindsOfChanges(const ModelWriter& model, std::size_t most);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_ACCEPTANCE_KINDS_H_
