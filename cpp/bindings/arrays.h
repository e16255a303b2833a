// NumPy arrays in and out of the host.
#ifndef PASSLIB_BINDINGS_ARRAYS_H_
#define PASSLIB_BINDINGS_ARRAYS_H_

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <memory>

#include "library/memory.h"

namespace passlib {

/// Whether two arrays are equal in type, shape and every bit.
bool sameContent(const pybind11::array& left, const pybind11::array& right);

/// Returns the bytes of a buffer as an array, which owns the memory.
pybind11::array ownedBytes(Buffer buffer);

}  // namespace passlib

#endif  // PASSLIB_BINDINGS_ARRAYS_H_
