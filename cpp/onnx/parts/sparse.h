// Sparse tensors of a file.
#ifndef PASSLIB_ONNX_PARTS_SPARSE_H_
#define PASSLIB_ONNX_PARTS_SPARSE_H_

#include <vector>

#include "onnx/wire/arena.h"
#include "onnx/wire/numbers.h"

namespace passlib::onnx {

/// A SparseTensorProto.
struct SparseTensor {
  Bytes values;
  Bytes indices;
  std::vector<int64_t> dims;
};

inline SparseTensor readSparse(Bytes message, Arena* arena) {
  SparseTensor sparse;
  Message values;
  Message indices;
  Field field;
  for (Fields fields(message); fields.next(&field);) {
    if (field.number == numbers::kSparseDims) {
      forEachVarint(field,
                    [&](uint64_t size) { sparse.dims.push_back(static_cast<int64_t>(size)); });
    } else if (field.type == kBytes && field.number == numbers::kValues) {
      values.add(field.body, arena);
    } else if (field.type == kBytes && field.number == numbers::kIndices) {
      indices.add(field.body, arena);
    }
  }
  sparse.values = values.bytes();
  sparse.indices = indices.bytes();
  return sparse;
}

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_PARTS_SPARSE_H_
