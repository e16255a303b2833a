#include "rules/folding.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <tuple>
#include <utility>

namespace passlib::rules {
namespace {

using mxnet::ext::MXTensor;
using Shape = std::vector<int64_t>;

bool isDense(const MXTensor* tensor) {
  return tensor != nullptr && tensor->data_ptr != nullptr &&
         tensor->stype == mxnet::ext::kDefaultStorage && bytesOf(tensor->dtype) != 0 &&
         tensor->ctx.dev_type.compare(0, 3, "cpu") == 0;
}

std::vector<int64_t> strides(const Shape& shape) {
  std::vector<int64_t> made(shape.size());
  int64_t step = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    made[axis] = step;
    step *= shape[axis];
  }
  return made;
}

/// Visits the elements of a shape in order: visit(position, first, second) with the places that two
/// lists of steps lead to.
template <typename Visit>
void walk(const Shape& shape, const std::vector<int64_t>& first, const std::vector<int64_t>& second,
          Visit visit) {
  struct Axis {
    int64_t size;
    int64_t first;
    int64_t second;
    int64_t index;
  };
  // From the innermost on, without those of 1; axes whose steps go on from one to the next are one.
  std::vector<Axis> axes = {{1, 0, 0, 0}};
  int64_t count = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    count *= shape[axis];
    if (shape[axis] == 1) continue;
    Axis& inner = axes.back();
    if (inner.size == 1) {
      inner = {shape[axis], first[axis], second[axis], 0};
    } else if (first[axis] == inner.first * inner.size &&
               second[axis] == inner.second * inner.size) {
      inner.size *= shape[axis];
    } else {
      axes.push_back({shape[axis], first[axis], second[axis], 0});
    }
  }
  int64_t one = 0;
  int64_t other = 0;
  const Axis inner = axes.front();
  for (int64_t pos = 0; pos < count;) {
    for (int64_t each = 0; each < inner.size; ++each, ++pos) {
      visit(static_cast<std::size_t>(pos), static_cast<std::size_t>(one + each * inner.first),
            static_cast<std::size_t>(other + each * inner.second));
    }
    for (std::size_t axis = 1; axis < axes.size(); ++axis) {
      Axis& outer = axes[axis];
      one += outer.first;
      other += outer.second;
      if (++outer.index < outer.size) break;
      one -= outer.first * outer.size;
      other -= outer.second * outer.size;
      outer.index = 0;
    }
  }
}

/// The steps of a shape as part of a larger one that it broadcasts to.
std::vector<int64_t> broadcastSteps(const Shape& shape, const Shape& whole) {
  const std::vector<int64_t> own = strides(shape);
  std::vector<int64_t> made(whole.size(), 0);
  const std::size_t shift = whole.size() - shape.size();
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] != 1) made[axis + shift] = own[axis];
  }
  return made;
}

bool broadcast(const Shape& left, const Shape& right, Shape* whole) {
  const std::size_t rank = std::max(left.size(), right.size());
  whole->assign(rank, 1);
  for (std::size_t back = 1; back <= rank; ++back) {
    const int64_t one = back <= left.size() ? left[left.size() - back] : 1;
    const int64_t other = back <= right.size() ? right[right.size() - back] : 1;
    if (one != other && one != 1 && other != 1) return false;
    (*whole)[rank - back] = one == 1 ? other : one;
  }
  return true;
}

/// The elements of a vector of integers, such as a shape that is an input.
std::optional<Shape> integersOf(const MXTensor& tensor) {
  const bool is_index = tensor.dtype == mxnet::ext::kInt64 || tensor.dtype == mxnet::ext::kInt32;
  if (!is_index || tensor.shape.size() != 1) return std::nullopt;
  Shape made;
  const std::size_t count = static_cast<std::size_t>(tensor.size());
  for (std::size_t pos = 0; pos < count; ++pos) made.push_back(integerAt(tensor, pos));
  return made;
}

/// The elements of most weights; null of other types, and where they are not aligned.
const float* floatsOf(const MXTensor& tensor) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(tensor.data_ptr) % alignof(float) == 0;
  return tensor.dtype == mxnet::ext::kFloat32 && aligned
             ? static_cast<const float*>(tensor.data_ptr)
             : nullptr;
}

bool foldArithmetic(const std::string& op, const MXTensor& left, const MXTensor& right,
                    const Allocate& allocate) {
  if (left.dtype != right.dtype || !isReal(onnxType(left.dtype))) return false;
  Shape whole;
  if (!broadcast(left.shape, right.shape, &whole)) return false;
  const MXTensor* made = allocate(whole, left.dtype);
  if (made == nullptr) return false;
  const char kind = op[0];  // of Add, Sub, Mul, Div
  // Double has so many bits that the second rounding, to the type, changes nothing.
  const auto result = [kind](double one, double other) {
    return kind == 'A'   ? one + other
           : kind == 'S' ? one - other
           : kind == 'M' ? one * other
                         : one / other;
  };
  const std::vector<int64_t> own = broadcastSteps(left.shape, whole);
  const std::vector<int64_t> its = broadcastSteps(right.shape, whole);
  const float* const ones = floatsOf(left);
  const float* const others = floatsOf(right);
  if (ones != nullptr && others != nullptr) {
    float* const target = static_cast<float*>(made->data_ptr);
    walk(whole, own, its, [&](std::size_t pos, std::size_t first, std::size_t second) {
      target[pos] = static_cast<float>(
          result(static_cast<double>(ones[first]), static_cast<double>(others[second])));
    });
    return true;
  }
  walk(whole, own, its, [&](std::size_t pos, std::size_t first, std::size_t second) {
    setElementAt(*made, pos, result(elementAt(left, first), elementAt(right, second)));
  });
  return true;
}

void copyElement(const MXTensor& from, std::size_t source, const MXTensor& target,
                 std::size_t pos) {
  const std::size_t size = bytesOf(from.dtype);
  std::memcpy(static_cast<char*>(target.data_ptr) + pos * size,
              static_cast<const char*>(from.data_ptr) + source * size, size);
}

/// Max or Min of two numbers.
bool foldExtreme(const std::string& op, const MXTensor& left, const MXTensor& right,
                 const Allocate& allocate) {
  const int type = onnxType(left.dtype);
  if (left.dtype != right.dtype || left.size() != 1 || right.size() != 1) return false;
  if (!isReal(type) && (!isWhole(type) || left.dtype == mxnet::ext::kUint64)) return false;
  const double one = elementAt(left, 0);
  const double other = elementAt(right, 0);
  if (isReal(type) && (std::isnan(one) || std::isnan(other))) return false;
  Shape whole;
  broadcast(left.shape, right.shape, &whole);
  const MXTensor* made = allocate(whole, left.dtype);
  if (made == nullptr) return false;
  // Either of -0.0 and 0.0 is right.
  const bool is_less = isReal(type) ? one < other : integerAt(left, 0) < integerAt(right, 0);
  copyElement(is_less == (op == "Max") ? right : left, 0, *made, 0);
  return true;
}

bool foldUnary(const std::string& op, const MXTensor& input, const Allocate& allocate) {
  if (!isReal(onnxType(input.dtype))) return false;
  const MXTensor* made = allocate(input.shape, input.dtype);
  if (made == nullptr) return false;
  const std::size_t count = static_cast<std::size_t>(input.size());
  for (std::size_t pos = 0; pos < count; ++pos) {
    const double each = elementAt(input, pos);
    setElementAt(*made, pos, op == "Neg" ? -each : op == "Sqrt" ? std::sqrt(each) : 1.0 / each);
  }
  return true;
}

/// Adds the elements along axes, which the result does not have, in double precision.
bool foldSum(const MXTensor& input, const Shape& axes, const Allocate& allocate) {
  if (!isReal(onnxType(input.dtype))) return false;
  const int64_t rank = static_cast<int64_t>(input.shape.size());
  std::vector<char> is_gone(input.shape.size(), 0);
  for (const int64_t axis : axes) {
    if (axis < -rank || axis >= rank) return false;
    is_gone[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)] = 1;
  }
  Shape shape;
  for (std::size_t axis = 0; axis < is_gone.size(); ++axis) {
    if (is_gone[axis] == 0) shape.push_back(input.shape[axis]);
  }
  std::vector<int64_t> steps(is_gone.size(), 0);
  int64_t step = 1;
  for (std::size_t axis = is_gone.size(); axis-- > 0;) {
    if (is_gone[axis] != 0) continue;
    steps[axis] = step;
    step *= input.shape[axis];
  }
  const MXTensor* made = allocate(shape, input.dtype);
  if (made == nullptr) return false;
  std::vector<double> sums(static_cast<std::size_t>(made->size()), 0);
  walk(input.shape, steps, steps, [&](std::size_t pos, std::size_t target, std::size_t) {
    sums[target] += elementAt(input, pos);
  });
  for (std::size_t pos = 0; pos < sums.size(); ++pos) setElementAt(*made, pos, sums[pos]);
  return true;
}

bool foldTranspose(const MXTensor& input, Shape order, const Allocate& allocate) {
  const std::size_t rank = input.shape.size();
  if (order.size() != rank) return false;
  const std::vector<int64_t> own = strides(input.shape);
  Shape shape;
  std::vector<int64_t> steps;
  std::vector<char> seen(rank, 0);
  for (const int64_t axis : order) {
    if (axis < 0 || axis >= static_cast<int64_t>(rank) || seen[static_cast<std::size_t>(axis)] != 0)
      return false;
    seen[static_cast<std::size_t>(axis)] = 1;
    shape.push_back(input.shape[static_cast<std::size_t>(axis)]);
    steps.push_back(own[static_cast<std::size_t>(axis)]);
  }
  const MXTensor* made = allocate(shape, input.dtype);
  if (made == nullptr) return false;
  walk(shape, steps, steps, [&](std::size_t pos, std::size_t from, std::size_t) {
    copyElement(input, from, *made, pos);
  });
  return true;
}

bool foldReshape(const MXTensor& input, Shape shape, const Allocate& allocate) {
  int64_t count = 1;
  int64_t* open = nullptr;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 0) {
      if (axis >= input.shape.size()) return false;
      shape[axis] = input.shape[axis];
    }
    if (shape[axis] == -1 && open == nullptr) {
      open = &shape[axis];
    } else if (shape[axis] < 0 || __builtin_mul_overflow(count, shape[axis], &count)) {
      return false;
    }
  }
  if (open != nullptr) {
    if (count == 0 || input.size() % count != 0) return false;
    *open = input.size() / count;
    count *= *open;
  }
  if (count != input.size()) return false;
  const MXTensor* made = allocate(shape, input.dtype);
  if (made == nullptr) return false;
  if (count > 0)
    std::memcpy(made->data_ptr, input.data_ptr,
                static_cast<std::size_t>(count) * bytesOf(input.dtype));
  return true;
}

/// The same elements in another shape.
bool foldView(const MXTensor& input, const Shape& shape, const Allocate& allocate) {
  const MXTensor* made = allocate(shape, input.dtype);
  if (made == nullptr) return false;
  if (input.size() > 0)
    std::memcpy(made->data_ptr, input.data_ptr,
                static_cast<std::size_t>(input.size()) * bytesOf(input.dtype));
  return true;
}

/// Which axes of a rank a list names; nothing if it names one twice, or one that is not there.
std::optional<std::vector<char>> axesOf(const Shape& axes, std::size_t rank) {
  std::vector<char> named(rank, 0);
  for (int64_t axis : axes) {
    if (axis < 0) axis += static_cast<int64_t>(rank);
    if (axis < 0 || axis >= static_cast<int64_t>(rank)) return std::nullopt;
    if (std::exchange(named[static_cast<std::size_t>(axis)], 1) != 0) return std::nullopt;
  }
  return named;
}

bool foldSqueeze(const MXTensor& input, const Shape& axes, const Allocate& allocate) {
  const auto gone = axesOf(axes, input.shape.size());
  if (!gone || axes.empty()) return false;
  Shape shape;
  for (std::size_t axis = 0; axis < gone->size(); ++axis) {
    if ((*gone)[axis] == 0) shape.push_back(input.shape[axis]);
    if ((*gone)[axis] != 0 && input.shape[axis] != 1) return false;
  }
  return foldView(input, shape, allocate);
}

bool foldUnsqueeze(const MXTensor& input, const Shape& axes, const Allocate& allocate) {
  const auto added = axesOf(axes, input.shape.size() + axes.size());
  if (!added) return false;
  Shape shape;
  std::size_t next = 0;
  for (const char is_new : *added) shape.push_back(is_new != 0 ? 1 : input.shape[next++]);
  return foldView(input, shape, allocate);
}

/// Takes every element from `starts` to `ends` along axes, in steps forward.
bool foldSlice(const MXTensor& input, const Shape& starts, const Shape& ends, const Shape& axes,
               const Shape& steps, const Allocate& allocate) {
  const std::size_t rank = input.shape.size();
  if (starts.size() != axes.size() || ends.size() != axes.size() || steps.size() != axes.size() ||
      !axesOf(axes, rank)) {
    return false;
  }
  const Shape own = strides(input.shape);
  Shape shape = input.shape;
  Shape places = own;
  int64_t first = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (steps[i] < 1) return false;
    const std::size_t axis =
        static_cast<std::size_t>(axes[i] < 0 ? axes[i] + static_cast<int64_t>(rank) : axes[i]);
    const int64_t size = input.shape[axis];
    const auto bounded = [size](int64_t place) {
      if (place < -size) return int64_t{0};
      return std::min(place < 0 ? place + size : place, size);
    };
    const int64_t start = bounded(starts[i]);
    const int64_t length = bounded(ends[i]) - start;
    shape[axis] = length <= 0 ? 0 : (length - 1) / steps[i] + 1;
    places[axis] = shape[axis] < 2 ? own[axis] : own[axis] * steps[i];
    if (shape[axis] > 0) first += start * own[axis];
  }
  const MXTensor* made = allocate(shape, input.dtype);
  if (made == nullptr) return false;
  walk(shape, places, places, [&](std::size_t pos, std::size_t from, std::size_t) {
    copyElement(input, static_cast<std::size_t>(first) + from, *made, pos);
  });
  return true;
}

bool foldGather(const MXTensor& input, const MXTensor& indices, int64_t axis,
                const Allocate& allocate) {
  const int64_t rank = static_cast<int64_t>(input.shape.size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank ||
      (indices.dtype != mxnet::ext::kInt64 && indices.dtype != mxnet::ext::kInt32)) {
    return false;
  }
  const auto place = input.shape.begin() + axis;
  const int64_t size = *place;
  std::vector<std::size_t> rows;
  for (std::size_t pos = 0; pos < static_cast<std::size_t>(indices.size()); ++pos) {
    const int64_t index = integerAt(indices, pos);
    if (index < -size || index >= size) return false;
    rows.push_back(static_cast<std::size_t>(index < 0 ? index + size : index));
  }
  Shape shape(input.shape.begin(), place);
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), place + 1, input.shape.end());
  const MXTensor* made = allocate(shape, input.dtype);
  if (made == nullptr) return false;
  std::size_t inner = bytesOf(input.dtype);
  for (auto each = place + 1; each != input.shape.end(); ++each)
    inner *= static_cast<std::size_t>(*each);
  const std::size_t block = inner * static_cast<std::size_t>(size);
  const char* source = static_cast<const char*>(input.data_ptr);
  char* target = static_cast<char*>(made->data_ptr);
  const std::size_t bytes = static_cast<std::size_t>(made->size()) * bytesOf(made->dtype);
  for (const char* const end = target + bytes; target != end; source += block) {
    for (const std::size_t row : rows) {
      std::memcpy(target, source + row * inner, inner);
      target += inner;
    }
  }
  return true;
}

/// Converts numbers that the new type has, too, and truth values.
bool foldCast(const MXTensor& input, int64_t to, const Allocate& allocate) {
  const auto isPlain = [](int code) {
    return code == 1 || code == 11 || code == 9 || isWhole(code);
  };
  const int source = onnxType(input.dtype);
  const int target = to > 0 && to < 64 ? static_cast<int>(to) : 0;
  if (!isPlain(source) || !isPlain(target) || input.dtype == mxnet::ext::kUint64) return false;
  const auto isExact = [&](std::size_t pos) {
    const double number = elementAt(input, pos);
    if (target == 9) return !std::isnan(number);
    if (!isReal(source)) {
      const int64_t whole = integerAt(input, pos);
      if (isWhole(target))
        return bytesOf(arrayType(target)) == 8 ? target == 7 || whole >= 0 : fits(number, target);
      // The number itself is rounded to 53 bits.
      return std::fabs(number) < 0x1p63 && static_cast<int64_t>(number) == whole &&
             (target == 11 || static_cast<double>(static_cast<float>(number)) == number);
    }
    if (isWhole(target)) return fits(number, target);
    return target == 11 ? number == number
                        : static_cast<double>(static_cast<float>(number)) == number;
  };
  const std::size_t count = static_cast<std::size_t>(input.size());
  for (std::size_t pos = 0; pos < count; ++pos) {
    if (!isExact(pos)) return false;
  }
  const MXTensor* made = allocate(input.shape, arrayType(target));
  if (made == nullptr) return false;
  for (std::size_t pos = 0; pos < count; ++pos) {
    if (target == 9) {
      setIntegerAt(*made, pos, elementAt(input, pos) != 0 ? 1 : 0);
    } else if (isReal(source) || isReal(target)) {
      setElementAt(*made, pos, elementAt(input, pos));
    } else {
      setIntegerAt(*made, pos, integerAt(input, pos));
    }
  }
  return true;
}

bool foldExpand(const MXTensor& input, const Shape& shape, const Allocate& allocate) {
  Shape whole;
  for (const int64_t size : shape) {
    if (size < 0) return false;
  }
  if (!broadcast(input.shape, shape, &whole)) return false;
  const MXTensor* made = allocate(whole, input.dtype);
  if (made == nullptr) return false;
  const std::vector<int64_t> steps = broadcastSteps(input.shape, whole);
  walk(whole, steps, steps, [&](std::size_t pos, std::size_t from, std::size_t) {
    copyElement(input, from, *made, pos);
  });
  return true;
}

bool foldConcat(const std::vector<const MXTensor*>& inputs, int64_t axis,
                const Allocate& allocate) {
  Shape shape = inputs[0]->shape;
  const int64_t rank = static_cast<int64_t>(shape.size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return false;
  const std::size_t place = static_cast<std::size_t>(axis);
  shape[place] = 0;
  for (const MXTensor* input : inputs) {
    if (input->dtype != inputs[0]->dtype || input->shape.size() != shape.size()) return false;
    for (std::size_t each = 0; each < shape.size(); ++each) {
      if (each != place && input->shape[each] != shape[each]) return false;
    }
    shape[place] += input->shape[place];
  }
  const MXTensor* made = allocate(shape, inputs[0]->dtype);
  if (made == nullptr) return false;
  std::size_t inner = bytesOf(made->dtype);
  for (std::size_t each = place + 1; each < shape.size(); ++each)
    inner *= static_cast<std::size_t>(shape[each]);
  std::size_t outer = 1;
  for (std::size_t each = 0; each < place; ++each) outer *= static_cast<std::size_t>(shape[each]);
  char* target = static_cast<char*>(made->data_ptr);
  for (std::size_t row = 0; row < outer; ++row) {
    for (const MXTensor* input : inputs) {
      const std::size_t bytes = inner * static_cast<std::size_t>(input->shape[place]);
      if (bytes == 0) continue;
      std::memcpy(target, static_cast<const char*>(input->data_ptr) + row * bytes, bytes);
      target += bytes;
    }
  }
  return true;
}

}  // namespace

bool foldNatively(const std::string& op, const std::map<std::string, Value>& settings,
                  const std::vector<const MXTensor*>& inputs, const Allocate& allocate) {
  if (inputs.empty() || !std::all_of(inputs.begin(), inputs.end(), isDense)) return false;
  const MXTensor& input = *inputs[0];
  const auto integers = [&settings](const char* key) -> std::optional<Shape> {
    const auto found = settings.find(key);
    return found == settings.end() ? std::nullopt : found->second.integers();
  };
  const std::size_t count = inputs.size();
  if (count == 2 && settings.empty() && (op == "Add" || op == "Sub" || op == "Mul" || op == "Div"))
    return foldArithmetic(op, input, *inputs[1], allocate);
  if (count == 2 && settings.empty() && (op == "Max" || op == "Min"))
    return foldExtreme(op, input, *inputs[1], allocate);
  if (count == 1 && settings.empty() && (op == "Neg" || op == "Sqrt" || op == "Reciprocal"))
    return foldUnary(op, input, allocate);
  if (op == "Concat" && settings.count("axis") != 0 && settings.at("axis").number())
    return foldConcat(inputs, *settings.at("axis").number(), allocate);
  if (op == "ReduceSum" && count == 1 && settings.count("keepdims") != 0 &&
      settings.at("keepdims").number() == 0 && integers("axes") && !integers("axes")->empty())
    return foldSum(input, *integers("axes"), allocate);
  const auto number = [&settings](const char* key) -> std::optional<int64_t> {
    const auto found = settings.find(key);
    return found == settings.end() ? std::nullopt : found->second.number();
  };
  /// Integers that are an attribute, or an input.
  const auto listed = [&](const char* key, std::size_t place) -> std::optional<Shape> {
    if (settings.count(key) != 0) return integers(key);
    return place < count ? integersOf(*inputs[place]) : std::nullopt;
  };
  if (op == "Identity" && count == 1) return foldView(input, input.shape, allocate);
  if (op == "Cast" && count == 1 && settings.size() == 1 && number("to"))
    return foldCast(input, *number("to"), allocate);
  if (op == "Squeeze" || op == "Unsqueeze") {
    const std::optional<Shape> axes = listed("axes", 1);
    if (!axes || count + settings.size() != 2) return false;
    return op == "Squeeze" ? foldSqueeze(input, *axes, allocate)
                           : foldUnsqueeze(input, *axes, allocate);
  }
  if (op == "Gather") {
    const std::optional<int64_t> axis = settings.empty() ? 0 : number("axis");
    return count == 2 && settings.size() < 2 && axis &&
           foldGather(input, *inputs[1], *axis, allocate);
  }
  if (op == "Slice") {
    const std::optional<Shape> starts = listed("starts", 1);
    const std::optional<Shape> ends = listed("ends", 2);
    if (!starts || !ends) return false;
    Shape axes;
    for (std::size_t i = 0; i < starts->size(); ++i) axes.push_back(static_cast<int64_t>(i));
    Shape steps(starts->size(), 1);
    for (const auto& [key, place, list] : {std::tuple("axes", 3, &axes), {"steps", 4, &steps}}) {
      if (settings.count(key) == 0 && count <= static_cast<std::size_t>(place)) continue;
      const std::optional<Shape> given = listed(key, static_cast<std::size_t>(place));
      if (!given) return false;
      *list = *given;
    }
    return foldSlice(input, *starts, *ends, axes, steps, allocate);
  }
  // A shape is an attribute or the second input.
  const bool is_input = count == 2 && settings.empty();
  if (is_input ? op == "Transpose" : count != 1 || settings.size() > 1) return false;
  if (op == "Transpose") {
    Shape order;
    for (std::size_t axis = input.shape.size(); axis-- > 0;)
      order.push_back(static_cast<int64_t>(axis));
    if (!settings.empty()) {
      const std::optional<Shape> given = integers("perm");
      if (!given) return false;
      order = *given;
    }
    return foldTranspose(input, order, allocate);
  }
  const std::optional<Shape> shape = is_input ? integersOf(*inputs[1]) : integers("shape");
  if (op == "Reshape" && shape) return foldReshape(input, *shape, allocate);
  return op == "Expand" && shape && foldExpand(input, *shape, allocate);
}

}  // namespace passlib::rules
