#include "library/operators/resources.h"

#include <new>
#include <stdexcept>
#include <utility>

namespace passlib {

void Resources::allocateSparse(void* self, int index, int num_indices, int num_indptr, void** data,
                               int64_t** indices, int64_t** indptr) {
  OutputArray& output = static_cast<Resources*>(self)->sparseOutput(index, num_indices, num_indptr);
  *data = output.data.data();
  *indices = static_cast<int64_t*>(output.indices.data());
  if (num_indptr > 0) *indptr = static_cast<int64_t*>(output.indptr.data());
}

void Resources::refuse(const std::string& why) {
  if (refusal_.empty()) refusal_ = why;
  throw std::runtime_error(why);
}

void* Resources::allocateScratch(int size) {
  if (size < 0) {
    refuse("it requests " + std::to_string(size) +
           " bytes of memory; sizes are of type int and may have overflowed");
  }
  try {
    scratch_.emplace_back(static_cast<std::size_t>(size), guarded_);
  } catch (const std::bad_alloc&) {
    refuse("it requests " + std::to_string(size) +
           " bytes of memory, which the system does not have");
  }
  return scratch_.back().data();
}

OutputArray& Resources::sparseOutput(int index, int num_indices, int num_indptr) {
  const std::string what = "it requests memory of its output " + std::to_string(index);
  if (index < 0 || static_cast<std::size_t>(index) >= outputs_.size()) {
    refuse(what + "; it has " + std::to_string(outputs_.size()) + ", counted from 0");
  }
  OutputArray& output = outputs_[static_cast<std::size_t>(index)];
  if (output.storage == mxnet::ext::kDefaultStorage) refuse(what + ", which is dense");
  const bool csr = output.storage == mxnet::ext::kCSRStorage;
  const int64_t rows = output.shape[0];
  if (num_indices < 0 || (!csr && num_indices > rows)) {
    refuse(what + " for " + std::to_string(num_indices) + (csr ? " values" : " rows of ") +
           (csr ? "" : std::to_string(rows)));
  }
  if (num_indptr != (csr ? rows + 1 : 0)) {
    refuse(
        what + " with indptr of " + std::to_string(num_indptr) + " elements; " +
        (csr ? "a csr matrix of " + std::to_string(rows) + " rows has " + std::to_string(rows + 1)
             : std::string("row_sparse arrays have none")));
  }
  // Memory of an earlier request stays valid until the call ends.
  for (Buffer* buffer : {&output.data, &output.indices, &output.indptr}) {
    if (buffer->data() != nullptr) scratch_.push_back(std::move(*buffer));
  }
  try {
    allocateSparseOutput(&output, num_indices, guarded_);
  } catch (const std::bad_alloc&) {
    refuse(what + " for " + std::to_string(num_indices) +
           " values, for which the system has no memory");
  }
  return output;
}

}  // namespace passlib
