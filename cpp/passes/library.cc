// The library of standard passes. They are described in docs/standard-passes.md.
#include "lib_api.h"

mxnet::ext::MXReturnValue initialize(int version) {
  if (version >= 10700) return mxnet::ext::MX_SUCCESS;
  MX_ERROR_MSG << "the standard passes need the graph passes of MXNet 1.7 or later, not version "
               << version;
  return mxnet::ext::MX_FAIL;
}
