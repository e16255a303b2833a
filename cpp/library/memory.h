// Sizes of arrays, and memory that the host allocates for libraries.
#ifndef PASSLIB_LIBRARY_MEMORY_H_
#define PASSLIB_LIBRARY_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

namespace passlib {

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};
using OwnedMemory = std::unique_ptr<void, FreeMemory>;

/// Cache line and widest vector register of today's machines.
constexpr std::size_t kMemoryAlignment = 64;

/// NumPy 1's limit; MXNet's arrays have fewer dimensions.
constexpr int kMostDims = 32;

/// Returns the size of an element in bytes, by MXNet's dtype code; 0 for an unknown code.
std::size_t elementSize(int dtype);

/// Returns the size of an array in bytes; nothing if it exceeds the address space, or would if its
/// extents of 0 were 1, since NumPy has no such array. No extent may be negative.
std::optional<std::size_t> arrayBytes(std::size_t element, const int64_t* shape, int num_dims);

/// Zeroed memory. A guarded buffer has a zone at each end in which writes are detected.
class Buffer {
 public:
  Buffer() = default;
  /// Throws std::bad_alloc.
  Buffer(std::size_t bytes, bool guarded);

  void* data() const { return data_; }
  std::size_t size() const { return size_; }
  /// The number of bytes from the end to the last byte written after it; 0 without such a write or
  /// without guards.
  std::size_t overrun() const;
  /// The same for writes before the beginning.
  std::size_t underrun() const;
  /// Gives up the memory, in which data() lies.
  OwnedMemory release() { return std::move(memory_); }

 private:
  OwnedMemory memory_;
  void* data_ = nullptr;
  std::size_t size_ = 0;
  bool guarded_ = false;
};

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_MEMORY_H_
