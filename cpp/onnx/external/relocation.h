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

/// New places and data for the tensors of a model.
struct Relocation {
  std::map<std::size_t, DataPlace> places;   ///< of initializers of the main graph, by number
  std::map<std::size_t, Payload> payloads;   ///< raw data that initializers get, by number
  std::map<std::string, std::string> files;  ///< new locations of data by plain old ones
};

/// Calls `visit` for each tensor of a model, with its number if it is an initializer of the main
/// graph.
void forEachNumberedTensor(
    Bytes model, const std::function<void(const Path&, std::optional<std::size_t>)>& visit);

/// Returns a model that was checked with its tensors relocated. The result refers to the memory of
/// the model and of payloads. Throws FormatError if a tensor names no file.
Pieces relocate(Bytes model, const Relocation& relocation);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_EXTERNAL_RELOCATION_H_
