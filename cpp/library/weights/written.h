// Scaled arrays as they are written.
#ifndef PASSLIB_LIBRARY_WEIGHTS_WRITTEN_H_
#define PASSLIB_LIBRARY_WEIGHTS_WRITTEN_H_

#include "library/weights/scaled.h"
#include "onnx/wire/computed.h"

namespace passlib {

/// An array that a pass scaled, written without having been in memory as a whole.
class WrittenScaled : public onnx::Computed {
 public:
  explicit WrittenScaled(const Scaled& elements) : elements_(elements) {}
  std::size_t size() const override { return elements_.size(); }
  void compute(std::size_t offset, std::size_t size, char* target) const override {
    elements_.compute(offset, size, target);
  }

 private:
  const Scaled& elements_;
};

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_WEIGHTS_WRITTEN_H_
