// Arrays that passes made of others, computed when somebody needs them.
#ifndef PASSLIB_BINDINGS_WEIGHTS_SCALED_ARRAY_H_
#define PASSLIB_BINDINGS_WEIGHTS_SCALED_ARRAY_H_

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <vector>

#include "library/weights/scaled.h"

namespace passlib {

/// passlib._core.ScaledArray. Keeps the array whose elements it multiplies, which lies in a mapped
/// file.
class ScaledArray {
 public:
  ScaledArray(pybind11::array source, pybind11::dtype type, std::vector<int64_t> shape,
              Scaled elements)
      : source_(std::move(source)),
        type_(std::move(type)),
        shape_(std::move(shape)),
        elements_(std::move(elements)) {}

  const pybind11::dtype& type() const { return type_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  const Scaled& elements() const { return elements_; }

  /// All elements, in an array of their own.
  pybind11::array compute() const;
  /// All elements, which nobody may write to: the same array each time.
  pybind11::array array();

 private:
  pybind11::array source_;
  pybind11::dtype type_;
  std::vector<int64_t> shape_;
  Scaled elements_;
  pybind11::object made_;
};

/// Whether an object is a ScaledArray; most are arrays of NumPy, which is found out faster.
bool isScaled(pybind11::handle object);

/// Adds ScaledArray.
void bindScaledArrays(pybind11::module_* m);

}  // namespace passlib

#endif  // PASSLIB_BINDINGS_WEIGHTS_SCALED_ARRAY_H_
