// Arrays that are computed when they are written.
#ifndef PASSLIB_LIBRARY_WEIGHTS_WRITTEN_H_
#define PASSLIB_LIBRARY_WEIGHTS_WRITTEN_H_

#include <cstddef>

#include "library/weights/scaled.h"
#include "onnx/wire/computed.h"
#include "onnx/wire/fields.h"

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

/// Elements smaller than a byte, each a byte, written two in a byte: the first one in the lower
/// half, as ONNX has them.
class WrittenPacked : public onnx::Computed {
 public:
  explicit WrittenPacked(onnx::Bytes elements) : elements_(elements) {}
  std::size_t size() const override { return (elements_.size() + 1) / 2; }
  void compute(std::size_t offset, std::size_t size, char* target) const override {
    const auto half = [this](std::size_t place) {
      return place < elements_.size() ? static_cast<unsigned char>(elements_[place]) & 15U : 0U;
    };
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t first = 2 * (offset + i);
      target[i] = static_cast<char>(half(first) | half(first + 1) << 4U);
    }
  }

 private:
  onnx::Bytes elements_;
};

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_WEIGHTS_WRITTEN_H_
