// Passes that end the process.

#include <csignal>
#include <cstdlib>

#include "lib_api.h"

using namespace mxnet::ext;

namespace {

using Options = std::unordered_map<std::string, std::string>;

volatile int depth = 0;

/// Uses up the stack.
int descend(int number) {  // NOLINT: that is what it is for
  volatile char block[4096];
  block[0] = static_cast<char>(number);
  depth = depth + 1;
  return descend(number + 1) + block[0];
}

MXReturnValue readsNowhere(Graph*, const Options&) {
  volatile int* nowhere = nullptr;
  return *nowhere == 0 ? MX_SUCCESS : MX_FAIL;
}

MXReturnValue aborts(Graph*, const Options&) { std::abort(); }

MXReturnValue raisesSigfpe(Graph*, const Options&) {
  return std::raise(SIGFPE) == 0 ? MX_SUCCESS : MX_FAIL;
}

MXReturnValue recurses(Graph*, const Options&) { return descend(0) == 0 ? MX_SUCCESS : MX_FAIL; }

}  // namespace

MXReturnValue initialize(int) { return MX_SUCCESS; }

REGISTER_PASS(readsNowhere).setBody(readsNowhere);
REGISTER_PASS(aborts).setBody(aborts);
REGISTER_PASS(raisesSigfpe).setBody(raisesSigfpe);
REGISTER_PASS(recurses).setBody(recurses);
