// Dimensions: whole numbers, and polynomials over names for those that a model leaves open.
#ifndef PASSLIB_FACTS_DIM_H_
#define PASSLIB_FACTS_DIM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace passlib::facts {

/// A dimension, or an element of a small tensor: a number, a sum of products of names, or unknown.
///
/// Each name stands for a whole number that is at least 0. A quotient that is not exact, and a
/// minimum or maximum, is a name of its own that prints as the expression; equal expressions have
/// equal names. Equality is that of the normal form. A result that overflows int64, or that has too
/// many terms, is unknown.
class Dim {
 public:
  /// Sorted names, each as often as its power.
  using Monomial = std::vector<std::string>;
  /// Sorted by monomial, without factors of 0.
  using Terms = std::vector<std::pair<Monomial, int64_t>>;

  Dim() : number_(kUnknown) {}
  Dim(int64_t number) : number_(number) {}  // NOLINT: implicit
  static Dim named(std::string_view name);

  bool isKnown() const { return terms_ != nullptr || number_ != kUnknown; }
  bool isNumber() const { return terms_ == nullptr && number_ != kUnknown; }
  bool isSymbolic() const { return terms_ != nullptr; }
  /// Whether it is this number.
  bool is(int64_t number) const { return isNumber() && value() == number; }
  /// The number, if it is one.
  int64_t number() const { return value(); }
  /// The terms of a symbolic dimension.
  const Terms& terms() const { return *terms_; }
  /// The name, if it is nothing but one; else null.
  const std::string* name() const;

  /// Unknown dimensions are equal to no other.
  friend bool operator==(const Dim& left, const Dim& right) {
    if (left.terms_ == nullptr || right.terms_ == nullptr) {
      return left.terms_ == right.terms_ && left.isKnown() && left.number_ == right.number_;
    }
    return left.terms_ == right.terms_ || *left.terms_ == *right.terms_;
  }
  friend bool operator!=(const Dim& left, const Dim& right) { return !(left == right); }
  friend Dim operator+(const Dim& left, const Dim& right);
  friend Dim operator-(const Dim& left, const Dim& right);
  friend Dim operator*(const Dim& left, const Dim& right);

 private:
  /// A number that no model has on purpose, and which is unknown where one does.
  static constexpr int64_t kUnknown = -0x6b1f7a3c5e9d2481;
  int64_t value() const { return number_; }
  static Dim make(Terms terms);

  int64_t number_;
  std::shared_ptr<const Terms> terms_;
};

Dim product(const std::vector<Dim>& dims);
/// Returns the quotient if the division is exact whatever the names stand for; else unknown. That
/// the divisor is not 0 is up to the caller.
Dim quotient(const Dim& value, const Dim& divisor);
/// Returns a quotient by a number above 0, rounded down or up. `value` must be at least 0, or a
/// number; else the result is unknown.
Dim floorQuotient(const Dim& value, int64_t divisor);
Dim ceilQuotient(const Dim& value, int64_t divisor);
/// Returns a quotient rounded down of a symbolic dimension that is at least 0 wherever the model
/// runs, and of a number without its fraction.
Dim windowQuotient(const Dim& value, int64_t divisor);
/// Returns a quotient of which only the model knows that it is exact: a name, where it does not
/// follow.
Dim wholeQuotient(const Dim& value, const Dim& divisor);
/// Returns a quotient without its fraction, as ONNX divides integers.
Dim towardsZero(const Dim& value, const Dim& divisor);
/// Unknown unless both are at least 0, or their order is known.
Dim minimum(const Dim& left, const Dim& right);
Dim maximum(const Dim& left, const Dim& right);

/// Whether a dimension is known to be at least this number, whatever the names stand for.
bool atLeast(const Dim& value, int64_t least);
/// Whether two dimensions are known to differ.
bool differ(const Dim& left, const Dim& right);

/// Returns a dimension as text: `3`, `N`, `2*N + M*M - 1`; `?` if it is unknown.
std::string print(const Dim& dim);
/// Reads such a text without brackets: names are letters, digits and `_`, or in double quotes.
/// Unknown if it is not one.
Dim parseDim(std::string_view text);

}  // namespace passlib::facts

#endif  // PASSLIB_FACTS_DIM_H_
