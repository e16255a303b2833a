// Passes and partitioners of libraries, run on models.
#ifndef PASSLIB_MODEL_PASSES_H_
#define PASSLIB_MODEL_PASSES_H_

#include <memory>
#include <string>
#include <vector>

#include "library/library.h"
#include "library/pass.h"
#include "library/weights/copies.h"
#include "model/model.h"

namespace passlib::model {

/// A pass or a partitioner of a library and what it wants.
struct LibraryPass {
  std::shared_ptr<Library> library;
  std::size_t index = 0;  ///< among the passes, or the partitioners
  bool is_partitioner = false;
  bool is_declared = false;  ///< else it sees types of models with weights only
  Lending lending = Lending::kWhole;
  bool needs_shapes = true;
};

/// Runs a pass and returns the resulting model; the given one stays as it is. `options`: as the
/// library gets them. What it prints to std::cout is appended to `printed`. Throws PassError,
/// PassResultError, FormatError, GraphError, LoadError.
Model runPass(const Model& before, const LibraryPass& pass, const OptionList& options,
              std::string* printed);

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_PASSES_H_
