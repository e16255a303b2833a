// Partitioners in the module passlib._core.
#ifndef PASSLIB_BINDINGS_PARTITION_H_
#define PASSLIB_BINDINGS_PARTITION_H_

#include <pybind11/pybind11.h>

namespace passlib {

void bindPartition(pybind11::module_* m);

}  // namespace passlib

#endif  // PASSLIB_BINDINGS_PARTITION_H_
