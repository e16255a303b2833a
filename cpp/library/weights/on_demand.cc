#include "library/weights/on_demand.h"

#include <cstdint>
#include <cstring>

#include "library/memory.h"

namespace passlib {

const void* OnDemand::read(const WeightPlace& place) {
  const auto address = reinterpret_cast<std::uintptr_t>(place.data);
  if (place.size == 0 || address % elementSize(place.dtype) == 0) return place.data;
  Line* const copy = copies_.add((place.size + sizeof(Line) - 1) / sizeof(Line));
  std::memcpy(copy, place.data, place.size);
  return copy;
}

std::optional<Scaled> OnDemand::scaled(const WeightPlace& place, const double* factors,
                                       std::size_t count) {
  if (!Scaled::isPossible(place.dtype, place.size, count)) return std::nullopt;
  return Scaled(place.data, place.size, place.dtype, std::vector<double>(factors, factors + count));
}

}  // namespace passlib
