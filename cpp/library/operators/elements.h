// Element types of the ABI by ONNX's numbers.
#ifndef PASSLIB_LIBRARY_OPERATORS_ELEMENTS_H_
#define PASSLIB_LIBRARY_OPERATORS_ELEMENTS_H_

#include <cstdint>

namespace passlib {

/// Returns MXNet's code of an element type of ONNX; -1 if the ABI has no such type.
int dtypeOfElement(int64_t element);
/// The reverse; 0 for an unknown code.
int elementOfDtype(int dtype);

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_OPERATORS_ELEMENTS_H_
