// Changes how its thread computes: when it is loaded, as -Ofast does, and in a pass. Prints from
// its static constructor and from initialize.
#include <cfenv>
#if defined(__SSE__)
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

}  // namespace

REGISTER_PASS(keepArithmetic).setBody(keepArithmetic);
REGISTER_PASS(roundUp).setBody(roundUp);

MXReturnValue initialize(int) {
  std::cout << "initialized" << std::endl;
  return MX_SUCCESS;
}
