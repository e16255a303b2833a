// Forward and backward of a library's operator.
#ifndef PASSLIB_LIBRARY_OPERATORS_COMPUTE_H_
#define PASSLIB_LIBRARY_OPERATORS_COMPUTE_H_

#include <string>
#include <vector>

#include "library/operators/arrays.h"
#include "library/operators/custom_op.h"
#include "library/operators/state.h"

namespace passlib {

struct ComputeCall {
  std::string node;
  bool is_forward = true;
  /// Detect writes outside the operator's outputs.
  bool check_memory = false;
  std::vector<InputArray> inputs;
  std::vector<OutputArray> outputs;
};

/// Runs an operator without state. Throws OperatorError after restoring the inputs. Needs no GIL.
void compute(const CustomOp& op, const Attributes& attributes, ComputeCall* call);
/// The same for an operator with state.
void compute(const OperatorState& state, ComputeCall* call);

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_OPERATORS_COMPUTE_H_
