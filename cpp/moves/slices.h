// The parts of their inputs that Slices take.
#ifndef PASSLIB_MOVES_SLICES_H_
#define PASSLIB_MOVES_SLICES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "moves/model.h"

namespace passlib::moves {

/// The part of one axis that a Slice takes.
struct Range {
  int64_t axis;
  int64_t start;
  int64_t end;
  int64_t step;
};
using Ranges = std::vector<Range>;

/// The part of an axis; null if there is none.
Range* rangeOf(Ranges* ranges, int64_t axis);
/// Returns what a Slice, from operator set 10 on, takes of each axis that it states; nothing if
/// that is unknown.
std::optional<Ranges> rangesOf(Model* model, const Node& node);

}  // namespace passlib::moves

#endif  // PASSLIB_MOVES_SLICES_H_
