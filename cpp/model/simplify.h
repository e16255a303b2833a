// The pipelines simplify and clean: a loop over what passes declare.
#ifndef PASSLIB_MODEL_SIMPLIFY_H_
#define PASSLIB_MODEL_SIMPLIFY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "library/declarations.h"
#include "library/pass.h"
#include "library/steps.h"
#include "model/model.h"

namespace passlib::model {

/// The passes of a pipeline, and its limits.
struct Simplification {
  std::vector<const Declaration*> passes;  ///< in their order
  bool exact = false;                      ///< whether every bit of the results stays
  std::string cost = "nodes";              ///< lowered first, or "bytes", "flops", "traffic"
  int64_t max_rounds = 16;
  std::optional<std::size_t> max_growth;  ///< bytes; nothing for 1 %, at most 1 MB
  std::string target = "onnx";            ///< the runtime whose own operators are made
};

/// Returns those declarations that join a pipeline, each after the pass that it names, or at the
/// end of a round. Standard passes that native hosts lack have a place in the order. `is_standard`
/// has an item for each declaration.
std::vector<const Declaration*> joinedPasses(const std::string& pipeline,
                                             const std::vector<const Declaration*>& all,
                                             const std::vector<bool>& is_standard);

/// Runs a pass; returns nothing if the model stays the same.
using RunPass =
    std::function<std::optional<Model>(const Model&, const Declaration&, const OptionList&)>;

/// Runs `body` as a step on a model, and returns what it returns.
using RunStep = std::function<std::optional<Model>(const Step&, const Model&,
                                                   const std::function<std::optional<Model>()>&)>;

/// Runs passes until the number of operators, then the size of the weights, stops falling, or these
/// in the other order. The result of a pass is kept only if it lowers this cost. Then nested graphs
/// and the bodies of local functions follow as models of their own, and all again while the cost
/// falls. `watch` runs each pass on the main graph, and what simplifies the nested graphs and the
/// functions.
Model simplifiedThroughout(const Model& model, const Simplification& given, const RunPass& run,
                           const RunStep& watch);

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_SIMPLIFY_H_
