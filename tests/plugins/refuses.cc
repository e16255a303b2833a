// A library that does not like some versions of its host.
#include "lib_api.h"

using namespace mxnet::ext;

MXReturnValue initialize(int version) {
  if (version == 1) {
    MX_ERROR_MSG << "version " << version << " is too old for this library";
    return MX_FAIL;
  }
  if (version == 2) return MX_FAIL;
  if (version == 3) throw std::runtime_error("initialize has no memory");
  if (version == 4) throw 4;
  return MX_SUCCESS;
}

static MXReturnValue body(Graph*, const std::unordered_map<std::string, std::string>&) {
  return MX_SUCCESS;
}
REGISTER_PASS(choosyPass).setBody(body);
