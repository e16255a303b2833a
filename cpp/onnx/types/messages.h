// Messages made while a model is written.
#ifndef PASSLIB_ONNX_TYPES_MESSAGES_H_
#define PASSLIB_ONNX_TYPES_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onnx/original/originals.h"
#include "onnx/wire/computed.h"

namespace passlib::onnx {

/// A tensor type as a caller states it.
struct StatedType {
  std::optional<int32_t> code;               ///< as in TensorProto.DataType
  std::optional<std::vector<int64_t>> dims;  ///< -1 for unknown ones
};

/// The elements of a parameter.
struct GivenArray {
  Bytes data;                          ///< in C order, little endian; valid while the writer lives
  const Computed* computed = nullptr;  ///< in place of `data`
  int32_t type = 0;
  std::vector<int64_t> dims;

  std::size_t size() const { return computed != nullptr ? computed->size() : data.size(); }
};

/// Appends a field of the elements of an array.
void appendElements(uint32_t number, const GivenArray& array, std::string* out);

/// Describes a value as a ValueInfoProto.
std::string valueInfo(Bytes name, const StatedType& type);

/// Returns a message with another value of a field that is a name: the message itself if it has
/// that value already, else one in `arena`.
Bytes withName(Bytes message, uint32_t field, Bytes name, Arena* arena);

/// Returns a message with another value of a field that is bytes.
std::string withBody(Bytes message, uint32_t field, Bytes body);

/// Appends dimensions, type and name of a tensor without its elements; other fields are those of
/// `old`, the place in another file only if `external`.
void appendTensorHead(const GivenArray& array, Bytes name, Bytes old, bool external,
                      std::string* out);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_TYPES_MESSAGES_H_
