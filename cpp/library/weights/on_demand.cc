#include "library/weights/on_demand.h"

#include <cstdint>
#include <cstring>

#include "library/memory.h"

namespace passlib {

namespace {

/// Smaller weights are copied, since pages of their own would cost more.
constexpr std::size_t kFewBytes = std::size_t{1} << 16;

}  // namespace

const void* OnDemand::read(const WeightPlace& place, std::size_t id) {
  if (place.size == 0) return place.data;
  Read read{place, id, nullptr, {}};
  const auto address = reinterpret_cast<std::uintptr_t>(place.data);
  if (place.size >= kFewBytes && address % elementSize(place.dtype) == 0) {
    read.loan = lender_.lend(place.data, place.size);
  }
  if (read.loan.mapping != nullptr) {
    read.data = read.loan.mapping->data() + read.loan.offset;
  } else {
    Line* const copy = copies_.add((place.size + sizeof(Line) - 1) / sizeof(Line));
    std::memcpy(copy, place.data, place.size);
    read.data = reinterpret_cast<const char*>(copy);
  }
  reads_.push_back(read);
  return read.data;
}

std::size_t OnDemand::written() const {
  for (const Read& read : reads_) {
    const auto* const original = static_cast<const char*>(read.place.data);
    const bool differs =
        read.loan.mapping != nullptr
            ? read.loan.mapping->differs(read.loan.offset, read.place.size, original)
            : std::memcmp(read.data, original, read.place.size) != 0;
    if (differs) return read.id;
  }
  return 0;
}

std::optional<Scaled> OnDemand::scaled(const WeightPlace& place, const double* factors,
                                       std::size_t count) {
  if (!Scaled::isPossible(place.dtype, place.size, count)) return std::nullopt;
  return Scaled(place.data, place.size, place.dtype, std::vector<double>(factors, factors + count));
}

}  // namespace passlib
