// Annotations of values: those of the file that still hold after a pass.
#ifndef PASSLIB_ONNX_TYPES_ANNOTATIONS_H_
#define PASSLIB_ONNX_TYPES_ANNOTATIONS_H_

#include <vector>

#include "onnx/types/settled.h"

namespace passlib::onnx {

/// A ValueInfoProto, by the name of its value.
struct Description {
  Bytes name;
  Bytes message;
  bool doubtful = false;  ///< the type may have changed
  Value place{};          ///< of a doubtful value in the graph
};

/// The annotations of a graph.
struct Annotations {
  std::vector<Description> values;
  std::vector<Bytes> quantization;
};

/// Returns the annotations that still hold, under the present names of their values. A value is
/// that of the file if its node has the operator and the attributes that it has there, as `same`
/// tells by position.
Annotations keepAnnotations(const Draft& draft, const Names& names, const std::vector<bool>& same,
                            const Changes& changes, const Settled& settled, Arena* arena);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_TYPES_ANNOTATIONS_H_
