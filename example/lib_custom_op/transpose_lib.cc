// Transposition of matrices, dense ones and sparse ones in compressed rows (CSR), as a custom
// operator. A sparse matrix has a sparse result; the zeros are never stored.
#include <algorithm>

#include "lib_api.h"

using namespace mxnet::ext;

namespace {

typedef std::unordered_map<std::string, std::string> Attributes;
typedef std::vector<unsigned int> Shape;

MXReturnValue parseAttrs(const Attributes&, int* num_inputs, int* num_outputs) {
  *num_inputs = 1;
  *num_outputs = 1;
  return MX_SUCCESS;
}

MXReturnValue inferType(const Attributes&, std::vector<int>* in_types,
                        std::vector<int>* out_types) {
  if (in_types->at(0) == -1) in_types->at(0) = kFloat32;
  if (in_types->at(0) != kFloat32) {
    MX_ERROR_MSG << "transpose takes float32, not dtype " << in_types->at(0);
    return MX_FAIL;
  }
  out_types->at(0) = kFloat32;
  return MX_SUCCESS;
}

// The result is stored as the input is.
MXReturnValue inferSType(const Attributes&, std::vector<int>* in_storage_types,
                         std::vector<int>* out_storage_types) {
  if (in_storage_types->at(0) == kRowSparseStorage) {
    MX_ERROR_MSG << "transpose takes dense matrices and those in compressed rows";
    return MX_FAIL;
  }
  out_storage_types->at(0) = in_storage_types->at(0);
  return MX_SUCCESS;
}

MXReturnValue inferShape(const Attributes&, std::vector<Shape>* in_shapes,
                         std::vector<Shape>* out_shapes) {
  const Shape& shape = in_shapes->at(0);
  if (shape.size() != 2) {
    MX_ERROR_MSG << "transpose takes a matrix; the input has " << shape.size() << " dimensions";
    return MX_FAIL;
  }
  out_shapes->at(0) = {shape[1], shape[0]};
  return MX_SUCCESS;
}

void transposeDense(const float* from, float* to, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      to[column * rows + row] = from[row * columns + column];
    }
  }
}

// Counts the values of each column, which become the lengths of the rows, then puts every value in
// its row. The time is proportional to the number of values, rows and columns.
void transposeRows(const MXSparse& from, MXSparse* to, int64_t rows, int64_t columns) {
  std::fill(to->indptr, to->indptr + columns + 1, 0);
  for (int64_t k = 0; k < from.data_len; ++k) ++to->indptr[from.indices[k] + 1];
  for (int64_t column = 0; column < columns; ++column) {
    to->indptr[column + 1] += to->indptr[column];
  }
  std::vector<int64_t> next(to->indptr, to->indptr + columns);
  const float* values = static_cast<const float*>(from.data);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t k = from.indptr[row]; k < from.indptr[row + 1]; ++k) {
      const int64_t place = next[from.indices[k]]++;
      static_cast<float*>(to->data)[place] = values[k];
      to->indices[place] = row;
    }
  }
}

MXReturnValue forward(const Attributes&, std::vector<MXTensor>* inputs,
                      std::vector<MXTensor>* outputs, const OpResource& resource) {
  MXTensor& input = inputs->at(0);
  MXTensor& output = outputs->at(0);
  const int64_t rows = input.shape[0], columns = input.shape[1];
  if (input.stype == kDefaultStorage) {
    transposeDense(input.data<float>(), output.data<float>(), rows, columns);
    return MX_SUCCESS;
  }
  const MXSparse* from = input.data<MXSparse>();
  MXSparse* to = output.data<MXSparse>();
  resource.alloc_sparse(to, 0, static_cast<int>(from->data_len), static_cast<int>(columns + 1));
  transposeRows(*from, to, rows, columns);
  return MX_SUCCESS;
}

}  // namespace

REGISTER_OP(my_transpose)
    .setForward(forward, "cpu")
    .setParseAttrs(parseAttrs)
    .setInferType(inferType)
    .setInferSType(inferSType)
    .setInferShape(inferShape);

MXReturnValue initialize(int version) {
  if (version >= 10700) return MX_SUCCESS;
  MX_ERROR_MSG << "this library needs MXNet 1.7 or later, or passlib; not version " << version;
  return MX_FAIL;
}
