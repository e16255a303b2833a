// The versions of ONNX's operator sets that changed each operator.
#ifndef PASSLIB_ONNX_TYPES_OPERATOR_SETS_H_
#define PASSLIB_ONNX_TYPES_OPERATOR_SETS_H_

#include <cstdint>
#include <string>

namespace passlib::onnx {

/// The newest version of ONNX's own operator set that passlib knows.
int64_t newestSet();

/// The version of an operator set that brought the form that an operator has in a version; 0 if the
/// table does not know it.
int64_t sinceVersion(const std::string& op, const std::string& domain, int64_t version);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_TYPES_OPERATOR_SETS_H_
