// Forward and backward of a library's operator.
#ifndef PASSLIB_COMPUTE_H_
#define PASSLIB_COMPUTE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "buffer.h"
#include "custom_op.h"

namespace passlib {

/// An array that an operator reads: borrowed, C-contiguous. Sparse ones have indices, and indptr
/// where they are csr.
struct InputArray {
  void* data = nullptr;
  std::size_t bytes = 0;
  std::vector<int64_t> shape;  ///< of the whole array, also where it is sparse
  int dtype = 0;
  int storage = mxnet::ext::kDefaultStorage;
  int64_t* indices = nullptr;
  int64_t num_indices = 0;
  int64_t* indptr = nullptr;
  int64_t num_indptr = 0;
  bool mutated = false;  ///< the operator may write to it
};

/// An array that an operator is to fill.
struct OutputArray {
  std::vector<int64_t> shape;
  int dtype = 0;
  int storage = mxnet::ext::kDefaultStorage;
  // Made by the call. Sparse: as much as the operator asked for, nothing by default.
  Buffer data;
  std::vector<int64_t> stored_shape;  ///< of data
  Buffer indices;
  int64_t num_indices = 0;
  Buffer indptr;
  int64_t num_indptr = 0;
};

struct ComputeCall {
  std::string node;
  bool is_forward = true;
  /// Look whether the operator writes to what is not its own.
  bool check_memory = false;
  std::vector<InputArray> inputs;
  std::vector<OutputArray> outputs;
};

/// Runs an operator without state.
void compute(const CustomOp& op, const Attributes& attributes, ComputeCall* call);
/// Runs one with state.
void compute(const OperatorState& state, ComputeCall* call);
// Both throw OperatorError, with the inputs as they were; they need no GIL.

}  // namespace passlib

#endif  // PASSLIB_COMPUTE_H_
