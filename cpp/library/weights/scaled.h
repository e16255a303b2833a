// Arrays whose elements are computed when somebody needs them.
#ifndef PASSLIB_LIBRARY_WEIGHTS_SCALED_H_
#define PASSLIB_LIBRARY_WEIGHTS_SCALED_H_

#include <cstddef>
#include <vector>

namespace passlib {

/// The elements of an array, each of several equal runs of them multiplied by a factor, in double
/// precision. Borrows the array, which need not be aligned, and the file in which it lies.
class Scaled {
 public:
  /// Whether arrays of an element type and a size, in bytes, can be scaled by `count` factors.
  static bool isPossible(int dtype, std::size_t size, std::size_t count);

  /// Only where that is possible.
  Scaled(const void* data, std::size_t size, int dtype, std::vector<double> factors);

  std::size_t size() const { return size_; }
  /// The array.
  const void* source() const { return data_; }
  /// Whether the array lies in a mapped file, and nobody can write to it.
  bool isOfFile() const;

  /// Whether all results are finite. Throws std::system_error if a file cannot be read.
  bool isFinite() const;
  /// Computes `size` bytes from `offset` on, both multiples of an element. Throws
  /// std::system_error if a file cannot be read.
  void compute(std::size_t offset, std::size_t size, void* target) const;

 private:
  class Reader;

  template <typename Element, typename Visit>
  void forEachRun(std::size_t offset, std::size_t size, Visit visit) const;
  template <typename Element>
  bool staysFinite() const;
  template <typename Element>
  void computeAs(std::size_t offset, std::size_t size, char* target) const;

  const char* data_;
  std::size_t size_;
  int dtype_;
  std::size_t run_;  ///< elements that have a factor in common
  std::vector<double> factors_;
};

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_WEIGHTS_SCALED_H_
