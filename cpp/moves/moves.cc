#include "moves/moves.h"

namespace passlib::moves {

void Options::set(std::string_view name, int64_t value) {
  if (name == "empty_errors") empty_errors = value != 0;
  if (name == "reorder_sums") reorder_sums = value != 0;
  if (name == "conditions") conditions = value != 0;
  if (name == "nested") nested = value != 0;
  if (name == "max_growth") max_growth = value;
  if (name == "largest") largest = value;
  if (name == "reorder_weights") reorder_weights = value != 0;
  if (name == "keep_io") keep_io = value != 0;
  if (name == "clamp") clamp = value != 0;
  if (name == "symmetric") symmetric = value != 0;
  if (name == "bits") bits = value;
  if (name == "block") block = value;
  if (name == "least") least = value;
}

void Options::set(std::string_view name, const std::string& value) {
  if (name == "dtype") dtype = value;
  if (name == "target") target = value;
}

void Options::set(std::string_view name, const std::vector<std::string>& value) {
  if (name == "keep_ops") keep_ops = value;
  if (name == "keep_nodes") keep_nodes = value;
}

bool run(std::string_view name, Model* model, const Options& options) {
  if (name == "cancelTransposes") {
    cancelTransposes(model, options.empty_errors, options.reorder_sums);
  } else if (name == "constantsToWeights") {
    constantsToWeights(model, options.nested);
  } else if (name == "foldConstants") {
    foldConstants(model, options.max_growth);
  } else if (name == "foldShapes") {
    foldShapes(model, options.conditions);
  } else if (name == "fuseSpaceToDepth") {
    fuseSpaceToDepth(model, options.reorder_weights);
  } else if (name == "mergeConcats") {
    mergeConcats(model);
  } else if (name == "mergeFactors") {
    mergeFactors(model);
  } else if (name == "mergeReshapes") {
    mergeReshapes(model);
  } else if (name == "mergeSlices") {
    mergeSlices(model);
  } else if (name == "nameUniquely") {
    nameUniquely(model);
  } else if (name == "propagateCasts") {
    propagateCasts(model);
  } else if (name == "quantizeWeights") {
    quantizeWeights(model, options);
  } else if (name == "rebuildShapes") {
    rebuildShapes(model);
  } else if (name == "resolveIf") {
    resolveIf(model);
  } else if (name == "toHalf") {
    toHalf(model, options);
  } else if (name == "weightsToConstants") {
    weightsToConstants(model, options.largest);
  } else {
    return false;
  }
  return true;
}

}  // namespace passlib::moves
