#include "library/operators/arrays.h"

#include <new>
#include <optional>

namespace passlib {
namespace {

std::size_t countBytes(int dtype, const std::vector<int64_t>& shape) {
  const auto bytes = arrayBytes(elementSize(dtype), shape.data(), static_cast<int>(shape.size()));
  if (!bytes) throw std::bad_alloc();
  return *bytes;
}

}  // namespace

void allocateDenseOutput(OutputArray* output, bool guarded) {
  output->stored_shape = output->shape;
  output->data = Buffer(countBytes(output->dtype, output->shape), guarded);
}

void allocateSparseOutput(OutputArray* output, int64_t count, bool guarded) {
  constexpr std::size_t kIndexBytes = sizeof(int64_t);
  const bool csr = output->storage == mxnet::ext::kCSRStorage;
  output->stored_shape = csr ? std::vector<int64_t>{count} : output->shape;
  output->stored_shape[0] = count;
  output->data = Buffer(countBytes(output->dtype, output->stored_shape), guarded);
  output->indices = Buffer(static_cast<std::size_t>(count) * kIndexBytes, guarded);
  output->num_indices = count;
  output->num_indptr = csr ? output->shape[0] + 1 : 0;
  output->indptr = Buffer(static_cast<std::size_t>(output->num_indptr) * kIndexBytes, guarded);
}

}  // namespace passlib
