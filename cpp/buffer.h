// Memory that the host lends to an operator.
#ifndef PASSLIB_BUFFER_H_
#define PASSLIB_BUFFER_H_

#include <cstddef>
#include <memory>

#include "tensors.h"

namespace passlib {

/// Zeroed memory. A guarded one has a zone at each end in which writes are noticed.
class Buffer {
 public:
  Buffer() = default;
  /// Throws std::bad_alloc.
  Buffer(std::size_t bytes, bool guarded);

  void* data() const { return data_; }
  std::size_t size() const { return size_; }
  /// How many bytes lie between the end and the last byte that was written behind it; 0 if none
  /// was, and where there is no guard.
  std::size_t overrun() const;
  /// The same for writes in front of it.
  std::size_t underrun() const;
  /// Gives the memory up. data() stands somewhere within it.
  std::unique_ptr<void, FreeMemory> release() { return std::move(memory_); }

 private:
  std::unique_ptr<void, FreeMemory> memory_;
  void* data_ = nullptr;
  std::size_t size_ = 0;
  bool guarded_ = false;
};

}  // namespace passlib

#endif  // PASSLIB_BUFFER_H_
