// Bytes that are computed when they are written.
#ifndef PASSLIB_ONNX_WIRE_COMPUTED_H_
#define PASSLIB_ONNX_WIRE_COMPUTED_H_

#include <cstddef>

namespace passlib::onnx {

/// Bytes that lie nowhere as a whole.
class Computed {
 public:
  virtual ~Computed() = default;

  virtual std::size_t size() const = 0;
  /// Computes `size` bytes from `offset` on, both multiples of 8 or the end.
  /// May throw std::system_error.
  virtual void compute(std::size_t offset, std::size_t size, char* target) const = 0;
};

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_WIRE_COMPUTED_H_
