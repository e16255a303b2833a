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

#include "header.h"
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

/// Calls `visit` with the first of some elements at a time, and their number. Lines of the cache
/// are asked for ahead, since the processor itself does so only up to the end of a page.
template <typename Element, typename Visit>
inline __attribute__((always_inline)) void forEachPart(const char* from, std::size_t count,
                                                       Visit visit) {
  // In bytes. Compilers make no loop of fewer elements, and so no use of wide registers.
  constexpr std::size_t kLine = 64, kPart = 4 * kLine, kAhead = 4096;
  constexpr std::size_t kElements = kPart / sizeof(Element);
  std::size_t first = 0;
  for (; first + kElements <= count; first += kElements) {
    const char* const ahead = from + first * sizeof(Element) + kAhead;
    for (std::size_t line = 0; line < kPart; line += kLine) __builtin_prefetch(ahead + line);
    visit(first, kElements);
  }
  visit(first, count - first);
}

/// Returns the magnitude of the largest of some elements; an infinity or NaN is larger than all
/// numbers. Magnitudes are ordered as their bits are as whole numbers.
template <typename Element>
inline __attribute__((always_inline)) Element largest(const char* from, std::size_t count) {
  using Bits = typename BitsOf<Element>::type;
  Bits most = 0;
  forEachPart<Element>(from, count, [&](std::size_t first, std::size_t size) {
    for (std::size_t i = first; i < first + size; ++i) {
      Bits bits;
      std::memcpy(&bits, from + i * sizeof(Bits), sizeof(Bits));
      most = std::max<Bits>(most, bits & std::numeric_limits<Bits>::max());
    }
  });
  Element magnitude;
  std::memcpy(&magnitude, &most, sizeof(most));
  return magnitude;
}

template <typename Element>
inline __attribute__((always_inline)) void multiply(const char* __restrict__ from,
                                                    std::size_t count, double factor,
                                                    char* __restrict__ to) {
  forEachPart<Element>(from, count, [=](std::size_t first, std::size_t size) {
    for (std::size_t i = first; i < first + size; ++i) {
      Element value;
      std::memcpy(&value, from + i * sizeof(Element), sizeof(Element));
      value = static_cast<Element>(static_cast<double>(value) * factor);
      std::memcpy(to + i * sizeof(Element), &value, sizeof(Element));
    }
  });
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
void multiplyNarrow(const char* from, std::size_t count, double factor, char* to) {
  multiply<Element>(from, count, factor, to);
}
template <typename Element>
PASSLIB_WIDE void multiplyWide(const char* from, std::size_t count, double factor, char* to) {
  multiply<Element>(from, count, factor, to);
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

/// Shows bytes of the array. The pages of files are in memory no longer than they are needed.
class Scaled::Reader {
 public:
  explicit Reader(const Scaled& array) : data_(array.data_) {
    if (array.size_ >= kSmall) place_ = placeInFile(array.data_, array.size_);
  }

  /// Calls `use` with a pointer to `size` bytes, at most kBlock, which are not where it writes to.
  template <typename Use>
  void read(std::size_t offset, std::size_t size, Use use) {
    if (place_.file < 0) return use(data_ + offset);
    const PageHold pages(data_ + offset, size);
    if (pages.isPresent()) return use(data_ + offset);
    if (copy_ == nullptr) copy_.reset(new char[kBlock]);
    for (std::size_t done = 0; done < size;) {
      const ssize_t count = pread(place_.file, copy_.get() + done, size - done,
                                  static_cast<off_t>(place_.offset + offset + done));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) throw std::system_error(count < 0 ? errno : EIO, std::generic_category());
      done += static_cast<std::size_t>(count);
    }
    use(copy_.get());
  }

 private:
  const char* data_;
  FilePlace place_;
  std::unique_ptr<char[]> copy_;
};

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
  Reader reader(*this);
  bool finite = true;
  for (std::size_t offset = 0; offset < size_ && finite; offset += kBlock) {
    const std::size_t size = std::min(kBlock, size_ - offset);
    reader.read(offset, size, [&](const char* from) {
      forEachRun<Element>(offset, size, [&](double factor, std::size_t first, std::size_t count) {
        // Rounding is monotonic: no product is larger than that of the largest element.
        const auto most = static_cast<double>(find(from + first, count));
        finite &= most <= kMost && std::fabs(most * factor) <= kMost;
      });
    });
  }
  return finite;
}

template <typename Element>
void Scaled::computeAs(std::size_t offset, std::size_t size, char* target) const {
  const auto scale = hasWide() ? multiplyWide<Element> : multiplyNarrow<Element>;
  Reader reader(*this);
  for (std::size_t done = 0; done < size; done += kBlock) {
    const std::size_t part = std::min(kBlock, size - done);
    char* const to = target + done;
    reader.read(offset + done, part, [&](const char* from) {
      forEachRun<Element>(offset + done, part,
                          [&](double factor, std::size_t first, std::size_t count) {
                            scale(from + first, count, factor, to + first);
                          });
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
