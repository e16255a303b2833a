// One node of a library's operator, independent of ONNX Runtime: attributes, types, state.
#ifndef PASSLIB_ORT_NODE_H_
#define PASSLIB_ORT_NODE_H_

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "library/operators/compute.h"
#include "library/operators/custom_op.h"
#include "library/operators/state.h"
#include "ort/calls.h"

namespace passlib {

/// Everything that depends on the types of a node's inputs alone.
struct Settled {
  std::vector<std::vector<int64_t>> inputs;
  std::vector<OutputArray> outputs;  ///< without memory
  std::unique_ptr<OperatorState> state;
};

class LibraryNode {
 public:
  /// `text`: the attributes as a JSON object of texts, or "". Throws OrtError, OperatorError.
  LibraryNode(const CustomOp& op, const std::string& text, std::string name);

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
  CustomOp op_;
  std::string name_;
  Attributes attributes_;
  int num_inputs_ = 0;
  int num_outputs_ = 0;
  std::vector<int> mutated_;
};

/// Returns MXNet's code of an element type of ONNX; -1 if the ABI has no such type.
int dtypeOfElement(int element);
/// The reverse; kOrtAnyType for an unknown code.
int elementOfDtype(int dtype);

}  // namespace passlib

#endif  // PASSLIB_ORT_NODE_H_
