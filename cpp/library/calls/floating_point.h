// The floating-point environment of a thread, kept from what libraries do to it.
#ifndef PASSLIB_LIBRARY_CALLS_FLOATING_POINT_H_
#define PASSLIB_LIBRARY_CALLS_FLOATING_POINT_H_

#include <cstdint>

namespace passlib {

/// How this thread computes, long double included: rounding, precision, flush to zero, masks of
/// exceptions. Libraries that were linked with -Ofast or -ffast-math change it when they are
/// loaded, for all code of the process.
class FloatingPoint {
 public:
  /// Reads the present state.
  FloatingPoint();
  /// Restores the state that was read; returns whether it had changed.
  bool restore() const;

 private:
  const uint64_t control_;
};

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_CALLS_FLOATING_POINT_H_
