// Orders in which every item comes after those that it needs.
#ifndef PASSLIB_ONNX_NAMING_ORDER_H_
#define PASSLIB_ONNX_NAMING_ORDER_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace passlib::onnx {

using Rank = int64_t;
constexpr Rank kNoRank = -1;

/// Orders items so that each comes after those it needs, and otherwise by rank. `needs` are pairs
/// of an item and of one that needs it. An item without rank comes directly after the last one that
/// it needs. Throws GraphError if items need each other in a circle.
std::vector<uint32_t> stableOrder(const std::vector<std::pair<uint32_t, uint32_t>>& needs,
                                  std::vector<Rank> ranks);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_NAMING_ORDER_H_
