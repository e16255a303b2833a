// Types and constants that a model states without inference.
#ifndef PASSLIB_ONNX_ACCEPTANCE_KNOWN_VALUES_H_
#define PASSLIB_ONNX_ACCEPTANCE_KNOWN_VALUES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/text_table.h"
#include "onnx/writing/model.h"

namespace passlib::onnx {

/// The facts about a value.
struct Known {
  Bytes type;             ///< a TypeProto; empty if it is not stated
  Bytes elements;         ///< a TensorProto with its elements, if these are few; else null
  Bytes constant;         ///< the node that holds it; null if there is none
  bool is_input = false;  ///< of the graph
};

/// The values of a main graph by name. Refers to the model. The type of a Constant with a tensor is
/// that of the tensor.
class KnownValues {
 public:
  explicit KnownValues(const ModelWriter& model);
  /// Of those values only that some nodes, each a message, take or compute.
  KnownValues(const ModelWriter& model, const std::vector<Bytes>& nodes);
  KnownValues(const KnownValues&) = delete;
  KnownValues& operator=(const KnownValues&) = delete;

  /// Returns null for a value of which nothing is stated.
  const Known* find(Bytes name) const { return known_.find(name); }

 private:
  void collect(const WrittenGraph& graph);
  /// Returns where to note what is known of a value; null if it is of no interest.
  Known* placeOf(Bytes name) { return some_ ? known_.find(name) : known_.insert(name, {}).first; }
  Bytes describeTensor(int32_t type, const std::vector<int64_t>& dims);

  NameMap<Known> known_;
  bool some_ = false;  ///< only the values that are in the table already are of interest
  TextSet types_;      ///< as ValueInfoProtos
};

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_ACCEPTANCE_KNOWN_VALUES_H_
