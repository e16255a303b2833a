// Memory in large pieces, which libraries use as well.
#ifndef PASSLIB_LIBRARY_HANDOVER_LARGE_MEMORY_H_
#define PASSLIB_LIBRARY_HANDOVER_LARGE_MEMORY_H_

#include "header.h"

namespace passlib {

/// Returns functions that get memory and free it. Memory new from the kernel comes page by page,
/// which takes longer than to fill it; for large pieces large pages are asked for.
mxnet::ext::FlatMemory largeMemory();

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_HANDOVER_LARGE_MEMORY_H_
