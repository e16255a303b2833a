// A pass that changes nothing, to measure the cost of the call itself.
#include "lib_api.h"

mxnet::ext::MXReturnValue identity(mxnet::ext::Graph*,
                                   const std::unordered_map<std::string, std::string>&) {
  return mxnet::ext::MX_SUCCESS;
}

REGISTER_PASS(identity).setBody(identity);

mxnet::ext::MXReturnValue initialize(int) { return mxnet::ext::MX_SUCCESS; }
