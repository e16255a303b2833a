// The types of a node that runs a subgraph, as its model states them.
#ifndef PASSLIB_ORT_STATED_TYPES_H_
#define PASSLIB_ORT_STATED_TYPES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "library/operators/arrays.h"
#include "ort/size_text.h"

namespace passlib {

/// A subgraph has no functions that infer types, so the exporter writes them into the node: the
/// sizes of the outputs in terms of those of the inputs.
class StatedTypes {
 public:
  /// `text`: a JSON object, see docs/onnxruntime.md. Throws OrtError.
  explicit StatedTypes(const std::string& text);

  int inputCount() const { return static_cast<int>(inputs_.size()); }
  int outputCount() const { return static_cast<int>(outputs_.size()); }
  /// Positions of the inputs that the subgraph writes to, ascending.
  const std::vector<int>& written() const { return written_; }

  /// Computes the outputs, without memory, from complete types of the inputs by MXNet's codes.
  /// Throws OrtError if these are other ones than the model states, or a size is not one.
  std::vector<OutputArray> outputs(const std::vector<std::vector<int64_t>>& shapes,
                                   const std::vector<int>& types) const;

 private:
  struct Array {
    int dtype;
    std::vector<SizeText> shape;
  };
  class Reader;

  std::vector<Array> inputs_;  ///< whose sizes are numbers and names
  std::vector<Array> outputs_;
  std::vector<int> written_;
};

}  // namespace passlib

#endif  // PASSLIB_ORT_STATED_TYPES_H_
