// Functions that rules of several families share.
#ifndef PASSLIB_FACTS_OPERATORS_COMMON_H_
#define PASSLIB_FACTS_OPERATORS_COMMON_H_

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "facts/node_view.h"
#include "facts/table.h"

namespace passlib::facts {

/// Returns the size of two axes broadcast to each other; unknown if it may be either.
inline Dim broadcastDim(const Dim& left, const Dim& right) {
  if (left == right || right.is(1)) return left;
  if (left.is(1)) return right;
  if (left.isNumber() && right.isNumber()) return {};
  if (left.isNumber()) return left;
  if (right.isNumber()) return right;
  return {};
}

inline Shape broadcast(const Shape& left, const Shape& right) {
  const Shape& longer = left.size() >= right.size() ? left : right;
  const Shape& shorter = left.size() >= right.size() ? right : left;
  Shape made = longer;
  const std::size_t ahead = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    made[ahead + i] = broadcastDim(made[ahead + i], shorter[i]);
  }
  return made;
}

/// Sizes that two values share: the one that is known better.
inline Dim mergeDim(const Dim& left, const Dim& right) {
  if (!left.isKnown() || (!left.isNumber() && right.isNumber())) return right;
  return left;
}

/// The axis after which sizes are multiplied, and such.
inline Dim productOf(const Shape& shape, std::size_t first, std::size_t last) {
  Dim total = 1;
  for (std::size_t i = first; i < last; ++i) total = total * shape[i];
  return total;
}

/// Gives the first output type and shape of an input.
inline void likeInput(NodeView& node, std::size_t number = 0, std::size_t output = 0) {
  const Fact& source = node.in(number);
  Fact& made = node.out(output);
  made.type = source.type;
  made.shape = source.shape;
}

/// Returns the axes in an attribute, or in an input of constants; nothing if both are omitted.
/// Throws Unknowable if they are computed.
inline std::optional<std::vector<int64_t>> listOf(const NodeView& node, std::string_view key,
                                                  std::size_t number) {
  if (auto stated = node.integers(key)) return stated;
  if (!node.has(number)) return std::nullopt;
  auto found = node.integersOf(number);
  require(found.has_value());
  return found;
}

/// Returns flags of the axes that are listed.
inline std::vector<bool> flagsOf(const std::vector<int64_t>& axes, std::size_t rank) {
  std::vector<bool> flags(rank, false);
  for (const int64_t axis : axes) flags[axisOf(axis, rank)] = true;
  return flags;
}

/// The shape of a product of matrices.
Shape matrixProduct(const Shape& left, const Shape& right);

/// A recurrent layer with so many outputs that are last states.
void recurrentLayer(NodeView& node, std::size_t states);
/// A normalization over the last axes, with statistics as outputs 1 and 2.
void normalizeLayer(NodeView& node);

/// The number of elements between neighbours along each axis of a shape of numbers.
inline std::vector<std::size_t> stridesOf(const Shape& shape) {
  std::vector<std::size_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * static_cast<std::size_t>(std::max<int64_t>(shape[i].number(), 0));
  }
  return strides;
}

/// Copies the elements of the first input to a first output whose element `i` is the element
/// `places[i]`; -1 for an unknown one.
inline void pickItems(NodeView& node, const std::vector<std::ptrdiff_t>& places) {
  const Content* source = node.in(0).content.get();
  if (source == nullptr || places.size() > kMostElements) return;
  auto made = std::make_shared<Content>();
  const auto pick = [&places](const auto& from, auto* to) {
    if (from.empty()) return true;
    for (const std::ptrdiff_t place : places) {
      if (place < 0) return false;
      to->push_back(from.at(static_cast<std::size_t>(place)));
    }
    return true;
  };
  const bool complete =
      pick(source->reals, &made->reals) && pick(source->divisors, &made->divisors);
  if (!source->items.empty()) {
    for (const std::ptrdiff_t place : places) {
      made->items.push_back(place < 0 ? Dim() : source->items.at(static_cast<std::size_t>(place)));
    }
  }
  if (complete) node.out(0).content = std::move(made);
}

/// Calls `visit` with the places of the elements of inputs of these shapes for each element of the
/// shape that they are broadcast to.
template <typename Visit>
void forEachBroadcast(const Shape& target, const std::vector<const Shape*>& shapes, Visit visit) {
  const std::size_t rank = target.size();
  std::vector<std::vector<std::size_t>> steps;
  for (const Shape* shape : shapes) {
    std::vector<std::size_t> own(rank, 0);
    const std::vector<std::size_t> strides = stridesOf(*shape);
    for (std::size_t i = 0; i < shape->size(); ++i) {
      if (!(*shape)[i].is(1)) own[rank - shape->size() + i] = strides[i];
    }
    steps.push_back(std::move(own));
  }
  const auto count = fewElements(target);
  std::vector<int64_t> index(rank, 0);
  std::vector<std::size_t> places(shapes.size(), 0);
  for (std::size_t i = 0; count && i < *count; ++i) {
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      places[k] = 0;
      for (std::size_t axis = 0; axis < rank; ++axis) {
        places[k] += static_cast<std::size_t>(index[axis]) * steps[k][axis];
      }
    }
    visit(places);
    for (std::size_t axis = rank; axis-- > 0;) {
      if (++index[axis] < target[axis].number()) break;
      index[axis] = 0;
    }
  }
}

}  // namespace passlib::facts

#endif  // PASSLIB_FACTS_OPERATORS_COMMON_H_
