#include "library/handover/large_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <limits>

namespace passlib {
namespace {

constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kLargePage = std::size_t{2} << 20;
/// From here on the pages of a piece cost more than what remains unused of a large one.
constexpr uint64_t kLarge = kLargePage / 2;

void* allocate(uint64_t size) {
  if (size > std::numeric_limits<std::size_t>::max()) return nullptr;
  void* memory = nullptr;
  const bool large = size >= kLarge;
  const auto bytes = static_cast<std::size_t>(size);
  if (posix_memalign(&memory, large ? kLargePage : kCacheLine, bytes) != 0) return nullptr;
#ifdef MADV_HUGEPAGE
  // Where there are none, or the kernel does not want to, it gives others.
  if (large) (void)madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  return memory;
}

void release(void* memory) { std::free(memory); }

}  // namespace

mxnet::ext::FlatMemory largeMemory() { return {&allocate, &release}; }

}  // namespace passlib
