// Serialized models whose data moves between the model and files next to it.
#ifndef PASSLIB_ONNX_EXTERNAL_RELOCATION_H_
#define PASSLIB_ONNX_EXTERNAL_RELOCATION_H_

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "onnx/external/places.h"
#include "onnx/wire/schema.h"
#include "onnx/wire/splices.h"

namespace passlib::onnx {

/// New places and data for the tensors of a model, which are told by the start of their fields.
struct Relocation {
  std::map<const char*, DataPlace> places;   ///< of tensors, which lose the elements that they have
  std::map<const char*, Payload> payloads;   ///< raw data for tensors that have no elements
  std::map<std::string, std::string> files;  ///< new locations of data by plain old ones
};

/// Whether a tensor is an initializer of the main graph, or of one nested in it.
bool isInitializer(const Path& tensor);

/// Calls `visit` for each tensor of a model, with its number if it is an initializer of the main
/// graph.
void forEachNumberedTensor(
    Bytes model, const std::function<void(const Path&, std::optional<std::size_t>)>& visit);

/// Returns a model that was checked with its tensors relocated. The result refers to the memory of
/// the model and of payloads. Throws FormatError if a tensor names no file.
Pieces relocate(Bytes model, const Relocation& relocation);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_EXTERNAL_RELOCATION_H_
