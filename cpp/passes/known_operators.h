// Operators of MXNet and NNVM that need nothing but their inputs and do nothing but give outputs.
#ifndef PASSES_KNOWN_OPERATORS_H_
#define PASSES_KNOWN_OPERATORS_H_

#include <string>

namespace passes {

/// Whether equal inputs give equal outputs, in training too. `nnvm`: NNVM's own operators count.
bool isKnownFunction(const std::string& op, bool nnvm);

/// Whether it is one of MXNet's operators that draw random numbers and do nothing else.
bool isKnownRandom(const std::string& op);

}  // namespace passes

#endif  // PASSES_KNOWN_OPERATORS_H_
