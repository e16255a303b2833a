// The facts about a value of a graph.
#ifndef PASSLIB_FACTS_FACT_H_
#define PASSLIB_FACTS_FACT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "facts/dim.h"

namespace passlib::facts {

/// Element types, by ONNX's numbers in TensorProto.DataType.
enum Type : int32_t {
  kUnknownType = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBfloat16 = 16,
  kUint4 = 21,
  kInt4 = 22,
};

using Shape = std::vector<Dim>;

/// Larger tensors are not followed: dimensions are few.
constexpr std::size_t kMostElements = 256;
/// No value has more axes.
constexpr std::size_t kMostAxes = 1024;

/// The elements of a small tensor in row-major order.
struct Content {
  /// Integers and booleans, or the numerators of reals. Some may be unknown. Empty if the elements
  /// are reals that are no simple quotients.
  std::vector<Dim> items;
  /// The divisors of reals, each above 0. Empty for integers.
  std::vector<int64_t> divisors;
  /// The elements of a constant of reals.
  std::vector<double> reals;
};

/// A container around a tensor, from the outermost to the innermost.
enum class Wrapper : uint8_t { kSequence, kOptional, kMap };

struct Fact {
  Type type = kUnknownType;  ///< of the elements, within all containers
  /// Whether the value has elements or containers at all; false for an omitted input.
  bool present = true;
  bool constant = false;  ///< the same in every run
  /// Elements are at least this: 0 or 1; -1 if that is not known.
  int8_t least = -1;
  Type key = kUnknownType;        ///< of a map
  std::vector<Wrapper> wrappers;  ///< containers around the tensor
  std::optional<Shape> shape;     ///< of the tensor within; not set if the rank is unknown
  std::shared_ptr<const Content> content;

  /// Whether it is a tensor, or not known to be something else.
  bool isTensor() const { return wrappers.empty(); }
  std::size_t rank() const { return shape->size(); }

  static Fact tensor(Type type) {
    Fact made;
    made.type = type;
    return made;
  }
  static Fact tensor(Type type, Shape shape) {
    Fact made = tensor(type);
    made.shape = std::move(shape);
    return made;
  }
};

bool isInteger(Type type);
bool isReal(Type type);

/// Whether a shape has numbers only.
bool isStatic(const Shape& shape);
/// The number of elements of a shape with numbers only and few elements.
std::optional<std::size_t> fewElements(const Shape& shape);

/// The elements of a small tensor of whole numbers, some of them symbolic; null unless all are
/// known.
const std::vector<Dim>* wholeItems(const Fact& fact);

/// Returns `float[2, N]`, `seq(float[2])`, `?` for unknown parts.
std::string print(const Fact& fact);
std::string print(const Shape& shape);

}  // namespace passlib::facts

#endif  // PASSLIB_FACTS_FACT_H_
