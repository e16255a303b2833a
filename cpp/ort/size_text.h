// Sizes as texts over the sizes of other arrays, such as `floor((d0 - 3)/2) + 1`.
#ifndef PASSLIB_ORT_SIZE_TEXT_H_
#define PASSLIB_ORT_SIZE_TEXT_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace passlib {

/// A size in the form that facts::print writes: numbers, names, `+ - *`, exact quotients, `floor`
/// and `ceil` of quotients, `min`, `max`.
class SizeText {
 public:
  /// Throws OrtError if the text is not in this form.
  explicit SizeText(std::string_view text);

  const std::string& text() const { return text_; }
  /// The name, if it is nothing but one; else null.
  const std::string* name() const;
  /// Adds its names to `names`.
  void addNames(std::vector<std::string>* names) const;
  /// Computes it. Throws OrtError for an unknown name, overflow, or a quotient that is not exact.
  int64_t evaluate(const std::map<std::string, int64_t>& sizes) const;

 private:
  enum class Step {
    kNumber,
    kName,
    kAdd,
    kSubtract,
    kNegate,
    kMultiply,
    kDivide,
    kFloor,
    kCeil,
    kMin,
    kMax
  };
  struct Item {
    Step step;
    int64_t number = 0;
    std::string name;
  };
  class Reader;

  [[noreturn]] void fail(const std::string& what) const;

  std::string text_;
  std::vector<Item> items_;  ///< in postfix order
};

}  // namespace passlib

#endif  // PASSLIB_ORT_SIZE_TEXT_H_
