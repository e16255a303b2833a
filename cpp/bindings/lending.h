// Arrays lent to one call of a pass.
#ifndef PASSLIB_BINDINGS_LENDING_H_
#define PASSLIB_BINDINGS_LENDING_H_

#include <pybind11/pybind11.h>

namespace passlib {

/// Adds FileMapping and LentArrays.
void bindLending(pybind11::module_* m);

}  // namespace passlib

#endif  // PASSLIB_BINDINGS_LENDING_H_
