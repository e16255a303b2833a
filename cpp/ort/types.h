// Shapes in messages.
#ifndef PASSLIB_ORT_TYPES_H_
#define PASSLIB_ORT_TYPES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace passlib {

/// Spells a shape: (2, ?), where -1 is unknown.
std::string spelled(const std::vector<int64_t>& shape);

}  // namespace passlib

#endif  // PASSLIB_ORT_TYPES_H_
