// One of two sources of a library: it has initialize().
#include "lib_api.h"

static mxnet::ext::MXReturnValue body(mxnet::ext::Graph*,
                                      const std::unordered_map<std::string, std::string>&) {
  std::cout << "source a\n";
  return mxnet::ext::MX_SUCCESS;
}
REGISTER_PASS(fromSourceA).setBody(body);

mxnet::ext::MXReturnValue initialize(int) { return mxnet::ext::MX_SUCCESS; }
