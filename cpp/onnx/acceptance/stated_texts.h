// The types that a model states for its values, as attributes of nodes.
#ifndef PASSLIB_ONNX_ACCEPTANCE_STATED_TEXTS_H_
#define PASSLIB_ONNX_ACCEPTANCE_STATED_TEXTS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "onnx/acceptance/known_values.h"

namespace passlib::onnx {

/// The texts of __ext_shape__ and __ext_dtype__.
struct TypeTexts {
  std::string shapes;
  std::string types;
};

/// Returns the types of the outputs of each node of the main graph. `codes`: MXNet's numbers of
/// element types by ONNX's; others are unknown. Returns nothing if inference might find more: a
/// value without a stated type, or with a size that is no number.
std::optional<std::vector<TypeTexts>> statedTexts(const ModelWriter& model,
                                                  const KnownValues& known, const Graph& graph,
                                                  const std::map<int32_t, int>& codes);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_ACCEPTANCE_STATED_TEXTS_H_
