// NumPy arrays in and out of the host.
#ifndef PASSLIB_BINDINGS_ARRAYS_H_
#define PASSLIB_BINDINGS_ARRAYS_H_

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "library/memory.h"

namespace passlib {

/// Makes an array read-only.
void freeze(const pybind11::array& array);

/// Returns a NumPy array, by a pointer to it, as the owner of its memory. Destroying the last owner
/// requires the GIL.
std::shared_ptr<const void> ownerOf(const pybind11::array& array);

/// Whether two arrays are equal in type, shape and every bit.
bool sameContent(const pybind11::array& left, const pybind11::array& right);

/// Returns a read-only array of memory that `owner` keeps. Files have very many: no lists are made.
pybind11::array viewOf(const void* data, const pybind11::dtype& type,
                       const std::vector<int64_t>& shape, const pybind11::object& owner);

/// Returns the elements of a type smaller than a byte, each a byte of the array, two in a byte: the
/// first one in the lower half, as ONNX has them.
pybind11::array packed(const pybind11::array& array);

/// Returns the bytes of a buffer as an array, which owns the memory.
pybind11::array ownedBytes(Buffer buffer);

/// An array of a type and a shape, which owns the memory of a buffer that is as large.
pybind11::array ownedArray(Buffer buffer, const pybind11::dtype& type,
                           const std::vector<int64_t>& shape);

}  // namespace passlib

#endif  // PASSLIB_BINDINGS_ARRAYS_H_
