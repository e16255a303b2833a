// Operators that move elements and compute none.
#include <climits>

#include "facts/operators/common.h"

namespace passlib::facts {
namespace {

constexpr int64_t kFar = (int64_t{1} << 31) - 1;  // ends from here on are beyond any axis

/// Content of the same elements in another shape.
void keepItems(NodeView& node) { node.out(0).content = node.in(0).content; }

void reshape(NodeView& node) {
  node.set(0, node.in(0).type);
  node.out(0).least = node.in(0).least;
  const int64_t keeps_zero = node.integer("allowzero", 0);
  require(keeps_zero == 0 || keeps_zero == 1);
  std::vector<Dim> target;
  if (node.opset() < 5) {
    const auto stated = node.integers("shape");
    require(stated.has_value());
    target.assign(stated->begin(), stated->end());
  } else if (const std::vector<Dim>* found = node.items(1)) {
    target = *found;
  } else {
    const Shape& lengths = node.shape(1, 1);
    require(lengths[0].isNumber() && lengths[0].number() >= 0 &&
            lengths[0].number() <= static_cast<int64_t>(kMostElements));
    target.assign(static_cast<std::size_t>(lengths[0].number()), Dim());
  }
  const bool ranked = node.in(0).shape.has_value();
  if (ranked && keeps_zero == 0) {  // no axis has a size that 0 could stand for
    for (std::size_t axis = node.in(0).rank(); axis < target.size(); ++axis)
      node.need(target[axis]);
  }
  const Dim total = ranked ? product(*node.in(0).shape) : Dim();
  Shape made;
  std::optional<std::size_t> open;
  bool one_open = true;
  for (std::size_t axis = 0; axis < target.size(); ++axis) {
    const Dim& wanted = target[axis];
    Dim there;
    if (ranked && axis < node.in(0).rank()) there = (*node.in(0).shape)[axis];
    // For 0 the result would have the size that is there, and elements where the input has none.
    if (keeps_zero == 0 && there.isKnown() && total.isKnown() && atLeast(there, 1) &&
        wanted.isSymbolic() && quotient(total, wanted).isKnown()) {
      node.need(wanted);
    }
    if (wanted.is(0) && keeps_zero == 0) {
      require(!ranked || axis < node.in(0).rank());
      made.push_back(there);
    } else if (wanted.is(-1)) {
      one_open = one_open && !open;
      open = axis;
      made.emplace_back();
    } else if (wanted.isNumber()) {
      require(wanted.number() >= 0);
      made.push_back(wanted);
    } else if (wanted.isSymbolic() && atLeast(wanted, 0) &&
               (keeps_zero == 1 || node.isPositive(wanted) ||
                (there.isKnown() && quotient(there, wanted).isKnown()))) {
      // Else it might be 0, which stands for the size that is there.
      made.push_back(wanted);
    } else {
      made.emplace_back();
    }
  }
  std::size_t unknown = 0;
  for (const Dim& dim : made) unknown += dim.isKnown() ? 0 : 1;
  if (ranked && unknown == 1 && one_open) {
    Dim others = 1;
    std::size_t place = 0;
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (made[i].isKnown()) {
        others = others * made[i];
      } else {
        place = i;
      }
    }
    if (node.isPositive(others)) {
      made[place] = total.isNumber() ? quotient(total, others) : wholeQuotient(total, others);
    } else if (open && *open == place) {
      // The model fails if one of the others is 0.
      made[place] = quotient(total, others);
    }
  }
  node.setShape(0, std::move(made));
  keepItems(node);
}

/// Returns the places in one tensor of the elements of another: `first` for its first element, and
/// an offset for each step along an axis.
std::vector<std::ptrdiff_t> placesOf(const Shape& sizes, std::size_t count, int64_t first,
                                     const std::vector<int64_t>& offsets) {
  std::vector<std::ptrdiff_t> places;
  std::vector<int64_t> index(sizes.size(), 0);
  for (std::size_t i = 0; i < count; ++i) {
    int64_t place = first;
    for (std::size_t k = 0; k < sizes.size(); ++k) place += index[k] * offsets[k];
    places.push_back(static_cast<std::ptrdiff_t>(place));
    for (std::size_t k = sizes.size(); k-- > 0;) {
      if (++index[k] < sizes[k].number()) break;
      index[k] = 0;
    }
  }
  return places;
}

void transpose(NodeView& node) {
  node.set(0, node.in(0).type);
  node.out(0).least = node.in(0).least;
  const auto stated = node.integers("perm");
  if (!node.in(0).shape && stated) {
    node.setShape(0, Shape(stated->size()));
    return;
  }
  const Shape& shape = node.shape(0);
  std::vector<std::size_t> order;
  if (stated) {
    require(stated->size() == shape.size());
    std::vector<bool> seen(shape.size(), false);
    for (const int64_t axis : *stated) {
      order.push_back(axisOf(axis, shape.size()));
      require(!seen[order.back()]);
      seen[order.back()] = true;
    }
  } else {
    for (std::size_t i = shape.size(); i-- > 0;) order.push_back(i);
  }
  Shape made;
  for (const std::size_t axis : order) made.push_back(shape[axis]);
  const auto count = fewElements(made);
  if (node.in(0).content != nullptr && count) {
    const std::vector<std::size_t> strides = stridesOf(shape);
    std::vector<int64_t> offsets;
    for (const std::size_t axis : order) offsets.push_back(static_cast<int64_t>(strides[axis]));
    pickItems(node, placesOf(made, *count, 0, offsets));
  }
  node.setShape(0, std::move(made));
}

void squeeze(NodeView& node) {
  node.set(0, node.in(0).type);
  node.out(0).least = node.in(0).least;
  const Shape& shape = node.shape(0);
  const auto axes = listOf(node, "axes", 1);
  Shape made;
  if (!axes || axes->empty()) {
    require(isStatic(shape));
    for (const Dim& dim : shape) {
      if (!dim.is(1)) made.push_back(dim);
    }
  } else {
    const std::vector<bool> gone = flagsOf(*axes, shape.size());
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (!gone[i]) made.push_back(shape[i]);
    }
  }
  node.setShape(0, std::move(made));
  keepItems(node);
}

void unsqueeze(NodeView& node) {
  node.set(0, node.in(0).type);
  node.out(0).least = node.in(0).least;
  const Shape& shape = node.shape(0);
  const auto axes = listOf(node, "axes", 1);
  require(axes && axes->size() <= kMostAxes);
  const std::size_t rank = shape.size() + axes->size();
  const std::vector<bool> added = flagsOf(*axes, rank);
  require(static_cast<std::size_t>(std::count(added.begin(), added.end(), true)) == axes->size());
  Shape made;
  std::size_t next = 0;
  for (std::size_t i = 0; i < rank; ++i) made.push_back(added[i] ? Dim(1) : shape.at(next++));
  node.setShape(0, std::move(made));
  keepItems(node);
}

void flatten(NodeView& node) {
  node.set(0, node.in(0).type);
  node.out(0).least = node.in(0).least;
  if (!node.in(0).shape) {
    node.setShape(0, Shape(2));
    return;
  }
  const Shape& shape = node.shape(0);
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t axis = node.integer("axis", 1);
  require(axis >= -rank && axis <= rank);
  if (axis < 0) axis += rank;
  const auto at = static_cast<std::size_t>(axis);
  node.setShape(0, {productOf(shape, 0, at), productOf(shape, at, shape.size())});
  keepItems(node);
}

void expand(NodeView& node) {
  node.set(0, node.in(0).type);
  node.out(0).least = node.in(0).least;
  const Shape& shape = node.shape(0);
  std::vector<Dim> target;
  if (const std::vector<Dim>* found = node.items(1)) {
    target = *found;
  } else {
    const Shape& lengths = node.shape(1, 1);
    require(lengths[0].isNumber() && lengths[0].number() >= 0 &&
            lengths[0].number() <= static_cast<int64_t>(kMostElements));
    target.assign(static_cast<std::size_t>(lengths[0].number()), Dim());
  }
  Shape made = broadcast(shape, target);
  const auto count = fewElements(made);
  if (node.in(0).content != nullptr && count) {
    std::vector<std::ptrdiff_t> places;
    forEachBroadcast(made, {&shape}, [&](const std::vector<std::size_t>& from) {
      places.push_back(static_cast<std::ptrdiff_t>(from[0]));
    });
    pickItems(node, places);
  }
  node.setShape(0, std::move(made));
}

void tile(NodeView& node) {
  node.set(0, node.in(0).type);
  const Shape& shape = node.shape(0);
  Shape made(shape.size());
  if (node.opset() < 6) {
    const auto axis = node.integerOf(2);
    const std::vector<Dim>* times = node.items(1);
    if (axis && times != nullptr && times->size() == 1) {
      made = shape;
      const std::size_t at = axisOf(*axis, shape.size());
      made[at] = made[at] * times->front();
    }
  } else if (const std::vector<Dim>* times = node.items(1)) {
    require(times->size() == shape.size());
    for (std::size_t i = 0; i < shape.size(); ++i) made[i] = shape[i] * (*times)[i];
    const auto count = fewElements(made);
    if (shape.size() == 1 && shape[0].isNumber() && node.in(0).content != nullptr && count) {
      std::vector<std::ptrdiff_t> places;
      for (std::size_t i = 0; i < *count; ++i) {
        places.push_back(
            static_cast<std::ptrdiff_t>(i % static_cast<std::size_t>(shape[0].number())));
      }
      pickItems(node, places);
    }
  }
  node.setShape(0, std::move(made));
}

void joinItems(NodeView& node) {
  const bool real = isReal(node.in(0).type);
  auto made = std::make_shared<Content>();
  bool all_reals = true;
  bool some = false;
  for (std::size_t i = 0; i < node.count(); ++i) {
    const auto count = fewElements(*node.in(i).shape);
    const Content* part = node.in(i).content.get();
    if (!count || made->items.size() + *count > kMostElements) return;
    if (part == nullptr || (part->items.empty() && *count != 0)) {
      if (real) return;
      made->items.resize(made->items.size() + *count);
      continue;
    }
    some = true;
    made->items.insert(made->items.end(), part->items.begin(), part->items.end());
    made->divisors.insert(made->divisors.end(), part->divisors.begin(), part->divisors.end());
    all_reals = all_reals && part->reals.size() == part->items.size();
    made->reals.insert(made->reals.end(), part->reals.begin(), part->reals.end());
  }
  if (!all_reals) made->reals.clear();
  if (some) node.out(0).content = std::move(made);
}

void concat(NodeView& node) {
  node.set(0, node.in(0).type);
  for (std::size_t i = 1; i < node.count() && node.out(0).type == kUnknownType; ++i) {
    node.set(0, node.in(i).type);
  }
  std::size_t rank = 0;
  bool found = false;
  bool all = true;
  for (std::size_t i = 0; i < node.count(); ++i) {
    if (!node.in(i).shape) {
      all = false;
      continue;
    }
    require(node.in(i).isTensor() && (!found || node.in(i).rank() == rank));
    rank = node.in(i).rank();
    found = true;
  }
  require(found && rank > 0);
  const std::size_t along = axisOf(node.integer("axis", 1), rank);
  Shape made(rank);
  if (all) {
    for (std::size_t axis = 0; axis < rank; ++axis) {
      Dim total = 0;
      bool empty = false;
      bool empty_only = true;
      Dim known;
      Dim first = (*node.in(0).shape)[axis];
      for (std::size_t i = 0; i < node.count(); ++i) {
        const Dim& dim = (*node.in(i).shape)[axis];
        total = total + dim;
        empty = empty || dim.is(0);
        empty_only = empty_only && dim.is(0);
        if (dim.isNumber() && !dim.is(0) && !known.isKnown()) known = dim;
      }
      // ONNX Runtime passes over empty values, whatever their other dimensions are.
      made[axis] = axis == along     ? total
                   : known.isKnown() ? known
                   : !empty          ? first
                   : empty_only      ? Dim(0)
                                     : Dim();
    }
  }
  if (rank == 1 && all) joinItems(node);
  node.setShape(0, std::move(made));
}

void split(NodeView& node) {
  for (std::size_t i = 0; i < node.outputs(); ++i) node.set(i, node.in(0).type);
  const Shape& shape = node.shape(0);
  const std::size_t axis = axisOf(node.integer("axis", 0), shape.size());
  const auto parts = static_cast<int64_t>(node.outputs());
  std::vector<Dim> sizes(node.outputs());
  std::optional<std::vector<int64_t>> stated = node.integers("split");
  const bool computed = !stated && node.has(1);
  if (stated) {
    sizes.assign(stated->begin(), stated->end());
  } else if (computed) {
    if (const std::vector<Dim>* found = node.items(1)) sizes = *found;
  } else {
    const Dim& size = shape[axis];
    const Dim each = quotient(size, parts);
    if (each.isKnown()) {
      std::fill(sizes.begin(), sizes.end(), each);
    } else if (size.isNumber() && node.integer("num_outputs")) {
      const int64_t most = (size.number() + parts - 1) / parts;
      const int64_t last = size.number() - most * (parts - 1);
      if (last >= 0) {  // else no runtime splits it
        std::fill(sizes.begin(), sizes.end(), most);
        sizes.back() = last;
      }
    }
  }
  require(sizes.size() == node.outputs());
  const Content* content = node.in(0).content.get();
  std::size_t first = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Shape made = shape;
    made[axis] = sizes[i];
    if (content != nullptr && shape.size() == 1 && sizes[i].isNumber() && sizes[i].number() >= 0 &&
        content->divisors.empty() && content->reals.empty()) {
      const std::size_t end = first + static_cast<std::size_t>(sizes[i].number());
      require(end <= content->items.size());
      node.setItems(i, std::vector<Dim>(content->items.begin() + static_cast<std::ptrdiff_t>(first),
                                        content->items.begin() + static_cast<std::ptrdiff_t>(end)));
      first = end;
    } else {
      content = nullptr;
    }
    node.setShape(i, std::move(made));
  }
}

struct Cut {
  Dim start = 0;
  Dim end;
  Dim step = 1;
};

/// The number of elements of a slice of an axis; its first element, if that is a number.
Dim cutSize(const Dim& size, const Cut& cut, std::optional<int64_t>* first) {
  if (!cut.step.isNumber() || cut.step.is(0)) return {};
  const int64_t step = cut.step.number();
  if (step < 0 && (cut.end.is(INT64_MAX) || cut.end.is(kFar))) return {};
  if (size.isNumber() && cut.start.isNumber() && cut.end.isNumber()) {
    const int64_t length = size.number();
    int64_t start = cut.start.number();
    int64_t end = cut.end.number();
    if (start < 0) start += length;
    if (end < 0) end += length;
    if (step > 0) {
      start = std::clamp<int64_t>(start, 0, length);
      end = std::clamp<int64_t>(end, 0, length);
      *first = start;
      return end > start ? (end - start - 1) / step + 1 : 0;
    }
    start = std::clamp<int64_t>(start, 0, std::max<int64_t>(length - 1, 0));
    end = std::clamp<int64_t>(end, -1, length);
    *first = start;
    if (step == INT64_MIN) return start > end ? 1 : 0;
    return start > end && length > 0 ? (start - end - 1) / -step + 1 : 0;
  }
  if (step != 1) {
    if (step > 1 && cut.start.is(0) && cut.end.isNumber() && cut.end.number() >= kFar) {
      return ceilQuotient(size, step);
    }
    return {};
  }
  if (!cut.start.isKnown() || !cut.end.isKnown()) return {};
  const Dim start = cut.start.isNumber() && cut.start.number() < 0 ? size + cut.start : cut.start;
  Dim end = cut.end.isNumber() && cut.end.number() < 0 ? size + cut.end : cut.end;
  if ((end.isNumber() && end.number() >= kFar) || atLeast(end - size, 0)) end = size;
  if (start.is(0) && atLeast(end, 0)) {
    *first = 0;
    return minimum(end, size);
  }
  if (atLeast(start, 0) && atLeast(end - start, 0) && atLeast(size - end, 0)) return end - start;
  return {};
}

void slice(NodeView& node) {
  node.set(0, node.in(0).type);
  node.out(0).least = node.in(0).least;
  const Shape& shape = node.shape(0);
  const auto itemsOf = [&](std::string_view key, std::size_t number, std::vector<Dim>* found) {
    if (const auto stated = node.integers(key)) {
      found->assign(stated->begin(), stated->end());
      return true;
    }
    if (node.opset() < 10 || !node.has(number)) return false;
    const std::vector<Dim>* items = node.items(number);
    if (items != nullptr) {
      *found = *items;
    } else {
      const std::optional<Shape>& length = node.in(number).shape;
      require(length && length->size() == 1 && (*length)[0].isNumber() &&
              (*length)[0].number() >= 0 && (*length)[0].number() <= 64);
      found->assign(static_cast<std::size_t>((*length)[0].number()), Dim());
    }
    return true;
  };
  std::vector<Dim> starts;
  std::vector<Dim> ends;
  std::vector<Dim> axes;
  std::vector<Dim> steps;
  Shape open(shape.size());
  try {
    require(itemsOf("starts", 1, &starts) && itemsOf("ends", 2, &ends));
    if (!itemsOf("axes", 3, &axes)) {
      for (std::size_t i = 0; i < starts.size(); ++i) axes.emplace_back(static_cast<int64_t>(i));
    }
    if (!itemsOf("steps", 4, &steps)) steps.assign(starts.size(), 1);
    require(starts.size() == ends.size() && axes.size() == ends.size() &&
            steps.size() == ends.size());
    for (const Dim& axis : axes) require(axis.isNumber());
  } catch (const Unknowable&) {
    node.setShape(0, std::move(open));
    return;
  }
  Shape made = shape;
  std::vector<Cut> cuts(shape.size());
  std::vector<std::optional<int64_t>> firsts(shape.size(), 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = axisOf(axes[i].number(), shape.size());
    cuts[axis] = {starts[i], ends[i], steps[i]};
    firsts[axis].reset();
    made[axis] = cutSize(shape[axis], cuts[axis], &firsts[axis]);
  }
  const auto count = fewElements(made);
  if (node.in(0).content != nullptr && count && isStatic(shape)) {
    const std::vector<std::size_t> strides = stridesOf(shape);
    int64_t first = 0;
    std::vector<int64_t> offsets;
    for (std::size_t k = 0; k < made.size(); ++k) {
      require(*count == 0 || firsts[k].has_value());
      const int64_t stride = static_cast<int64_t>(strides[k]);
      first += firsts[k].value_or(0) * stride;
      // The step of a single element may be of any size.
      offsets.push_back(made[k].number() > 1 ? cuts[k].step.number() * stride : 0);
    }
    pickItems(node, placesOf(made, *count, first, offsets));
  }
  node.setShape(0, std::move(made));
}

void gather(NodeView& node) {
  node.set(0, node.in(0).type);
  node.out(0).least = node.in(0).least;
  const Shape& shape = node.shape(0);
  const Shape& places = node.shape(1);
  require(!shape.empty());
  const std::size_t axis = axisOf(node.integer("axis", 0), shape.size());
  Shape made(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis));
  made.insert(made.end(), places.begin(), places.end());
  made.insert(made.end(), shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, shape.end());
  const auto count = fewElements(made);
  const auto indices = node.integersOf(1);
  if (indices && !indices->empty()) node.need(shape[axis]);
  if (node.in(0).content != nullptr && count && indices && isStatic(shape)) {
    const auto inner = static_cast<std::size_t>(productOf(shape, axis + 1, shape.size()).number());
    const int64_t size = shape[axis].number();
    std::vector<std::ptrdiff_t> from;
    for (std::size_t i = 0; i < *count; ++i) {
      const std::size_t outer = i / inner / indices->size();
      int64_t index = (*indices)[i / inner % indices->size()];
      if (index < 0) index += size;
      if (index < 0 || index >= size) {
        node.setShape(0, std::move(made));
        return;
      }
      from.push_back(static_cast<std::ptrdiff_t>(
          (outer * static_cast<std::size_t>(size) + static_cast<std::size_t>(index)) * inner +
          i % inner));
    }
    pickItems(node, from);
  }
  node.setShape(0, std::move(made));
}

void gatherElements(NodeView& node) {
  node.set(0, node.in(0).type);
  node.out(0).shape = node.in(1).shape;
}

void gatherNd(NodeView& node) {
  node.set(0, node.in(0).type);
  const Shape& data = node.shape(0);
  const Shape& indices = node.shape(1);
  const auto batch = node.integer("batch_dims", 0);
  require(!indices.empty() && indices.back().isNumber() && batch >= 0 && batch <= 64);
  const Dim last = indices.back() + Dim(batch);
  require(last.isNumber() && last.number() >= 0 &&
          last.number() <= static_cast<int64_t>(data.size()));
  Shape made(indices.begin(), indices.end() - 1);
  made.insert(made.end(), data.begin() + last.number(), data.end());
  node.setShape(0, std::move(made));
}

void pad(NodeView& node) {
  node.set(0, node.in(0).type);
  const Shape& shape = node.shape(0);
  const std::size_t rank = shape.size();
  std::vector<Dim> pads;
  bool known = true;
  if (const auto stated = node.integers(node.opset() < 2 ? "paddings" : "pads")) {
    pads.assign(stated->begin(), stated->end());
  } else if (const std::vector<Dim>* found = node.items(1)) {
    pads = *found;
  } else {
    known = false;
  }
  Shape made = shape;
  if (node.has(3)) {
    const auto axes = node.integersOf(3);
    if (!axes || !known) {
      node.setShape(0, Shape(rank));
      return;
    }
    require(pads.size() == 2 * axes->size());
    flagsOf(*axes, rank);
    for (std::size_t i = 0; i < axes->size(); ++i) {
      Dim& dim = made[axisOf((*axes)[i], rank)];
      dim = dim + pads[i] + pads[i + axes->size()];
    }
  } else if (known) {
    require(pads.size() == 2 * rank);
    for (std::size_t i = 0; i < rank; ++i) made[i] = made[i] + pads[i] + pads[i + rank];
  } else {
    made.assign(rank, Dim());
  }
  node.setShape(0, std::move(made));
}

void depthToSpace(NodeView& node) {
  node.set(0, node.in(0).type);
  if (!node.in(0).shape) {
    node.setShape(0, Shape(4));
    return;
  }
  const Shape& shape = node.shape(0, 4);
  const int64_t size = node.integer("blocksize", 0);
  require(size > 0 && size < (1 << 30));
  if (node.op() == "DepthToSpace") {
    node.setShape(0, {shape[0], wholeQuotient(shape[1], size * size), shape[2] * Dim(size),
                      shape[3] * Dim(size)});
  } else {
    node.setShape(0, {shape[0], shape[1] * Dim(size * size), wholeQuotient(shape[2], size),
                      wholeQuotient(shape[3], size)});
  }
}

void unmoved(NodeView& node) { likeInput(node); }

void compress(NodeView& node) {
  node.set(0, node.in(0).type);
  const auto axis = node.integer("axis");
  if (!axis) {
    node.setShape(0, Shape(1));
    return;
  }
  Shape made = node.shape(0);
  made[axisOf(*axis, made.size())] = Dim();
  node.setShape(0, std::move(made));
}

void oneHot(NodeView& node) {
  node.set(0, node.in(2).type);
  Shape made = node.shape(0);
  require(!made.empty());
  const std::size_t at = axisOf(node.integer("axis", -1), made.size() + 1);
  Dim depth;
  if (const std::vector<Dim>* found = node.items(1)) {
    require(found->size() == 1);
    depth = found->front();
  } else if (const auto reals = node.realsOf(1)) {
    if (reals->size() == 1 && (*reals)[0] >= 0 && (*reals)[0] < 1e15) {
      depth = static_cast<int64_t>((*reals)[0]);
    }
  }
  if (depth.isSymbolic() && !atLeast(depth, 0)) depth = Dim();
  made.insert(made.begin() + static_cast<std::ptrdiff_t>(at), depth);
  node.setShape(0, std::move(made));
}

void unique(NodeView& node) {
  node.set(0, node.in(0).type);
  for (std::size_t i = 1; i < 4; ++i) node.set(i, kInt64, Shape(1));
  const auto axis = node.integer("axis");
  if (!axis) {
    node.setShape(0, Shape(1));
    if (node.in(0).shape) node.setShape(2, {product(*node.in(0).shape)});
    return;
  }
  if (!node.in(0).shape) return;
  Shape made = node.shape(0);
  const std::size_t at = axisOf(*axis, made.size());
  node.setShape(2, {made[at]});
  made[at] = Dim();
  node.setShape(0, std::move(made));
}

void nonZero(NodeView& node) {
  node.set(0, kInt64, Shape(2));
  // ONNX Runtime takes a scalar for a vector of one element.
  if (node.in(0).shape && node.in(0).rank() > 0) {
    node.setShape(0, {static_cast<int64_t>(node.in(0).rank()), Dim()});
  }
  node.out(0).least = 0;
}

void cropOrPad(NodeView& node) {
  node.set(0, node.in(0).type);
  const Shape& shape = node.shape(0);
  Shape made = shape;
  const std::vector<Dim>* wanted = node.items(1);
  std::vector<int64_t> axes;
  if (auto stated = node.integers("axes")) {
    axes = std::move(*stated);
  } else {
    for (std::size_t i = 0; i < shape.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  flagsOf(axes, shape.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    Dim size;
    if (wanted != nullptr) {
      require(wanted->size() == axes.size());
      size = (*wanted)[i];
    }
    if (!atLeast(size, 0)) {
      if (size.isNumber()) {
        made.assign(shape.size(), Dim());
        break;
      }
      size = Dim();
    }
    made[axisOf(axes[i], shape.size())] = size;
  }
  node.setShape(0, std::move(made));
}

}  // namespace

std::vector<Entry> families::movement() {
  return {{"Reshape", reshape},
          {"Transpose", transpose},
          {"Squeeze", squeeze},
          {"Unsqueeze", unsqueeze},
          {"Flatten", flatten},
          {"Expand", expand},
          {"Tile", tile},
          {"Concat", concat},
          {"Split", split},
          {"Slice", slice},
          {"Gather", gather},
          {"GatherElements", gatherElements},
          {"GatherND", gatherNd},
          {"Scatter", unmoved},
          {"ScatterElements", unmoved},
          {"ScatterND", unmoved},
          {"TensorScatter", unmoved},
          {"ReverseSequence", unmoved},
          {"Trilu", unmoved},
          {"Pad", pad},
          {"DepthToSpace", depthToSpace},
          {"SpaceToDepth", depthToSpace},
          {"Compress", compress},
          {"OneHot", oneHot},
          {"Unique", unique},
          {"NonZero", nonZero},
          {"CenterCropPad", cropOrPad}};
}

}  // namespace passlib::facts
