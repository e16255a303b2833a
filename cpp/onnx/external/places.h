// Tensors whose data is in other files: what they state of its place.
#ifndef PASSLIB_ONNX_EXTERNAL_PLACES_H_
#define PASSLIB_ONNX_EXTERNAL_PLACES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onnx/wire/fields.h"

namespace passlib::onnx {

/// Where the data of a tensor is.
struct DataPlace {
  std::string location;            ///< path of the file, relative to the model's folder
  uint64_t offset = 0;             ///< in bytes, as `length`
  std::optional<uint64_t> length;  ///< nothing: to the end of the file
};

/// The entries of a tensor about its data, as pairs of key and value.
std::vector<std::pair<Bytes, Bytes>> placeEntries(Bytes tensor);

/// Returns the place that a tensor states. Throws FormatError, whose message begins with `what`, if
/// it names no file, or offset or length is no number.
DataPlace placeOf(Bytes tensor, const std::string& what);

/// Returns a tensor without elements and with another place. Other entries about its data stay, but
/// for a checksum.
std::string withPlace(Bytes tensor, const DataPlace& place);

/// Returns a tensor that states no place and has no elements.
std::string withoutPlace(Bytes tensor);

/// Returns the tensor of a model in another file: its location is replaced where it is another
/// path.
std::string withLocation(Bytes tensor, const std::string& location);

/// Returns a relative path without empty parts and those that are ".".
std::string plainPath(const std::string& path);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_EXTERNAL_PLACES_H_
