// Models written as ONNX files.
#ifndef PASSLIB_MODEL_WRITING_H_
#define PASSLIB_MODEL_WRITING_H_

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "model/model.h"

namespace passlib::model {

/// Writes a model as a whole or not at all; what no pass changed is as in its file. Returns the
/// paths of the files, that of the graph first. Throws GraphError or UnsupportedError if it has no
/// form in ONNX, FormatError if the file that it came from was changed, std::system_error.
std::vector<std::string> save(const Model& model, const std::string& path);

/// Memory of malloc.
using Allocated = std::unique_ptr<char, decltype(&std::free)>;

/// The same into memory of `size` bytes.
Allocated serialize(const Model& model, std::size_t* size);

/// The same, but data in other files stays there, and the result refers to them.
std::string contentOf(const Model& model);

/// Whether writing the model would change a value to which training information or a parameter of
/// an annotation refers.
bool altersReferences(const Model& model);

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_WRITING_H_
