// The buffers of an ARK file, and what has been written to them.
#ifndef PASSLIB_DIALECTS_ARK_MEMORY_H_
#define PASSLIB_DIALECTS_ARK_MEMORY_H_

#include <cstdint>
#include <vector>

#include "dialects/ark/file.h"
#include "dialects/ark/ops.h"
#include "dialects/index.h"

namespace passlib::ark {

constexpr int32_t kNone = -1;

struct Buffer {
  bool is_input = false;      ///< read before it is written, and not written by other ranks
  int32_t root = kNone;       ///< the node of its content before the model runs
  int32_t described = kNone;  ///< a tensor in it that no op returns
  bool has_several = false;   ///< whether there is another one
  Tensors parts;              ///< results that have been written to it and not replaced
};

class Memory {
 public:
  /// `makers`: the unit of the op that returns each tensor, or kNone.
  Memory(const Ops& ops, const std::vector<int32_t>& makers, const Schema& schema);

  /// The buffer of a tensor, by number.
  Buffer& of(int32_t tensor) {
    return buffers_[static_cast<std::size_t>(places_[static_cast<std::size_t>(tensor)])];
  }

  /// Notes that an op has written a result.
  void write(int32_t result);

 private:
  void findInputs(const Ops& ops);
  /// Bytes of the array that contains a tensor.
  int64_t sizeOf(const Tensor& tensor) const;

  const std::vector<Tensor>& tensors_;
  const Schema& schema_;
  std::vector<int32_t> places_;  // of the buffers of tensors
  std::vector<Buffer> buffers_;
  std::size_t steps_ = 0;
};

}  // namespace passlib::ark

#endif  // PASSLIB_DIALECTS_ARK_MEMORY_H_
