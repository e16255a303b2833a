// What the files of the module passlib._core share.
#ifndef PASSLIB_BINDINGS_H_
#define PASSLIB_BINDINGS_H_

#include <pybind11/pybind11.h>

#include <functional>
#include <map>
#include <string>

#include "lib_api.h"
#include "tensors.h"

namespace passlib {

/// Top-level attributes of a graph: JSON text by key.
using AttributeTexts = std::map<std::string, std::string>;

std::map<std::string, mxnet::ext::JsonVal> parseAttributes(const AttributeTexts& texts);

/// Arrays come as (name, array, dtype code); they must be C-contiguous.
ParamBlock makeBlock(const pybind11::list& params);

/// Runs `body` without the GIL. What it prints goes to `write`, a function of a str, whose
/// exception is thrown in the end.
void withOutput(const pybind11::function& write, const std::function<void()>& body);

void bindPartition(pybind11::module_* module);

}  // namespace passlib

#endif  // PASSLIB_BINDINGS_H_
