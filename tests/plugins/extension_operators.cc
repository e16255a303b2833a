// Operators named and used as those of MXNet's example libraries: the rectifier, and the
// transposition of sparse matrices, with and without a state.
#include <algorithm>
#include <utility>

#include "lib_api.h"

using namespace mxnet::ext;

namespace {

typedef std::unordered_map<std::string, std::string> Attributes;
typedef std::vector<unsigned int> Shape;
typedef std::vector<MXTensor> Tensors;

MXReturnValue parseAttrs(const Attributes&, int* num_inputs, int* num_outputs) {
  *num_inputs = 1;
  *num_outputs = 1;
  return MX_SUCCESS;
}

MXReturnValue sameType(const Attributes&, std::vector<int>* in, std::vector<int>* out) {
  out->at(0) = in->at(0);
  return MX_SUCCESS;
}

template <MXStorageType storage>
MXReturnValue storageOf(const Attributes&, std::vector<int>* in, std::vector<int>* out) {
  if (in->at(0) != storage) {
    MX_ERROR_MSG << "this operator takes storage " << storage << ", not " << in->at(0);
    return MX_FAIL;
  }
  out->at(0) = storage;
  return MX_SUCCESS;
}

MXReturnValue sameShape(const Attributes&, std::vector<Shape>* in, std::vector<Shape>* out) {
  out->at(0) = in->at(0);
  return MX_SUCCESS;
}

MXReturnValue turnedShape(const Attributes&, std::vector<Shape>* in, std::vector<Shape>* out) {
  const Shape& shape = in->at(0);
  out->at(0) = {shape.at(1), shape.at(0)};
  return MX_SUCCESS;
}

MXReturnValue rectify(const Attributes&, Tensors* in, Tensors* out, const OpResource&) {
  const float* from = in->at(0).data<float>();
  std::transform(from, from + in->at(0).size(), out->at(0).data<float>(),
                 [](float x) { return std::max(x, 0.0f); });
  return MX_SUCCESS;
}

/// One stored number of a matrix: where it stands, and the number.
typedef std::pair<std::pair<int64_t, int64_t>, float> Stored;

std::vector<Stored> storedNumbers(MXTensor* matrix) {
  const MXSparse* sparse = matrix->data<MXSparse>();
  const float* numbers = static_cast<const float*>(sparse->data);
  const int64_t width = matrix->shape[1];
  std::vector<Stored> found;
  if (matrix->stype == kRowSparseStorage) {
    for (int64_t k = 0; k < sparse->indices_len; ++k) {
      for (int64_t column = 0; column < width; ++column) {
        const float number = numbers[k * width + column];
        if (number != 0) found.push_back({{sparse->indices[k], column}, number});
      }
    }
    return found;
  }
  for (int64_t row = 0; row < matrix->shape[0]; ++row) {
    for (int64_t k = sparse->indptr[row]; k < sparse->indptr[row + 1]; ++k) {
      found.push_back({{row, sparse->indices[k]}, numbers[k]});
    }
  }
  return found;
}

void storeCompressed(const std::vector<Stored>& numbers, MXTensor* matrix,
                     const OpResource& resource) {
  const int64_t rows = matrix->shape[0];
  MXSparse* sparse = matrix->data<MXSparse>();
  resource.alloc_sparse(sparse, 0, static_cast<int>(numbers.size()), static_cast<int>(rows + 1));
  std::fill(sparse->indptr, sparse->indptr + rows + 1, 0);
  for (size_t k = 0; k < numbers.size(); ++k) {
    static_cast<float*>(sparse->data)[k] = numbers[k].second;
    sparse->indices[k] = numbers[k].first.second;
    ++sparse->indptr[numbers[k].first.first + 1];
  }
  for (int64_t row = 0; row < rows; ++row) sparse->indptr[row + 1] += sparse->indptr[row];
}

void storeRows(const std::vector<Stored>& numbers, MXTensor* matrix, const OpResource& resource) {
  const int64_t width = matrix->shape[1];
  std::vector<int64_t> rows;
  for (const Stored& stored : numbers) rows.push_back(stored.first.first);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  MXSparse* sparse = matrix->data<MXSparse>();
  resource.alloc_sparse(sparse, 0, static_cast<int>(rows.size()));
  float* data = static_cast<float*>(sparse->data);
  std::fill(data, data + static_cast<int64_t>(rows.size()) * width, 0.0f);
  std::copy(rows.begin(), rows.end(), sparse->indices);
  for (const Stored& stored : numbers) {
    const int64_t place =
        std::lower_bound(rows.begin(), rows.end(), stored.first.first) - rows.begin();
    data[place * width + stored.first.second] = stored.second;
  }
}

MXReturnValue transpose(const Attributes&, Tensors* in, Tensors* out, const OpResource& resource) {
  std::vector<Stored> numbers = storedNumbers(&in->at(0));
  for (Stored& stored : numbers) std::swap(stored.first.first, stored.first.second);
  std::sort(numbers.begin(), numbers.end());
  const bool rows = in->at(0).stype == kRowSparseStorage;
  (rows ? storeRows : storeCompressed)(numbers, &out->at(0), resource);
  return MX_SUCCESS;
}

class Transposition : public CustomStatefulOp {
 public:
  MXReturnValue Forward(Tensors* in, Tensors* out, const OpResource& resource) override {
    return transpose(Attributes(), in, out, resource);
  }
};

MXReturnValue createState(const Attributes&, const MXContext&, const std::vector<Shape>&,
                          const std::vector<int>, CustomStatefulOp** state) {
  *state = CustomStatefulOp::create<Transposition>();
  return MX_SUCCESS;
}

}  // namespace

REGISTER_OP(my_relu)
    .setForward(rectify, "cpu")
    .setParseAttrs(parseAttrs)
    .setInferType(sameType)
    .setInferShape(sameShape);

REGISTER_OP(my_transposecsr)
    .setForward(transpose, "cpu")
    .setParseAttrs(parseAttrs)
    .setInferType(sameType)
    .setInferSType(storageOf<kCSRStorage>)
    .setInferShape(turnedShape);

REGISTER_OP(my_state_transposecsr)
    .setCreateOpState(createState, "cpu")
    .setParseAttrs(parseAttrs)
    .setInferType(sameType)
    .setInferSType(storageOf<kCSRStorage>)
    .setInferShape(turnedShape);

REGISTER_OP(my_transposerowsp)
    .setForward(transpose, "cpu")
    .setParseAttrs(parseAttrs)
    .setInferType(sameType)
    .setInferSType(storageOf<kRowSparseStorage>)
    .setInferShape(turnedShape);

REGISTER_OP(my_state_transposerowsp)
    .setCreateOpState(createState, "cpu")
    .setParseAttrs(parseAttrs)
    .setInferType(sameType)
    .setInferSType(storageOf<kRowSparseStorage>)
    .setInferShape(turnedShape);

MXReturnValue initialize(int) { return MX_SUCCESS; }
