// The bodies of local functions, changed as models of their own.
#ifndef PASSLIB_MODEL_FUNCTIONS_H_
#define PASSLIB_MODEL_FUNCTIONS_H_

#include <optional>

#include "model/nested.h"

namespace passlib::model {

/// Which new bodies are kept.
struct KeptBodies {
  bool cheaper = false;        ///< only those with fewer operators, or else fewer bytes
  bool passes_errors = false;  ///< errors are passed on; else the body stays
};

/// Changes the bodies of the local functions that are called. The inputs of their models have the
/// types and dimensions that are the same at all calls. Returns nothing if all stay.
std::optional<Model> withFunctions(const Model& model, const ChangePart& change,
                                   const KeptBodies& kept);

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_FUNCTIONS_H_
