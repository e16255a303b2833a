// Changes how its thread computes: when it is loaded, as -Ofast does, and in a pass. Prints from
// its static constructor and from initialize.
#include <cfenv>
#if defined(__SSE__)
#include <fpu_control.h>
#include <xmmintrin.h>
#endif

#include "lib_api.h"

using namespace mxnet::ext;

namespace {

void change() {
#if defined(__SSE__)
  _mm_setcsr(_mm_getcsr() | 0x8040);  // flush to zero, denormals are zero
#else
  std::fesetround(FE_UPWARD);
#endif
}

const struct Start {
  Start() {
    std::cout << "constructed" << std::endl;
    change();
  }
} start;

MXReturnValue keepArithmetic(Graph*, const options_map_t&) { return MX_SUCCESS; }

MXReturnValue roundUp(Graph*, const options_map_t&) {
  std::fesetround(FE_UPWARD);
  return MX_SUCCESS;
}

/// Changes the arithmetic of long double alone, which has a register of its own on x86.
MXReturnValue shortenLong(Graph*, const options_map_t&) {
#if defined(__SSE__)
  fpu_control_t control = 0;
  _FPU_GETCW(control);
  control = static_cast<fpu_control_t>((control & ~_FPU_EXTENDED) | _FPU_DOUBLE);
  _FPU_SETCW(control);
#endif
  return MX_SUCCESS;
}

#if defined(__SSE__)
/// Lets divisions by 0 end the process, after one has happened.
MXReturnValue trapZero(Graph*, const options_map_t&) {
  feraiseexcept(FE_DIVBYZERO);
  fpu_control_t control = 0;
  _FPU_GETCW(control);
  control = static_cast<fpu_control_t>(control & ~_FPU_MASK_ZM);
  _FPU_SETCW(control);
  return MX_SUCCESS;
}
#else
MXReturnValue trapZero(Graph*, const options_map_t&) { return MX_SUCCESS; }
#endif

}  // namespace

REGISTER_PASS(shortenLong).setBody(shortenLong);
REGISTER_PASS(trapZero).setBody(trapZero);
REGISTER_PASS(keepArithmetic).setBody(keepArithmetic);
REGISTER_PASS(roundUp).setBody(roundUp);

MXReturnValue initialize(int) {
  std::cout << "initialized" << std::endl;
  return MX_SUCCESS;
}
