// Writing of MXNet's models.
#ifndef PASSLIB_MODEL_SYMBOL_WRITING_H_
#define PASSLIB_MODEL_SYMBOL_WRITING_H_

#include <string>
#include <vector>

#include "model/model.h"

namespace passlib::model {

/// Writes the graph and the weights beside it, both or neither, and returns the paths. Throws
/// std::system_error, FormatError, UnsupportedError.
std::vector<std::string> saveSymbol(const Model& model, const std::string& path);

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_SYMBOL_WRITING_H_
