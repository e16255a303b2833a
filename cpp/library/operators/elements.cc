#include "library/operators/elements.h"

#include "header.h"

namespace passlib {
namespace {

/// The element types that both sides have: ONNX's number, and MXNet's code.
constexpr struct {
  int element;
  int dtype;
} kElements[] = {
    {1, mxnet::ext::kFloat32},   {2, mxnet::ext::kUint8},   {3, mxnet::ext::kInt8},
    {4, mxnet::ext::kUint16},    {5, mxnet::ext::kInt16},   {6, mxnet::ext::kInt32},
    {7, mxnet::ext::kInt64},     {9, mxnet::ext::kBool},    {10, mxnet::ext::kFloat16},
    {11, mxnet::ext::kFloat64},  {12, mxnet::ext::kUint32}, {13, mxnet::ext::kUint64},
    {16, mxnet::ext::kBfloat16},
};

}  // namespace

int dtypeOfElement(int64_t element) {
  for (const auto& known : kElements) {
    if (known.element == element) return known.dtype;
  }
  return -1;
}

int elementOfDtype(int dtype) {
  for (const auto& known : kElements) {
    if (known.dtype == dtype) return known.element;
  }
  return 0;
}

}  // namespace passlib
