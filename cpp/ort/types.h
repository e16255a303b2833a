// Element types and shapes, in ONNX's form and in that of the ABI.
#ifndef PASSLIB_ORT_TYPES_H_
#define PASSLIB_ORT_TYPES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace passlib {

/// Returns MXNet's code of an element type of ONNX; -1 if the ABI has no such type.
int dtypeOfElement(int64_t element);
/// The reverse; kOrtAnyType for an unknown code.
int elementOfDtype(int dtype);

/// Spells a shape: (2, ?), where -1 is unknown.
std::string spelled(const std::vector<int64_t>& shape);

}  // namespace passlib

#endif  // PASSLIB_ORT_TYPES_H_
