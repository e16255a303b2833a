// Names that nothing else has.
#ifndef PASSLIB_ONNX_NAMING_FRESH_NAMES_H_
#define PASSLIB_ONNX_NAMING_FRESH_NAMES_H_

#include <cstdint>
#include <string>

#include "onnx/reading/name_map.h"
#include "onnx/wire/arena.h"

namespace passlib::onnx {

using NameSet = NameMap<bool>;

/// Gives names that are not in use yet, in constant time each on average.
class FreshNames {
 public:
  /// `base`: names in use, or null. New names are kept in `arena`.
  FreshNames(const NameSet* base, Arena* arena) : base_(base), arena_(arena) {}

  bool isUsed(Bytes name) const {
    return used_.find(name) != nullptr || (base_ != nullptr && base_->find(name) != nullptr);
  }
  void use(Bytes name) {
    if (base_ == nullptr || base_->find(name) == nullptr) used_.insert(name, true);
  }

  /// Claims a name: `wish` itself if it is free, or `wish` followed by a number.
  Bytes fresh(Bytes wish) {
    Bytes name = wish;
    uint32_t& count = *counts_.insert(wish, 0).first;
    while (isUsed(name)) {
      name = arena_->emplace_back(std::string(wish) + "_" + std::to_string(++count));
    }
    use(name);
    return name;
  }

 private:
  const NameSet* base_;
  Arena* arena_;
  NameSet used_;
  NameMap<uint32_t> counts_;
};

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_NAMING_FRESH_NAMES_H_
