// Resources that operators request from the host during a call.
#ifndef PASSLIB_LIBRARY_OPERATORS_RESOURCES_H_
#define PASSLIB_LIBRARY_OPERATORS_RESOURCES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "library/memory.h"
#include "library/operators/arrays.h"
#include "library/operators/random_states.h"

namespace passlib {

/// Serves the memory requests of an operator during a call. A request that cannot be served throws,
/// as in MXNet, since libraries do not check for null. It also makes the call fail, in case the
/// library catches the exception.
class Resources {
 public:
  Resources(std::vector<OutputArray>* outputs, bool guarded)
      : outputs_(*outputs), guarded_(guarded) {}

  static void* allocate(void* self, int size) {
    return static_cast<Resources*>(self)->allocateScratch(size);
  }
  static void* allocateOnGpu(void* /*self*/, int /*size*/) { return nullptr; }
  static void allocateSparse(void* self, int index, int num_indices, int num_indptr, void** data,
                             int64_t** indices, int64_t** indptr);

  RandomLease& random() { return random_; }
  const std::string& refusal() const { return refusal_; }
  const std::deque<Buffer>& scratch() const { return scratch_; }

 private:
  [[noreturn]] void refuse(const std::string& why);
  void* allocateScratch(int size);
  OutputArray& sparseOutput(int index, int num_indices, int num_indptr);

  std::vector<OutputArray>& outputs_;
  bool guarded_;
  std::deque<Buffer> scratch_;
  std::string refusal_;
  RandomLease random_;
};

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_OPERATORS_RESOURCES_H_
