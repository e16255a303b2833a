// Arrays that operators read and fill.
#ifndef PASSLIB_LIBRARY_OPERATORS_ARRAYS_H_
#define PASSLIB_LIBRARY_OPERATORS_ARRAYS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "header.h"
#include "library/memory.h"

namespace passlib {

/// An array that an operator reads: borrowed, C-contiguous. Sparse arrays have indices, csr arrays
/// also indptr.
struct InputArray {
  void* data = nullptr;
  std::size_t bytes = 0;
  std::vector<int64_t> shape;  ///< of the whole array, also if sparse
  int dtype = 0;
  int storage = mxnet::ext::kDefaultStorage;
  int64_t* indices = nullptr;
  int64_t num_indices = 0;
  int64_t* indptr = nullptr;
  int64_t num_indptr = 0;
  bool mutated = false;  ///< the operator may write to it
};

/// An array that an operator fills.
struct OutputArray {
  std::vector<int64_t> shape;
  int dtype = 0;
  int storage = mxnet::ext::kDefaultStorage;
  /// Zeroed memory of the caller that a dense output fills; null if the call allocates it.
  void* place = nullptr;
  // Allocated by the call. Sparse: as the operator requests, empty by default.
  Buffer data;
  std::vector<int64_t> stored_shape;  ///< of data
  Buffer indices;
  int64_t num_indices = 0;
  Buffer indptr;
  int64_t num_indptr = 0;
};

/// Allocates a dense output. Throws std::bad_alloc.
void allocateDenseOutput(OutputArray* output, bool guarded);

/// Allocates a sparse output with `count` rows, or values if it is csr. Throws std::bad_alloc.
void allocateSparseOutput(OutputArray* output, int64_t count, bool guarded);

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_OPERATORS_ARRAYS_H_
