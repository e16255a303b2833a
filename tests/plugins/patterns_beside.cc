// Patterns in another source than the entry points, whose source (two_sources_a.cc) lacks the
// macro.
#define PASSLIB_PATTERNS
#include "lib_api.h"

using namespace mxnet::ext;

PATTERN_PASS(besideSound, "a sound pattern") { Pattern("y = Relu(x)").replace("y = Tanh(x)"); }

#ifdef UNCLOSED
PATTERN_PASS(besideUnclosed, "a pattern without its end") { Pattern p("y = Relu(x"); }
#endif
