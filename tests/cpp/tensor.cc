// MXTensor, MXSparse, and the texts of shapes.
#include "check.h"
#include "lib_api.h"

using namespace mxnet::ext;

TEST(tensor_copies_own_their_shape) {
  float values[6] = {};
  std::vector<MXTensor> tensors;
  {
    MXTensor original(values, {2, 3}, kFloat32, 4, MXContext::CPU(0));
    tensors.push_back(original);
    MXTensor assigned;
    assigned = original;
    tensors.push_back(assigned);
    tensors.push_back(std::move(assigned));
  }
  std::vector<std::vector<int64_t>> trash(64, {7, 7});  // takes the freed memory
  for (MXTensor& tensor : tensors) {
    CHECK_EQUAL(tensor.dltensor.shape, tensor.shape.data());
    CHECK_EQUAL(tensor.dltensor.shape[0], 2);
    CHECK_EQUAL(tensor.dltensor.shape[1], 3);
    CHECK_EQUAL(tensor.dltensor.data, static_cast<void*>(values));
    CHECK_EQUAL(tensor.size(), 6);
  }
}

TEST(tensor_assigned_to_itself) {
  MXTensor tensor(nullptr, {5}, kInt64, 0, MXContext::CPU());
  MXTensor& alias = tensor;
  tensor = alias;
  CHECK_EQUAL(tensor.dltensor.shape[0], 5);
}

TEST(tensor_sets_new_values) {
  const int64_t dims[3] = {1, 2, 4};
  MXTensor tensor;
  CHECK_EQUAL(tensor.dtype, kUNSET);
  tensor.setTensor(nullptr, kUint8, dims, 3, 0, MXContext::GPU(1));
  CHECK_EQUAL(tensor.dltensor.ndim, 3);
  CHECK_EQUAL(int(tensor.dltensor.dtype.bits), 8);
  CHECK_EQUAL(tensor.dltensor.ctx.device_type, dlpack::kDLGPU);
  CHECK_EQUAL(tensor.dltensor.ctx.device_id, 1);
  tensor.setTensor(nullptr, kFloat32, dims, 0, 0, MXContext::CPU());
  CHECK_EQUAL(tensor.size(), 1);
}

TEST(tensor_knows_all_dtypes) {
  const struct {
    MXDType type;
    int code;
    int bits;
  } table[] = {{kFloat32, 2, 32}, {kFloat64, 2, 64}, {kFloat16, 2, 16}, {kUint8, 1, 8},
               {kInt32, 0, 32},   {kInt8, 0, 8},     {kInt64, 0, 64},   {kBool, 6, 8},
               {kInt16, 0, 16},   {kUint16, 1, 16},  {kUint32, 1, 32},  {kUint64, 1, 64},
               {kBfloat16, 4, 16}};
  for (const auto& row : table) {
    const MXTensor tensor(nullptr, {1}, row.type, 0, MXContext::CPU());
    CHECK_EQUAL(int(tensor.dltensor.dtype.code), row.code);
    CHECK_EQUAL(int(tensor.dltensor.dtype.bits), row.bits);
  }
  CHECK_THROWS(MXTensor(nullptr, {1}, kUNSET, 0, MXContext::CPU()), std::runtime_error, "100");
}

TEST(tensor_sameness) {
  float values[4];
  const MXTensor a(values, {4}, kFloat32, 1, MXContext::CPU());
  CHECK(a.isSame(MXTensor(values, {4}, kFloat32, 1, MXContext::CPU())));
  CHECK(!a.isSame(MXTensor(values, {2, 2}, kFloat32, 1, MXContext::CPU())));
  CHECK(!a.isSame(MXTensor(values, {4}, kFloat32, 2, MXContext::CPU())));
  CHECK(!a.isSame(MXTensor(values, {4}, kFloat32, 1, MXContext::CPU(1))));
}

TEST(sparse_counts_its_values) {
  const int64_t dims[3] = {10, 2, 3};
  int64_t rows[4] = {0, 3, 5, 9};
  MXSparse row_sparse;
  row_sparse.set(nullptr, dims, 3, rows, 4);
  CHECK_EQUAL(row_sparse.data_len, 24);
  CHECK(row_sparse.indptr == nullptr);
  int64_t indptr[11] = {};
  MXSparse csr;
  csr.set(nullptr, dims, 2, rows, 4, indptr, 11);
  CHECK_EQUAL(csr.data_len, 4);
  CHECK_EQUAL(csr.indptr_len, 11);
}

TEST(shapes_as_text) {
  CHECK_EQUAL(getShapeAt("[[2,4],[4]]", 0), "[2,4]");
  CHECK_EQUAL(getShapeAt("[[2,4],[4]]", 1), "[4]");
  CHECK_EQUAL(getShapeAt("[None,[2]]", 0), "None");
  CHECK_EQUAL(getShapeAt("[None]", 0), "None");
  CHECK_EQUAL(getShapeAt("[[]]", 0), "[]");
  CHECK_EQUAL(getDtypeAt("[0,6]", 0), "0");
  CHECK_EQUAL(getDtypeAt("[0,6]", 1), "6");
  for (const char* text : {"[]", "", "[", "x", "[1]"}) {
    CHECK_THROWS(getDtypeAt(text, 1), std::out_of_range, "no such entry");
  }
  CHECK_THROWS(getShapeAt("[[1]]", 4000000000u), std::out_of_range, "getShapeAt");
}

TEST(messages_stay_where_they_are) {
  std::stringstream& first = MX_ERROR_MSG;
  for (int i = 0; i < 1000; ++i) MX_ERROR_MSG << i;
  first << "late";
  const std::string text = *MXerrorMsgs::get()->get(0);
  CHECK_EQUAL(text.substr(text.size() - 6), ": late");
  CHECK_EQUAL(MXerrorMsgs::get()->size(), 1001);
}

TEST(messages_already_read_stay_valid) {
  std::stringstream& stream = MX_ERROR_MSG;
  stream << "first";
  const std::string* before = MXerrorMsgs::get()->get(0);
  const std::string copy = *before;
  CHECK(MXerrorMsgs::get()->get(0) == before);
  stream << std::string(1000, 'x');
  const std::string* after = MXerrorMsgs::get()->get(0);
  CHECK_EQUAL(*before, copy);
  CHECK_EQUAL(after->size(), copy.size() + 1000);
}
