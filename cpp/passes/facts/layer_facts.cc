#include "layer_facts.h"

#include <cstring>

namespace passes {
namespace {

constexpr Flag kNever = {nullptr, false};
constexpr auto kOutputsFirst = WeightOrder::kOutputsFirst;
constexpr auto kInputsFirst = WeightOrder::kInputsFirst;
constexpr auto kMatrixByFlag = WeightOrder::kMatrixByFlag;
constexpr auto kLayout = ChannelAxis::kLayout;
constexpr auto kSecond = ChannelAxis::kSecond;

// NNVM's files may hold MXNet's operators.
constexpr LayerFacts mxnet(const char* op, WeightOrder order, ChannelAxis axis, bool no_bias) {
  return {"mxnet nnvm",         op,      order,   axis,   "num_group", kNever,
          {"no_bias", no_bias}, nullptr, nullptr, nullptr};
}

constexpr LayerFacts nnvm(const char* op, WeightOrder order, ChannelAxis axis) {
  return {"nnvm", op,      order,           axis,  "groups", {"use_bias", true},
          kNever, nullptr, "kernel_layout", "OIHW"};
}

constexpr LayerFacts onnx(const char* op, WeightOrder order, ChannelAxis axis) {
  return {"onnx", op, order, axis, "group", kNever, kNever, nullptr, nullptr, nullptr};
}

constexpr LayerFacts dlprim(const char* op, WeightOrder order, ChannelAxis axis) {
  return {"dlprim",       op,     order,        axis,    "groups",
          {"bias", true}, kNever, "activation", nullptr, nullptr};
}

constexpr LayerFacts kLayers[] = {
    mxnet("Convolution", kOutputsFirst, kLayout, false),
    mxnet("Convolution_v1", kOutputsFirst, kLayout, false),
    mxnet("Deconvolution", kInputsFirst, kLayout, true),
    mxnet("FullyConnected", kOutputsFirst, ChannelAxis::kFlatten, false),
    nnvm("conv2d", kOutputsFirst, kLayout),
    nnvm("conv2d_transpose", kInputsFirst, kLayout),
    nnvm("dense", kOutputsFirst, ChannelAxis::kLast),
    onnx("Conv", kOutputsFirst, kLayout),
    onnx("ConvTranspose", kInputsFirst, kLayout),
    onnx("Gemm", kMatrixByFlag, kSecond),
    dlprim("Convolution2D", kOutputsFirst, kLayout),
    dlprim("TransposedConvolution2D", kInputsFirst, kLayout),
    dlprim("InnerProduct", kOutputsFirst, kSecond),
};

constexpr Flag kFixGamma = {"fix_gamma", true};
constexpr NormFacts kNorms[] = {
    {"mxnet nnvm", "BatchNorm", 1, 2, 3, 4, "eps", 1e-3, kFixGamma, kNever, kNever, true},
    {"mxnet nnvm", "BatchNorm_v1", 1, 2, 3, 4, "eps", 1e-3, kFixGamma, kNever, kNever, false},
    {"mxnet nnvm", "_contrib_SyncBatchNorm", 1, 2, 3, 4, "eps", 1e-3, kFixGamma, kNever, kNever,
     false},
    {"nnvm",
     "batch_norm",
     1,
     2,
     3,
     4,
     "epsilon",
     1e-5,
     kNever,
     {"scale", true},
     {"center", true},
     true},
    {"onnx", "BatchNormalization", 1, 2, 3, 4, "epsilon", 1e-5, kNever, kNever, kNever, false},
    {"dlprim",
     "BatchNorm",
     3,
     4,
     1,
     2,
     "eps",
     1e-5,
     kNever,
     {"affine", true},
     {"affine", true},
     false},
};

/// Whether a list of names, such as "mxnet nnvm", contains a name.
bool lists(const char* names, const std::string& name) {
  for (const char* found = std::strstr(names, name.c_str()); found != nullptr;
       found = std::strstr(found + 1, name.c_str())) {
    const char after = found[name.size()];
    if ((found == names || found[-1] == ' ') && (after == '\0' || after == ' ')) return true;
  }
  return false;
}

template <typename Facts, std::size_t count>
const Facts* find(const Facts (&rows)[count], const Family& family, const Node& node) {
  if (node.attrs.count("__domain__") != 0) return nullptr;
  for (const Facts& row : rows) {
    if (node.op == row.op && lists(row.family, family.name())) return &row;
  }
  return nullptr;
}

}  // namespace

const LayerFacts* findLayer(const Family& family, const Node& node) {
  return find(kLayers, family, node);
}

const NormFacts* findNorm(const Family& family, const Node& node) {
  return find(kNorms, family, node);
}

bool usesBatchStatistics(const Family& family, const Node& norm) {
  if (family.name() != "onnx") return false;
  // `spatial`, removed in operator set 9: statistics per position instead of per channel.
  if (!boolAttr(&norm, "spatial", true)) return true;
  if (family.operatorSet() < 7) return !boolAttr(&norm, "is_test", false);
  if (family.operatorSet() < 14) return norm.num_outputs > 1;
  return boolAttr(&norm, "training_mode", false);
}

}  // namespace passes
