// Matrix multiplication as a custom operator, without and with a state.
//
//     a: m x k    b: k x n    out: m x n        float32
#include <iostream>

#include "lib_api.h"

using namespace mxnet::ext;

namespace {

typedef std::unordered_map<std::string, std::string> Attributes;
typedef std::vector<unsigned int> Shape;

// out = a * b, where a(i, j) is a[i * a_row + j * a_column], so that a transposed matrix needs no
// copy.
struct Matrix {
  const float* data;
  int64_t rows, columns, row_step, column_step;
  float at(int64_t i, int64_t j) const { return data[i * row_step + j * column_step]; }
};

Matrix matrixOf(const MXTensor& tensor) {
  return {tensor.data<float>(), tensor.shape[0], tensor.shape[1], tensor.shape[1], 1};
}

Matrix transposed(const Matrix& matrix) {
  return {matrix.data, matrix.columns, matrix.rows, matrix.column_step, matrix.row_step};
}

void multiply(const Matrix& a, const Matrix& b, float* out) {
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < b.columns; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < a.columns; ++k) sum += a.at(i, k) * b.at(k, j);
      out[i * b.columns + j] = sum;
    }
  }
}

MXReturnValue parseAttrs(const Attributes&, int* num_inputs, int* num_outputs) {
  *num_inputs = 2;
  *num_outputs = 1;
  return MX_SUCCESS;
}

MXReturnValue inferType(const Attributes&, std::vector<int>* in_types,
                        std::vector<int>* out_types) {
  for (int& type : *in_types) {
    if (type == -1) type = kFloat32;
    if (type != kFloat32) {
      MX_ERROR_MSG << "gemm multiplies float32 matrices, not dtype " << type;
      return MX_FAIL;
    }
  }
  out_types->at(0) = kFloat32;
  return MX_SUCCESS;
}

MXReturnValue inferShape(const Attributes&, std::vector<Shape>* in_shapes,
                         std::vector<Shape>* out_shapes) {
  const Shape& a = in_shapes->at(0);
  const Shape& b = in_shapes->at(1);
  if (a.size() != 2 || b.size() != 2) {
    MX_ERROR_MSG << "gemm multiplies matrices; the inputs have " << a.size() << " and " << b.size()
                 << " dimensions";
    return MX_FAIL;
  }
  if (a[1] != b[0]) {
    MX_ERROR_MSG << "gemm: " << a[0] << " x " << a[1] << " does not fit " << b[0] << " x " << b[1];
    return MX_FAIL;
  }
  out_shapes->at(0) = {a[0], b[1]};
  return MX_SUCCESS;
}

MXReturnValue forward(const Attributes&, std::vector<MXTensor>* inputs,
                      std::vector<MXTensor>* outputs, const OpResource&) {
  multiply(matrixOf(inputs->at(0)), matrixOf(inputs->at(1)), outputs->at(0).data<float>());
  return MX_SUCCESS;
}

// Inputs are the gradient of the output, a, b, and the output; outputs the gradients of a and b.
MXReturnValue backward(const Attributes&, std::vector<MXTensor>* inputs,
                       std::vector<MXTensor>* outputs, const OpResource&) {
  const Matrix gradient = matrixOf(inputs->at(0));
  const Matrix a = matrixOf(inputs->at(1));
  const Matrix b = matrixOf(inputs->at(2));
  multiply(gradient, transposed(b), outputs->at(0).data<float>());
  multiply(transposed(a), gradient, outputs->at(1).data<float>());
  return MX_SUCCESS;
}

// Reading b column by column is slow for large matrices, so this operator keeps a transposed copy
// in memory that it allocates once.
class PackedGemm : public CustomStatefulOp {
 public:
  PackedGemm(std::size_t size, bool verbose) : packed_(size), verbose_(verbose), calls_(0) {}

  MXReturnValue Forward(std::vector<MXTensor>* inputs, std::vector<MXTensor>* outputs,
                        const OpResource&) override {
    ++calls_;
    if (verbose_) std::cout << "state_gemm: forward number " << calls_ << std::endl;
    const Matrix b = matrixOf(inputs->at(1));
    float* to = packed_.data();
    for (int64_t j = 0; j < b.columns; ++j) {
      for (int64_t k = 0; k < b.rows; ++k) *to++ = b.at(k, j);
    }
    const Matrix packed = {packed_.data(), b.rows, b.columns, 1, b.rows};
    multiply(matrixOf(inputs->at(0)), packed, outputs->at(0).data<float>());
    return MX_SUCCESS;
  }

  MXReturnValue Backward(std::vector<MXTensor>* inputs, std::vector<MXTensor>* outputs,
                         const OpResource& resource) override {
    return backward(Attributes(), inputs, outputs, resource);
  }

 private:
  std::vector<float> packed_;
  bool verbose_;
  int calls_;
};

MXReturnValue createState(const Attributes& attributes, const MXContext&,
                          const std::vector<Shape>& in_shapes, const std::vector<int>,
                          CustomStatefulOp** state) {
  const Shape& b = in_shapes.at(1);
  const bool verbose = attributes.count("verbose") != 0 && attributes.at("verbose") == "True";
  *state = CustomStatefulOp::create<PackedGemm>(std::size_t(b.at(0)) * b.at(1), verbose);
  return MX_SUCCESS;
}

}  // namespace

REGISTER_OP(my_gemm)
    .setForward(forward, "cpu")
    .setBackward(backward, "cpu")
    .setParseAttrs(parseAttrs)
    .setInferType(inferType)
    .setInferShape(inferShape);

REGISTER_OP(state_gemm)
    .setCreateOpState(createState, "cpu")
    .setParseAttrs(parseAttrs)
    .setInferType(inferType)
    .setInferShape(inferShape);

MXReturnValue initialize(int version) {
  if (version >= 10700) return MX_SUCCESS;
  MX_ERROR_MSG << "this library needs MXNet 1.7 or later, or passlib; not version " << version;
  return MX_FAIL;
}
