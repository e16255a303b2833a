#include "library/calls/floating_point.h"

#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#include <cfenv>
#endif

namespace passlib {
namespace {

// fegetenv and fesetenv take longer than short calls of a library, so only the control registers
// are read. Flags of exceptions that occurred are no part of it.
#if defined(__x86_64__) || defined(__i386__)
// MXCSR, of float and double, and above it the control word of the x87, of long double.
constexpr unsigned kFlags = 0x3F;
constexpr int kExtended = 32;

uint64_t readControl() {
  uint16_t extended = 0;
  asm volatile("fnstcw %0" : "=m"(extended));
  return (_mm_getcsr() & ~kFlags) | uint64_t{extended} << kExtended;
}

void writeControl(uint64_t control) {
  _mm_setcsr((static_cast<unsigned>(control) & ~kFlags) | (_mm_getcsr() & kFlags));
  const auto extended = static_cast<uint16_t>(control >> kExtended);
  // A pending exception that is masked no longer would end the process at the next instruction.
  asm volatile("fnclex\n\tfldcw %0" : : "m"(extended));
}
#elif defined(__aarch64__)
uint64_t readControl() {
  uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  return control;
}
void writeControl(uint64_t control) { asm volatile("msr fpcr, %0" : : "r"(control)); }
#else
uint64_t readControl() { return static_cast<uint64_t>(std::fegetround()); }
void writeControl(uint64_t control) { std::fesetround(static_cast<int>(control)); }
#endif

}  // namespace

FloatingPoint::FloatingPoint() : control_(readControl()) {}

bool FloatingPoint::restore() const {
  const bool changed = readControl() != control_;
  if (changed) writeControl(control_);
  return changed;
}

}  // namespace passlib
