#include "buffer.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <new>

namespace passlib {
namespace {

constexpr std::size_t kGuard = 4096;
constexpr unsigned char kPattern = 0xA5;

}  // namespace

Buffer::Buffer(std::size_t bytes, bool guarded) : size_(bytes), guarded_(guarded) {
  const std::size_t around = kMemoryAlignment + (guarded ? 2 * kGuard : 0);
  if (bytes > std::numeric_limits<std::size_t>::max() - around) throw std::bad_alloc();
  // calloc, not aligned_alloc and memset: large blocks come zeroed from the system.
  memory_.reset(std::calloc(bytes + around, 1));
  if (memory_ == nullptr) throw std::bad_alloc();
  auto address = reinterpret_cast<std::uintptr_t>(memory_.get()) + (guarded ? kGuard : 0);
  address = (address + kMemoryAlignment - 1) / kMemoryAlignment * kMemoryAlignment;
  data_ = reinterpret_cast<void*>(address);
  if (!guarded) return;
  std::memset(static_cast<unsigned char*>(data_) - kGuard, kPattern, kGuard);
  std::memset(static_cast<unsigned char*>(data_) + size_, kPattern, kGuard);
}

std::size_t Buffer::overrun() const {
  const unsigned char* end = static_cast<unsigned char*>(data_) + size_;
  for (std::size_t i = guarded_ ? kGuard : 0; i > 0; --i) {
    if (end[i - 1] != kPattern) return i;
  }
  return 0;
}

std::size_t Buffer::underrun() const {
  const unsigned char* begin = static_cast<unsigned char*>(data_);
  for (std::size_t i = guarded_ ? kGuard : 0; i > 0; --i) {
    if (*(begin - i) != kPattern) return i;
  }
  return 0;
}

}  // namespace passlib
