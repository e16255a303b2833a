#include "model/array.h"

#include <cstring>
#include <utility>

namespace passlib::model {

Array computed(const Array& array) {
  if (array.scaled == nullptr) return array;
  Buffer buffer(array.scaled->size(), false);
  array.scaled->compute(0, buffer.size(), buffer.data());
  const onnx::Bytes data(static_cast<const char*>(buffer.data()), buffer.size());
  return {array.type, array.dims,    data, std::shared_ptr<const void>(buffer.release()),
          nullptr,    array.is_state};
}

bool same(const Array& left, const Array& right) {
  if (left.type != right.type || left.dims != right.dims) return false;
  if (left.scaled != nullptr || right.scaled != nullptr) return left.scaled == right.scaled;
  return left.data.data() == right.data.data() || left.data == right.data;
}

}  // namespace passlib::model
