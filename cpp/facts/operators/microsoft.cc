// com.microsoft: ONNX Runtime's own operators that exporters and optimizers write.
#include "facts/operators/common.h"

namespace passlib::facts {
namespace {

void contribSame(NodeView& node) { likeInput(node); }

/// QLinearAdd and the like: A, its scale and zero point, B, ...
void quantizedBroadcast(NodeView& node) {
  node.set(0, node.in(0).type);
  node.setShape(0, broadcast(node.shape(0), node.shape(3)));
}

void fusedMatMul(NodeView& node) {
  node.set(0, node.in(0).type);
  Shape left = node.shape(0);
  Shape right = node.shape(1);
  require(node.integer("transBatchA", 0) == 0 && node.integer("transBatchB", 0) == 0);
  if (node.integer("transA", 0) != 0 && left.size() > 1) {
    std::swap(left[left.size() - 1], left[left.size() - 2]);
  }
  if (node.integer("transB", 0) != 0 && right.size() > 1) {
    std::swap(right[right.size() - 1], right[right.size() - 2]);
  }
  node.setShape(0, matrixProduct(left, right));
}

void fusedGemm(NodeView& node) {
  node.set(0, node.in(0).type);
  const Shape& left = node.shape(0, 2);
  const Shape& right = node.shape(1, 2);
  node.setShape(0, {left[node.integer("transA", 0) != 0 ? 1 : 0],
                    right[node.integer("transB", 0) != 0 ? 0 : 1]});
}

/// Products with a weight in blocks of few bits: K and N are attributes.
void blockedMatMul(NodeView& node) {
  node.set(0, node.in(0).type);
  Shape made = node.shape(0);
  require(!made.empty());
  made.back() = node.integer("N", -1);
  require(made.back().number() >= 0);
  node.setShape(0, std::move(made));
}

void integerMatMul(NodeView& node) {
  // MatMulIntegerToFloat, DynamicQuantizeMatMul
  node.set(0, node.op() == "DynamicQuantizeMatMul" ? node.in(0).type : node.in(2).type);
  node.setShape(0, matrixProduct(node.shape(0), node.shape(1)));
}

void skipNormalization(NodeView& node) {
  likeInput(node);
  const Shape& shape = node.shape(0);
  Shape statistics = shape;
  require(!statistics.empty());
  statistics.back() = 1;
  for (std::size_t i = 1; i < 3; ++i) node.set(i, kFloat, statistics);
  node.set(3, node.in(0).type, shape);
}

void embedNormalization(NodeView& node) {
  node.set(0, node.in(2).type);
  node.set(1, kInt32);
  node.set(2, node.in(2).type);
  const Shape& ids = node.shape(0, 2);
  const Shape made{ids[0], ids[1], node.shape(2, 2)[1]};
  node.setShape(0, made);
  node.setShape(1, {ids[0]});
  node.setShape(2, made);
}

void contribAttention(NodeView& node) {
  node.set(0, node.in(0).type);
  node.set(1, node.in(0).type);
  const Shape& shape = node.shape(0, 3);
  Dim width = shape[2];
  if (const auto sizes = node.integers("qkv_hidden_sizes")) {
    require(sizes->size() == 3);
    width = (*sizes)[2];
  } else if (node.rankOf(1) == 2) {
    width = wholeQuotient(node.shape(1)[1], 3);
  }
  node.setShape(0, {shape[0], shape[1], width});
  if (node.has(4) && node.in(4).shape) {
    Shape past = node.shape(4);
    require(past.size() == 5);
    past[3] = past[3] + shape[1];
    if (node.integer("past_present_share_buffer", 0) != 0) past[3] = Dim();
    node.setShape(1, std::move(past));
  }
}

void quantizedAttention(NodeView& node) {
  node.set(0, node.in(3).type);
  node.set(1, node.in(3).type);
  const Shape& shape = node.shape(0, 3);
  node.setShape(0, {shape[0], shape[1], wholeQuotient(node.shape(1, 2)[1], 3)});
}

void manyHeads(NodeView& node) {
  for (std::size_t i = 0; i < node.outputs(); ++i) node.set(i, node.in(0).type);
  const Shape& query = node.shape(0);
  if (query.size() == 5) {  // packed
    node.setShape(0, {query[0], query[1], query[2] * query[4]});
    return;
  }
  require(query.size() == 3);
  Dim width = query[2];
  if (node.has(2) && node.in(2).shape) {
    const Shape& value = node.shape(2);
    width = value.size() == 3 ? value[2] : value.size() == 4 ? value[1] * value[3] : Dim();
  } else if (node.has(1)) {
    width = query[2];  // keys and values packed
  }
  node.setShape(0, {query[0], query[1], width});
  for (std::size_t i = 1; i < 3; ++i) {  // keys and values after those of the past
    if (!node.has(i) || !node.in(i).shape || !node.has(i + 5) || !node.in(i + 5).shape) continue;
    Shape past = node.shape(i + 5, 4);
    const Shape& rows = node.shape(i);
    past[2] = rows.size() == 3 ? past[2] + rows[1] : Dim();
    node.setShape(i, std::move(past));
  }
}

void groupedHeads(NodeView& node) {
  for (std::size_t i = 0; i < node.outputs(); ++i) node.set(i, node.in(0).type);
  const Shape& query = node.shape(0, 3);
  Dim width = query[2];
  const int64_t heads = node.integer("num_heads", 0);
  const int64_t shared = node.integer("kv_num_heads", 0);
  if (!node.has(1)) {  // query, keys and values packed
    require(heads > 0 && shared > 0);
    width = wholeQuotient(query[2] * Dim(heads), Dim(heads) + Dim(2) * Dim(shared));
  }
  node.setShape(0, {query[0], query[1], width});
  for (std::size_t i = 1; i < 3; ++i) {
    if (!node.has(i + 2) || !node.in(i + 2).shape) continue;
    Shape past = node.shape(i + 2, 4);
    past[2] = Dim();
    node.setShape(i, std::move(past));
  }
}

void contribQuantize(NodeView& node) {
  node.out(0).shape = node.in(0).shape;
  node.set(0, node.has(2) ? node.in(2).type : kUint8);
}

void contribDequantize(NodeView& node) {
  node.out(0).shape = node.in(0).shape;
  node.set(0, node.in(1).type);
}

void quantizedRecurrence(NodeView& node) { recurrentLayer(node, 2); }

void contribInverse(NodeView& node) { likeInput(node); }

void splitActivation(NodeView& node) {
  // BiasSplitGelu
  node.set(0, node.in(0).type);
  Shape made = node.shape(0);
  require(!made.empty());
  made.back() = wholeQuotient(made.back(), 2);
  node.setShape(0, std::move(made));
}

void cropImages(NodeView& node) {
  node.set(0, node.in(0).type);
  const Shape& image = node.shape(0, 4);
  const std::vector<Dim>* sizes = node.items(3);
  Shape made{node.shape(1, 2)[0], image[1], Dim(), Dim()};
  if (sizes != nullptr && sizes->size() == 2) {
    made[2] = (*sizes)[0];
    made[3] = (*sizes)[1];
  }
  node.setShape(0, std::move(made));
}

void useOwn(NodeView& node) {
  // The same operator as ONNX's, in its newest form.
  const std::string_view op = node.op();
  const Rule rule = findRule("", op == "FusedConv"                      ? "Conv"
                                 : op == "ConvTransposeWithDynamicPads" ? "ConvTranspose"
                                                                        : op);
  require(rule != nullptr);
  node.setOpset(1 << 20);
  rule(node);
}

void convolveLastChannels(NodeView& node) {
  // NhwcConv: image and weight with channels last.
  node.set(0, node.in(0).type);
}

void gatherBlocks(NodeView& node) { node.set(0, node.in(2).type); }

}  // namespace

std::vector<Entry> families::microsoft() {
  std::vector<Entry> made;
  for (const char* op : {"Gelu", "FastGelu", "QuickGelu", "BiasGelu", "BiasDropout", "GroupNorm",
                         "RotaryEmbedding", "GemmaRotaryEmbedding", "QLinearSigmoid",
                         "QLinearLeakyRelu", "QLinearSoftmax", "BiasSoftmax", "BiasAdd"}) {
    made.push_back({op, contribSame});
  }
  for (const char* op : {"FusedConv", "ConvTransposeWithDynamicPads", "Trilu", "GatherND", "Unique",
                         "Range", "Pad", "GridSample"}) {
    made.push_back({op, useOwn});
  }
  const Entry others[] = {{"QLinearAdd", quantizedBroadcast},
                          {"QLinearMul", quantizedBroadcast},
                          {"FusedMatMul", fusedMatMul},
                          {"TransposeMatMul", fusedMatMul},
                          {"FusedMatMulActivation", fusedMatMul},
                          {"FusedGemm", fusedGemm},
                          {"MatMulNBits", blockedMatMul},
                          {"MatMulBnb4", blockedMatMul},
                          {"MatMulFpQ4", blockedMatMul},
                          {"MatMulIntegerToFloat", integerMatMul},
                          {"DynamicQuantizeMatMul", integerMatMul},
                          {"SkipLayerNormalization", skipNormalization},
                          {"SkipSimplifiedLayerNormalization", skipNormalization},
                          {"EmbedLayerNormalization", embedNormalization},
                          {"Attention", contribAttention},
                          {"QAttention", quantizedAttention},
                          {"MultiHeadAttention", manyHeads},
                          {"GroupQueryAttention", groupedHeads},
                          {"QuantizeLinear", contribQuantize},
                          {"DequantizeLinear", contribDequantize},
                          {"DynamicQuantizeLSTM", quantizedRecurrence},
                          {"Inverse", contribInverse},
                          {"BiasSplitGelu", splitActivation},
                          {"CropAndResize", cropImages},
                          {"GatherBlockQuantized", gatherBlocks},
                          {"NhwcConv", convolveLastChannels}};
  made.insert(made.end(), std::begin(others), std::end(others));
  return made;
}

}  // namespace passlib::facts
