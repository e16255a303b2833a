// The other source: it shares registry and messages with the first one.
#include "mxnet/lib_api.h"

static mxnet::ext::MXReturnValue body(mxnet::ext::Graph*,
                                      const std::unordered_map<std::string, std::string>& options) {
  std::cout << "source b\n";
  if (options.count("fail") == 0) return mxnet::ext::MX_SUCCESS;
  MX_ERROR_MSG << "message of source b";
  return mxnet::ext::MX_FAIL;
}
REGISTER_PASS(fromSourceB).setBody(body);
