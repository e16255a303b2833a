// A library that was linked without one of its parts.
#include "lib_api.h"

void neverDefinedAnywhere();

mxnet::ext::MXReturnValue initialize(int) {
  neverDefinedAnywhere();
  return mxnet::ext::MX_SUCCESS;
}
