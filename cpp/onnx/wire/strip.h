// Models on the wire as a whole: what they are recognised by, and the same without weights.
#ifndef PASSLIB_ONNX_WIRE_STRIP_H_
#define PASSLIB_ONNX_WIRE_STRIP_H_

#include <cstddef>
#include <string>
#include <vector>

#include "onnx/wire/fields.h"

namespace passlib::onnx {

/// Whether the outermost fields of some bytes are those of an ONNX model.
bool isModel(Bytes data);

/// Finds the only raw data of a tensor; false unless it is large.
bool findPayload(Bytes tensor, Field* raw);

/// The raw data of one initializer of the main graph: its number, and the place in the file.
struct StrippedPayload {
  std::size_t number;
  Bytes data;
};

struct Stripped {
  std::string message;  ///< without the payloads, and without the tags and lengths of these
  std::vector<StrippedPayload> payloads;
};

/// Appends a node without some of its parts; false if it stays as it is.
using CutNode = bool (*)(Bytes node, std::string* out);

/// Takes the larger raw data of the main graph's initializers out of a serialized model. With
/// `cut_node`, which may be null, nodes become what it appends. Throws WireError.
Stripped stripModel(Bytes data, CutNode cut_node);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_WIRE_STRIP_H_
