// One node of a library's operator, independent of ONNX Runtime: attributes, types, state.
#ifndef PASSLIB_ORT_NODE_H_
#define PASSLIB_ORT_NODE_H_

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "library/operators/compute.h"
#include "library/operators/custom_op.h"
#include "library/operators/state.h"
#include "ort/calls.h"
#include "ort/stated_types.h"

namespace passlib {

/// Everything that depends on the types of a node's inputs alone.
struct Settled {
  std::vector<std::vector<int64_t>> inputs;
  std::vector<OutputArray> outputs;  ///< without memory
  std::unique_ptr<OperatorState> state;
};

class LibraryNode {
 public:
  /// `text`: the attributes as a JSON object of texts, or "". `types`: see StatedTypes; read if the
  /// operator runs a subgraph. Throws OrtError, OperatorError.
  LibraryNode(const CustomOp& op, const std::string& text, const std::string& types,
              std::string name);

  const CustomOp& op() const { return op_; }
  const std::string& name() const { return name_; }
  int inputCount() const { return num_inputs_; }
  int outputCount() const { return num_outputs_; }
  /// Positions of the inputs that the operator writes to, ascending.
  const std::vector<int>& mutated() const { return mutated_; }

  /// Infers the outputs from complete types of the inputs, by MXNet's codes. Throws OrtError,
  /// OperatorError.
  std::vector<OutputArray> infer(const std::vector<std::vector<int64_t>>& shapes,
                                 const std::vector<int>& types) const;
  /// The same, and makes the state of a stateful operator.
  std::shared_ptr<const Settled> settle(const std::vector<std::vector<int64_t>>& shapes,
                                        const std::vector<int>& types) const;
  /// Runs the operator. A state is for one thread at a time.
  void run(const Settled& settled, ComputeCall* call) const;

  bool isStateful() const;
  [[noreturn]] void fail(const std::string& what) const { op_.fail(what, name_); }

 private:
  void readTypes(const std::string& text);
  std::vector<OutputArray> statedOutputs(const std::vector<std::vector<int64_t>>& shapes,
                                         const std::vector<int>& types) const;
  std::vector<OutputArray> inferredOutputs(const std::vector<std::vector<int64_t>>& shapes,
                                           const std::vector<int>& types) const;

  CustomOp op_;
  std::string name_;
  Attributes attributes_;
  std::optional<StatedTypes> stated_;  ///< of a node that runs a subgraph
  int num_inputs_ = 0;
  int num_outputs_ = 0;
  std::vector<int> mutated_;
};

}  // namespace passlib

#endif  // PASSLIB_ORT_NODE_H_
