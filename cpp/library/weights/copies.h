// Copies of arrays that a pass may write to.
#ifndef PASSLIB_LIBRARY_WEIGHTS_COPIES_H_
#define PASSLIB_LIBRARY_WEIGHTS_COPIES_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "library/file_mapping.h"

namespace passlib {

/// How arrays are lent to a call.
enum class Lending {
  kNothing,   ///< names, shapes and types alone
  kOnDemand,  ///< those that the pass asks for, to be read
  kWhole      ///< all, in memory that it may write to
};

/// Copies of arrays for one call. Small ones lie together; of large ones in mapped files, only the
/// pages that a pass writes to are copied.
class Copies {
 public:
  void reserve(std::size_t count) { copies_.reserve(count); }
  /// Adds an array. `place`: its number, for the caller. `aligned`: whether it lies as its elements
  /// need.
  void add(std::size_t place, const char* original, std::size_t size, bool aligned);
  /// Makes the copies. Throws std::bad_alloc, std::system_error.
  void make();

  std::size_t count() const { return copies_.size(); }
  std::size_t place(std::size_t number) const { return copies_[number].place; }
  char* data(std::size_t number) const { return copies_[number].data; }
  std::size_t size(std::size_t number) const { return copies_[number].size; }
  /// Whether a copy differs in any bit from its original.
  bool differs(std::size_t number) const;
  /// Returns a copy in memory that outlives this object.
  std::shared_ptr<const char> kept(std::size_t number) const;

 private:
  struct Copy {
    std::size_t place;
    const char* original;
    std::size_t size;  ///< in bytes
    bool aligned;
    char* data;
    Lender::Loan loan;                ///< of the file's pages, if there is one
    std::shared_ptr<const char> own;  ///< the memory, if it is neither a loan nor small
  };
  std::vector<Copy> copies_;
  std::unique_ptr<char[]> small_;
};

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_WEIGHTS_COPIES_H_
