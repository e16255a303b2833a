// Shapes as the ABI has them.
#ifndef PASSLIB_LIBRARY_OPERATORS_SHAPES_H_
#define PASSLIB_LIBRARY_OPERATORS_SHAPES_H_

#include <string>
#include <utility>
#include <vector>

#include "library/library.h"
#include "library/memory.h"

namespace passlib {

/// Extents of one array. None: unknown rank, or a scalar.
using Extents = std::vector<unsigned int>;
/// An unknown extent, in both directions.
constexpr unsigned int kUnknownExtent = 0xFFFFFFFFU;

/// Shapes that a library allocated: an array of arrays, and their lengths.
class ReturnedShapes {
 public:
  ReturnedShapes(const Library& library, int count) : library_(library), count_(count) {}
  ~ReturnedShapes() {
    if (!complete_) return;
    for (int i = 0; i < count_ && shapes_ != nullptr; ++i) library_.release(shapes_[i]);
    library_.release(shapes_);
    library_.release(dims_);
  }
  ReturnedShapes(const ReturnedShapes&) = delete;
  ReturnedShapes& operator=(const ReturnedShapes&) = delete;

  unsigned int*** shapes() { return &shapes_; }
  int** dims() { return &dims_; }
  /// Takes ownership after a successful call; after a failure the arrays may be incomplete.
  void complete() { complete_ = true; }

  /// Copies the shapes unless `problem` has text; invalid shapes are described in `problem`.
  std::vector<Extents> take(const char* kind, std::string* problem) const {
    std::vector<Extents> result(static_cast<std::size_t>(count_));
    if (!problem->empty()) return result;
    if (count_ > 0 && (shapes_ == nullptr || dims_ == nullptr)) {
      *problem = std::string("returns no shapes for its ") + kind + "s";
      return result;
    }
    for (int i = 0; i < count_ && problem->empty(); ++i) {
      const std::string which = std::string(kind) + " " + std::to_string(i);
      if (dims_[i] < 0 || dims_[i] > kMostDims) {
        *problem = "reports that its " + which + " has " + std::to_string(dims_[i]) +
                   " dimensions; 0 to " + std::to_string(kMostDims) + " are possible";
      } else if (dims_[i] > 0 && shapes_[i] == nullptr) {
        *problem = "returns no shape for its " + which;
      } else if (dims_[i] > 0) {
        result[static_cast<std::size_t>(i)].assign(shapes_[i], shapes_[i] + dims_[i]);
      }
    }
    return result;
  }

 private:
  const Library& library_;
  int count_;
  unsigned int** shapes_ = nullptr;
  int* dims_ = nullptr;
  bool complete_ = false;
};

/// Copies of shapes as the entry points take them, which libraries may write to.
class ShapeColumns {
 public:
  explicit ShapeColumns(std::vector<Extents> shapes) : shapes_(std::move(shapes)) {
    for (Extents& shape : shapes_) {
      pointers_.push_back(shape.data());
      dims_.push_back(static_cast<int>(shape.size()));
    }
  }
  unsigned int** shapes() { return pointers_.data(); }
  int* dims() { return dims_.data(); }
  int count() const { return static_cast<int>(shapes_.size()); }

 private:
  std::vector<Extents> shapes_;
  std::vector<unsigned int*> pointers_;
  std::vector<int> dims_;
};

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_OPERATORS_SHAPES_H_
