#include "library/memory.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

#include "header.h"

namespace passlib {
namespace {

constexpr std::size_t kGuard = 4096;
constexpr unsigned char kPattern = 0xA5;

}  // namespace

std::optional<std::size_t> arrayBytes(std::size_t element, const int64_t* shape, int num_dims) {
  constexpr std::size_t kMost = std::numeric_limits<std::ptrdiff_t>::max() / 2;
  std::size_t bytes = element;
  bool empty = false;
  for (int i = 0; i < num_dims; ++i) {
    empty = empty || shape[i] == 0;
    const auto extent = static_cast<std::size_t>(std::max<int64_t>(shape[i], 1));
    if (bytes > kMost / extent) return std::nullopt;
    bytes *= extent;
  }
  return empty ? 0 : bytes;
}

std::size_t elementSize(int dtype) {
  switch (dtype) {
    case mxnet::ext::kFloat64:
    case mxnet::ext::kInt64:
    case mxnet::ext::kUint64:
      return 8;
    case mxnet::ext::kFloat32:
    case mxnet::ext::kInt32:
    case mxnet::ext::kUint32:
      return 4;
    case mxnet::ext::kFloat16:
    case mxnet::ext::kBfloat16:
    case mxnet::ext::kInt16:
    case mxnet::ext::kUint16:
      return 2;
    case mxnet::ext::kInt8:
    case mxnet::ext::kUint8:
    case mxnet::ext::kBool:
      return 1;
    default:
      return 0;
  }
}

Buffer::Buffer(std::size_t bytes, bool guarded) : size_(bytes), guarded_(guarded) {
  const std::size_t around = kMemoryAlignment + (guarded ? 2 * kGuard : 0);
  if (bytes > std::numeric_limits<std::size_t>::max() - around) throw std::bad_alloc();
  // calloc instead of aligned_alloc and memset: the system provides large blocks zeroed.
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
