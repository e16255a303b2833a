// A library whose author forgot initialize().
#include "lib_api.h"

static mxnet::ext::MXReturnValue body(mxnet::ext::Graph*,
                                      const std::unordered_map<std::string, std::string>&) {
  return mxnet::ext::MX_SUCCESS;
}
REGISTER_PASS(neverReached).setBody(body);
