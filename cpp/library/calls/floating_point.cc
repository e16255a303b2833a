#include "library/calls/floating_point.h"

#include <cfenv>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace passlib {
namespace {

// fegetenv and fesetenv take longer than short calls of a library, so only the control register is
// read. Flags of exceptions that occurred are no part of it.
#if defined(__SSE__)
constexpr unsigned kFlags = 0x3F;
uint64_t readControl() { return _mm_getcsr() & ~kFlags; }
void writeControl(uint64_t control) {
  _mm_setcsr(static_cast<unsigned>(control) | (_mm_getcsr() & kFlags));
}
#elif defined(__aarch64__)
uint64_t readControl() {
  uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  return control;
}
void writeControl(uint64_t control) { asm volatile("msr fpcr, %0" : : "r"(control)); }
#else
uint64_t readControl() { return 0; }
void writeControl(uint64_t) {}
#endif

}  // namespace

FloatingPoint::FloatingPoint() : control_(readControl()), rounding_(std::fegetround()) {}

bool FloatingPoint::restore() const {
  const bool turned = std::fegetround() != rounding_;
  if (turned) std::fesetround(rounding_);
  const bool changed = readControl() != control_;
  if (changed) writeControl(control_);
  return turned || changed;
}

}  // namespace passlib
