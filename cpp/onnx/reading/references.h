// Values that a file names outside of inference, and that must stay unchanged.
#ifndef PASSLIB_ONNX_READING_REFERENCES_H_
#define PASSLIB_ONNX_READING_REFERENCES_H_

#include <vector>

#include "graph/name_map.h"
#include "onnx/wire/fields.h"

namespace passlib::onnx {

/// Names of values that training information, quantization annotations and metadata refer to.
struct References {
  NameMap<bool> all;
  std::vector<Bytes> training;    ///< those that training information refers to
  std::vector<Bytes> parameters;  ///< scales and zero points of quantization annotations

  bool has(Bytes name) const { return all.find(name) != nullptr; }
};

/// Adds what the outermost message of a file refers to, nested graphs excluded.
void addReferencesOfModel(Bytes model, References* references);

/// Adds what a graph refers to, those nested in it excluded.
void addReferencesOfGraph(Bytes graph, References* references);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_READING_REFERENCES_H_
