// Weights rounded to 8 or 4 bits, in blocks that share a scale.
#ifndef PASSLIB_MOVES_ROUNDING_H_
#define PASSLIB_MOVES_ROUNDING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "header.h"

namespace passlib::moves {

/// The integers of a weight.
struct IntegerForm {
  int bits;        ///< 8 or 4
  bool symmetric;  ///< without zero points: the range is centred on 0

  int lowest() const { return symmetric ? 1 - (1 << (bits - 1)) : 0; }
  int highest() const { return (1 << (bits - (symmetric ? 1 : 0))) - 1; }
};

/// An array as lines of elements: in memory, element `k` of the line `(o, i)` is number
/// `(o * length + k) * inner + i`, and this line is number `o * inner + i`. Each line consists of
/// blocks, which share a scale; the last one may be incomplete, or larger than the line.
struct Lines {
  int64_t outer;
  int64_t length;
  int64_t inner;
  int64_t block;

  int64_t count() const { return outer * inner; }
  int64_t size() const { return count() * length; }
  int64_t blocksOfLine() const { return (length - 1) / block + 1; }
  int64_t blocks() const { return count() * blocksOfLine(); }
};

/// A rounded weight, line by line.
struct RoundedWeight {
  Lines lines;
  std::unique_ptr<unsigned char[]> integers;  ///< two's complement
  std::vector<float> scales;                  ///< by block; numbers that the weight's type has
  std::vector<unsigned char> zeros;           ///< by block; empty if symmetric
  double largest_error;
  double relative_error;  ///< of the root of the sum of squares
};

/// Rounds an array of float32, float16 or bfloat16 with at least one element. Returns nothing if an
/// element, or one of the rounded numbers, is not finite.
///
/// Computes what NumPy would, bit for bit: scales in the type of the array, halves rounded to even,
/// products in single precision, errors in double precision, sums pairwise.
std::optional<RoundedWeight> roundedWeight(const mxnet::ext::MXTensor& array, const Lines& lines,
                                           const IntegerForm& form);

/// Copies bytes from the order of lines to that of memory.
void copyInPlace(const unsigned char* by_line, const Lines& lines, unsigned char* target);

}  // namespace passlib::moves

#endif  // PASSLIB_MOVES_ROUNDING_H_
