// Small arrays that stay where they are, in few pieces of memory.
#ifndef PASSLIB_LIBRARY_STABLE_ITEMS_H_
#define PASSLIB_LIBRARY_STABLE_ITEMS_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

namespace passlib {

/// Memory for many short arrays of plain items, such as the texts and shapes of all weights: one
/// allocation each takes longer than copying them.
template <typename Item>
class StableItems {
 public:
  /// Returns room for `count` items, which stays as long as this object.
  Item* add(std::size_t count) {
    if (count > left_) {
      left_ = std::max(count, kPiece);
      pieces_.emplace_back(new Item[left_]);
      next_ = pieces_.back().get();
    }
    Item* const items = next_;
    next_ += count;
    left_ -= count;
    return items;
  }

 private:
  static constexpr std::size_t kPiece = 4096;

  std::vector<std::unique_ptr<Item[]>> pieces_;
  Item* next_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_STABLE_ITEMS_H_
