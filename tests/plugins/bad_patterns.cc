// Patterns that are not well-formed: the library must be refused.
#include "lib_patterns.h"

using namespace mxnet::ext;

PATTERN_PASS(sound, "a sound pattern") { Pattern("y = Relu(x)").replace("y = Tanh(x)"); }

PATTERN_PASS(unclosed, "a pattern without its end") {
  Pattern p(
      "c = Conv(x, w)\n"
      "y = Relu(c");
}

PATTERN_PASS(unknownName, "a replacement with a name that the pattern does not have") {
  Pattern("y = Relu(x)").replace("y = Tanh(z)");
}

MXReturnValue initialize(int) { return MX_SUCCESS; }
