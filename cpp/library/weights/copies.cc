#include "library/weights/copies.h"

#include <cstdint>
#include <cstring>

#include "library/memory.h"

namespace passlib {

namespace {

/// Arrays of fewer bytes are copied together; of others, pages are copied that are written to.
constexpr std::size_t kSmall = std::size_t{1} << 16;

std::size_t roundedUp(std::size_t size) {
  return (size + kMemoryAlignment - 1) / kMemoryAlignment * kMemoryAlignment;
}

}  // namespace

void Copies::add(std::size_t place, const char* original, std::size_t size, bool aligned) {
  copies_.push_back({place, original, size, aligned, nullptr, {}, nullptr});
}

void Copies::make() {
  Lender lender;
  std::size_t packed = kMemoryAlignment;
  for (Copy& each : copies_) {
    if (each.size < kSmall) {
      packed += roundedUp(each.size);
    } else if (each.aligned) {
      each.loan = lender.lend(each.original, each.size);
    }
  }
  small_.reset(new char[packed]);
  char* place = small_.get();
  place += kMemoryAlignment - reinterpret_cast<uintptr_t>(place) % kMemoryAlignment;
  for (Copy& each : copies_) {
    if (each.size < kSmall) {
      each.data = place;
      std::memcpy(place, each.original, each.size);
      place += roundedUp(each.size);
    } else if (each.loan.mapping != nullptr) {
      each.data = each.loan.mapping->data() + each.loan.offset;
    } else {
      const std::shared_ptr<char[]> own(new char[each.size + kMemoryAlignment]);
      each.data = own.get() +
                  (kMemoryAlignment - reinterpret_cast<uintptr_t>(own.get()) % kMemoryAlignment);
      each.own = std::shared_ptr<const char>(own, each.data);
      std::memcpy(each.data, each.original, each.size);
    }
  }
}

bool Copies::differs(std::size_t number) const {
  const Copy& copy = copies_[number];
  if (copy.loan.mapping != nullptr) {
    return copy.loan.mapping->differs(copy.loan.offset, copy.size, copy.original);
  }
  return std::memcmp(copy.data, copy.original, copy.size) != 0;
}

std::shared_ptr<const char> Copies::kept(std::size_t number) const {
  const Copy& copy = copies_[number];
  if (copy.loan.mapping != nullptr) return {copy.loan.mapping, copy.data};
  if (copy.own != nullptr) return copy.own;
  // The small ones lie together; one of them must not keep all.
  const std::shared_ptr<char[]> alone(new char[copy.size + 1]);
  std::memcpy(alone.get(), copy.data, copy.size);
  return {alone, alone.get()};
}

}  // namespace passlib
