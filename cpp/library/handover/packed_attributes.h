// Attributes of nodes in one block of memory, as a library returns them.
#ifndef PASSLIB_LIBRARY_HANDOVER_PACKED_ATTRIBUTES_H_
#define PASSLIB_LIBRARY_HANDOVER_PACKED_ATTRIBUTES_H_

#include <cstddef>
#include <cstdint>

namespace passlib {

/// Throws GraphError unless the `count` words at `packed` are what FlatNode::packed says.
void checkPackedAttributes(const uint32_t* packed, std::size_t count);

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_HANDOVER_PACKED_ATTRIBUTES_H_
