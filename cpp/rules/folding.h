// Constants computed when a rule is applied.
#ifndef PASSLIB_RULES_FOLDING_H_
#define PASSLIB_RULES_FOLDING_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "rules/terms.h"

namespace passlib::rules {

using Allocate = std::function<const mxnet::ext::MXTensor*(const std::vector<int64_t>& shape,
                                                           mxnet::ext::MXDType type)>;

/// Computes an operator on dense arrays, bit for bit as ONNX Runtime does: movements of elements of
/// any type, conversions that lose nothing, and arithmetic that IEEE 754 defines; sums in double
/// precision. What is an input in later operator sets may be a setting. Returns false for
/// everything else.
bool foldNatively(const std::string& op, const std::map<std::string, Value>& settings,
                  const std::vector<const mxnet::ext::MXTensor*>& inputs, const Allocate& allocate);

}  // namespace passlib::rules

#endif  // PASSLIB_RULES_FOLDING_H_
