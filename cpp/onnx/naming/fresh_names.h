// Names that nothing else has.
#ifndef PASSLIB_ONNX_NAMING_FRESH_NAMES_H_
#define PASSLIB_ONNX_NAMING_FRESH_NAMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/name_map.h"
#include "onnx/original/originals.h"
#include "onnx/wire/arena.h"

namespace passlib::onnx {

using NameSet = NameMap<bool>;

/// Gives names that are not in use yet, in constant time each on average. Names are put into a
/// table when the first one is asked for: most passes need none.
class FreshNames {
 public:
  /// Those of `originals` are in use, unless it is null. New names are kept in `arena`.
  FreshNames(const Originals* originals, Arena* arena) : originals_(originals), arena_(arena) {}

  void use(Bytes name) { waiting_.push_back(name); }

  /// Claims a name: `wish` itself if it is free, or `wish` followed by a number. `wish` must live
  /// as long as this object.
  Bytes fresh(std::string&& wish) = delete;
  Bytes fresh(Bytes wish) {
    for (const Bytes name : waiting_) used_.insert(name, true);
    waiting_.clear();
    Bytes name = wish;
    uint32_t& count = *counts_.insert(wish, 0).first;
    while (isUsed(name)) {
      name = arena_->emplace_back(std::string(wish) + "_" + std::to_string(++count));
    }
    used_.insert(name, true);
    return name;
  }

 private:
  bool isUsed(Bytes name) const {
    return used_.find(name) != nullptr ||
           (originals_ != nullptr && originals_->names().find(name) != nullptr);
  }

  const Originals* originals_;
  Arena* arena_;
  std::vector<Bytes> waiting_;
  NameSet used_;
  NameMap<uint32_t> counts_;
};

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_NAMING_FRESH_NAMES_H_
