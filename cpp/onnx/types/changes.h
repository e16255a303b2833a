// Changes of a pass to the constants of the file.
#ifndef PASSLIB_ONNX_TYPES_CHANGES_H_
#define PASSLIB_ONNX_TYPES_CHANGES_H_

#include <vector>

#include "onnx/original/originals.h"

namespace passlib::onnx {

/// Sets of originals.
class Changes {
 public:
  explicit Changes(std::size_t count) : flags_(count, 0) {}

  /// Notes new elements. `retyped`: of another type or shape. `shapes`: the old ones are those of
  /// a scalar or a vector, which may determine a shape; matrices never do.
  void add(const Original& original, bool retyped, bool shapes) {
    flags_[original.index] |=
        static_cast<unsigned char>(kChanged | (retyped ? kRetyped : 0) | (shapes ? kShapes : 0));
  }
  bool isChanged(const Original& original) const { return has(original, kChanged); }
  bool isRetyped(const Original& original) const { return has(original, kRetyped); }
  bool mayShape(const Original& original) const { return has(original, kShapes); }

 private:
  enum : unsigned char { kChanged = 1, kRetyped = 2, kShapes = 4 };
  bool has(const Original& original, unsigned char flag) const {
    return (flags_[original.index] & flag) != 0;
  }
  std::vector<unsigned char> flags_;
};

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_TYPES_CHANGES_H_
