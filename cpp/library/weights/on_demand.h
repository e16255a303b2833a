// Weights that a pass asks for one by one.
#ifndef PASSLIB_LIBRARY_WEIGHTS_ON_DEMAND_H_
#define PASSLIB_LIBRARY_WEIGHTS_ON_DEMAND_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "library/file_mapping.h"
#include "library/stable_items.h"
#include "library/weights/scaled.h"

namespace passlib {

/// Where the elements of a parameter lie, which may be unaligned.
struct WeightPlace {
  const void* data = nullptr;
  std::size_t size = 0;  ///< in bytes
  int dtype = 0;
};

/// Serves one call of a pass.
class OnDemand {
 public:
  /// Returns the elements of the weight `id`, aligned, in memory that lives as long as this object:
  /// a copy, or pages of a mapped file that are copied when they are written to. Throws
  /// std::bad_alloc.
  const void* read(const WeightPlace& place, std::size_t id);
  /// Returns the ID of a weight whose elements in that memory were changed, or 0.
  std::size_t written() const;

  /// Returns the elements multiplied by factors; nothing if that is not possible.
  static std::optional<Scaled> scaled(const WeightPlace& place, const double* factors,
                                      std::size_t count);

 private:
  struct alignas(64) Line {
    char bytes[64];
  };
  struct Read {
    WeightPlace place;
    std::size_t id;
    const char* data;
    Lender::Loan loan;  ///< of the file's pages, if it is no copy
  };
  std::vector<Read> reads_;
  Lender lender_;
  StableItems<Line> copies_;
};

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_WEIGHTS_ON_DEMAND_H_
