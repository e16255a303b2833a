// inlineFunctions: replaces calls of local functions of models of ONNX by the functions' bodies.
#ifndef PASSLIB_MODEL_INLINING_H_
#define PASSLIB_MODEL_INLINING_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "onnx/wire/fields.h"

namespace passlib::model {

/// Returns the version of an operator set that brought the form that an operator has in a version;
/// 0 if it is not known.
using SinceVersion =
    std::function<int64_t(const std::string& op, const std::string& domain, int64_t version)>;

/// Returns a model with the bodies of local functions in place of their calls; nothing if none is
/// called or unused. Functions that nothing calls any more are removed. Values and nodes of a body
/// get the name of the call as a prefix. `names`: functions as `name` or `domain.name`, with all
/// overloads; empty for all. Throws std::invalid_argument if there is no function of a name,
/// FormatError if a function calls itself, UnsupportedError if an operator of a function differs
/// between the operator sets of the function and the model.
std::optional<std::string> inlineFunctions(onnx::Bytes model, const std::vector<std::string>& names,
                                           const SinceVersion& since);

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_INLINING_H_
