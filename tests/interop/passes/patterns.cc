// Passes made of patterns, which run in both hosts.
#define PASSLIB_PATTERNS
#include "mxnet/lib_api.h"

using mxnet::ext::Match;
using mxnet::ext::Pattern;

PATTERN_PASS(interop_fuseActivations, "Activation with relu becomes relu", "mxnet") {
  Pattern("y = Activation[act_type=relu](x)").replace("y = relu(x)");
}

PATTERN_PASS(interop_reshapePoolings, "Flatten behind Pooling becomes Reshape", "mxnet") {
  Pattern p("p = shared Pooling(x)\n y = Flatten(p)");
  p.replace("y = Reshape[shape=(0, -1)](p)");
}

PATTERN_PASS(interop_reorderSums, "The first input of a sum becomes the second", "mxnet") {
  Pattern p("y = elemwise_add|_plus|broadcast_add(a, b)");
  p.rewrite([](Match& m) { m.replace(m.op("_grad_add", {m["b"], m["a"]})); });
}
