// Operators of MXNet and NNVM that are pure functions of their inputs.
#ifndef PASSES_FACTS_KNOWN_OPERATORS_H_
#define PASSES_FACTS_KNOWN_OPERATORS_H_

#include <string>

namespace passes {

/// Whether equal inputs give equal outputs, also in training. `nnvm`: include NNVM's own operators.
bool isKnownFunction(const std::string& op, bool nnvm);

/// Whether it is one of MXNet's operators whose only effect is to draw random numbers.
bool isKnownRandom(const std::string& op);

}  // namespace passes

#endif  // PASSES_FACTS_KNOWN_OPERATORS_H_
