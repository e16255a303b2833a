// Operators of libraries, as passlib._core has them.
#ifndef PASSLIB_BINDINGS_OPERATOR_H_
#define PASSLIB_BINDINGS_OPERATOR_H_

#include <pybind11/pybind11.h>

namespace passlib {

/// Adds CustomOp, OperatorState and seed_random. Library must be there already.
void bindOperators(pybind11::module_* m);

}  // namespace passlib

#endif  // PASSLIB_BINDINGS_OPERATOR_H_
