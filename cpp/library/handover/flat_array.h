// The arrays and texts of a graph in the flat form, with every access checked.
#ifndef PASSLIB_LIBRARY_HANDOVER_FLAT_ARRAY_H_
#define PASSLIB_LIBRARY_HANDOVER_FLAT_ARRAY_H_

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "errors.h"
#include "header.h"

namespace passlib {

/// How much memory a library's result can claim to take: as much as this machine has. Whether
/// pointers lead to as many bytes cannot be known, but no number may make the host copy one text
/// again and again until there is no memory left.
class FlatBudget {
 public:
  FlatBudget();
  /// Whether `count` times `size` bytes remain; they are gone then.
  bool spend(uint64_t count, uint64_t size) {
    if (count > left_ / size) return false;
    left_ -= count * size;
    return true;
  }

  /// Returns a text of the result. `what`: "the name". Throws GraphError.
  std::string_view text(const mxnet::ext::FlatText& text, const char* what) {
    if (text.size == 0) return {};
    if (text.data == nullptr || !spend(text.size, 1)) refuseText(text, what);
    return {text.data, static_cast<std::size_t>(text.size)};
  }

 private:
  [[noreturn]] static void refuseText(const mxnet::ext::FlatText& text, const char* what);

  uint64_t left_;
};

/// One of the arrays, taken from its beginning to its end.
template <typename Item>
class FlatArray {
 public:
  /// `what`: its name in FlatModel. Throws GraphError.
  FlatArray(const char* what, const Item* items, uint64_t count, FlatBudget* budget)
      : what_(what), next_(items), left_(count) {
    if (count == 0) return;
    if (items == nullptr) fail(std::to_string(count) + " items, but is null");
    if (reinterpret_cast<uintptr_t>(items) % alignof(Item) != 0) fail("a misaligned address");
    constexpr uint64_t kMost = std::numeric_limits<int>::max();
    if (count > kMost || !budget->spend(count, sizeof(Item))) {
      fail(std::to_string(count) + " items, more than a graph can have on this machine");
    }
  }

  /// Returns the next `count` items. Throws GraphError if there are not as many.
  const Item* take(uint64_t count) {
    if (count > left_) {
      fail(std::to_string(left_) + " items left where " + std::to_string(count) + " are announced");
    }
    left_ -= count;
    if (count == 0) return next_;
    const Item* taken = next_;
    next_ += count;
    return taken;
  }
  /// Throws GraphError if items are left.
  void finish() const {
    if (left_ != 0) fail(std::to_string(left_) + " items that belong to nothing");
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw GraphError("the array '" + std::string(what_) + "' has " + problem);
  }

  const char* what_;
  const Item* next_;
  uint64_t left_;
};

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_HANDOVER_FLAT_ARRAY_H_
