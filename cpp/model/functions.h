// The bodies of local functions of models of ONNX.
#ifndef PASSLIB_MODEL_FUNCTIONS_H_
#define PASSLIB_MODEL_FUNCTIONS_H_

#include <functional>
#include <optional>
#include <string>

#include "facts/file_facts.h"
#include "onnx/wire/fields.h"

namespace passlib::model {

/// Gets a body as a model of its own and the name of the function, and returns a model that
/// computes the same; nothing if the body stays.
using ChangeBody = std::function<std::optional<std::string>(std::string body, std::string name)>;

/// Which changed bodies are kept.
struct KeptBodies {
  bool cheaper = false;        ///< only those with fewer operators, or else fewer bytes
  bool passes_errors = false;  ///< std::runtime_error is passed on; else only PassError is
};

/// Changes the bodies of the local functions that are called with all inputs, and returns the
/// model; nothing if all stay. The inputs of a body have the types and dimensions that are the same
/// at all calls. A body stays if one of its nodes has both a nested graph and an attribute of the
/// call, or if an output is an input or is repeated. `known`: the facts of the model's graph.
/// Throws GraphError, which names the function, if a changed body has other inputs, outputs or
/// versions of operator sets.
std::optional<std::string> withFunctions(onnx::Bytes model, const facts::FileFacts& known,
                                         const ChangeBody& change, const KeptBodies& kept);

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_FUNCTIONS_H_
