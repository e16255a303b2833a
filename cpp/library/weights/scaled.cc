#include "library/weights/scaled.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <system_error>
#include <utility>

#include "lib_api.h"
#include "library/file_mapping.h"
#include "library/memory.h"

// Functions that have a second version for processors with wider registers.
#if defined(__x86_64__) && defined(__GNUC__)
#define PASSLIB_WIDE __attribute__((target("avx2")))
#define PASSLIB_HAS_WIDE 1
#else
#define PASSLIB_WIDE
#define PASSLIB_HAS_WIDE 0
#endif

namespace passlib {
namespace {

using mxnet::ext::kFloat32;
using mxnet::ext::kFloat64;

bool hasWide() {
#if PASSLIB_HAS_WIDE
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
#else
  return false;
#endif
}

template <typename Element>
struct BitsOf;
template <>
struct BitsOf<float> {
  using type = int32_t;
};
template <>
struct BitsOf<double> {
  using type = int64_t;
};

/// Returns the magnitude of the largest of some elements; an infinity or NaN is larger than all
/// numbers. Magnitudes are ordered as their bits are as whole numbers.
template <typename Element>
inline __attribute__((always_inline)) Element largest(const char* from, std::size_t count) {
  using Bits = typename BitsOf<Element>::type;
  Bits most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, from + i * sizeof(Bits), sizeof(Bits));
    most = std::max<Bits>(most, bits & std::numeric_limits<Bits>::max());
  }
  Element magnitude;
  std::memcpy(&magnitude, &most, sizeof(most));
  return magnitude;
}

template <typename Element>
inline __attribute__((always_inline)) void multiply(char* elements, std::size_t count,
                                                    double factor) {
  for (std::size_t i = 0; i < count; ++i) {
    Element value;
    std::memcpy(&value, elements + i * sizeof(Element), sizeof(Element));
    value = static_cast<Element>(static_cast<double>(value) * factor);
    std::memcpy(elements + i * sizeof(Element), &value, sizeof(Element));
  }
}

template <typename Element>
Element largestNarrow(const char* from, std::size_t count) {
  return largest<Element>(from, count);
}
template <typename Element>
PASSLIB_WIDE Element largestWide(const char* from, std::size_t count) {
  return largest<Element>(from, count);
}
template <typename Element>
void multiplyNarrow(char* elements, std::size_t count, double factor) {
  multiply<Element>(elements, count, factor);
}
template <typename Element>
PASSLIB_WIDE void multiplyWide(char* elements, std::size_t count, double factor) {
  multiply<Element>(elements, count, factor);
}

/// Bytes that are read at once: they stay in the processor's cache until they were used.
constexpr std::size_t kBlock = std::size_t{1} << 18;

/// Arrays of fewer bytes are read from their memory: that costs less than a call.
constexpr std::size_t kSmall = std::size_t{1} << 16;

}  // namespace

bool Scaled::isPossible(int dtype, std::size_t size, std::size_t count) {
  if (dtype != kFloat32 && dtype != kFloat64) return false;
  const std::size_t elements = size / elementSize(dtype);
  return count != 0 && elements != 0 && elements % count == 0;
}

Scaled::Scaled(const void* data, std::size_t size, int dtype, std::vector<double> factors)
    : data_(static_cast<const char*>(data)),
      size_(size),
      dtype_(dtype),
      run_(size / elementSize(dtype) / factors.size()),
      factors_(std::move(factors)) {}

bool Scaled::isOfFile() const { return placeInFile(data_, size_).file >= 0; }

/// Copies bytes of the array. Those of files are read instead of mapped, so that they are in memory
/// no longer than they are needed.
void Scaled::fetch(std::size_t offset, std::size_t size, char* target) const {
  const FilePlace place = size_ < kSmall ? FilePlace() : placeInFile(data_, size_);
  if (place.file < 0) {
    std::memcpy(target, data_ + offset, size);
    return;
  }
  for (std::size_t done = 0; done < size;) {
    const ssize_t count = pread(place.file, target + done, size - done,
                                static_cast<off_t>(place.offset + offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw std::system_error(count < 0 ? errno : EIO, std::generic_category());
    done += static_cast<std::size_t>(count);
  }
}

/// Calls `visit` with a factor, and the first of the elements from `offset` on that it belongs to,
/// and their number.
template <typename Element, typename Visit>
void Scaled::forEachRun(std::size_t offset, std::size_t size, Visit visit) const {
  const std::size_t first = offset / sizeof(Element);
  const std::size_t end = first + size / sizeof(Element);
  for (std::size_t place = first; place < end;) {
    const std::size_t count = std::min(end, (place / run_ + 1) * run_) - place;
    visit(factors_[place / run_], (place - first) * sizeof(Element), count);
    place += count;
  }
}

template <typename Element>
bool Scaled::staysFinite() const {
  constexpr double kMost = std::numeric_limits<Element>::max();
  const auto find = hasWide() ? largestWide<Element> : largestNarrow<Element>;
  const std::size_t block = std::min(kBlock, size_);
  const std::unique_ptr<char[]> memory(new char[block]);
  bool finite = true;
  for (std::size_t offset = 0; offset < size_ && finite; offset += block) {
    const std::size_t size = std::min(block, size_ - offset);
    fetch(offset, size, memory.get());
    forEachRun<Element>(offset, size, [&](double factor, std::size_t first, std::size_t count) {
      // Rounding is monotonic: no product is larger than that of the largest element.
      const auto most = static_cast<double>(find(memory.get() + first, count));
      finite &= most <= kMost && std::fabs(most * factor) <= kMost;
    });
  }
  return finite;
}

template <typename Element>
void Scaled::computeAs(std::size_t offset, std::size_t size, char* target) const {
  const auto scale = hasWide() ? multiplyWide<Element> : multiplyNarrow<Element>;
  for (std::size_t done = 0; done < size; done += kBlock) {
    const std::size_t part = std::min(kBlock, size - done);
    char* const memory = target + done;
    fetch(offset + done, part, memory);
    forEachRun<Element>(offset + done, part,
                        [&](double factor, std::size_t first, std::size_t count) {
                          scale(memory + first, count, factor);
                        });
  }
}

bool Scaled::isFinite() const {
  return dtype_ == kFloat32 ? staysFinite<float>() : staysFinite<double>();
}

void Scaled::compute(std::size_t offset, std::size_t size, void* target) const {
  auto* const memory = static_cast<char*>(target);
  if (dtype_ == kFloat32) {
    computeAs<float>(offset, size, memory);
  } else {
    computeAs<double>(offset, size, memory);
  }
}

}  // namespace passlib
