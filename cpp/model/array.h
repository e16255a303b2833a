// Weights of a model.
#ifndef PASSLIB_MODEL_ARRAY_H_
#define PASSLIB_MODEL_ARRAY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/text_table.h"
#include "library/memory.h"
#include "library/weights/scaled.h"
#include "onnx/types/messages.h"

namespace passlib::model {

/// An array that nobody changes. Its elements lie in memory, or are computed when they are needed.
struct Array {
  int32_t type = 0;  ///< ONNX's number of the element type
  std::vector<int64_t> dims;
  onnx::Bytes data;                        ///< in C order, little endian; maybe not aligned
  std::shared_ptr<const void> owner;       ///< of `data`, or of the source of `scaled`
  std::shared_ptr<const Scaled> scaled{};  ///< in place of `data`, unless null
  bool is_state = false;                   ///< an auxiliary state of MXNet

  std::size_t size() const { return scaled != nullptr ? scaled->size() : data.size(); }
};

using Arrays = TextMap<Array>;

/// Returns an array with all elements in memory. Throws std::bad_alloc, std::system_error.
Array computed(const Array& array);

/// Whether two arrays are equal in type, shape and every bit.
bool same(const Array& left, const Array& right);

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_ARRAY_H_
