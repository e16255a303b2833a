// Quantized values.
#include "facts/operators/common.h"

namespace passlib::facts {
namespace {

void quantize(NodeView& node) {
  node.out(0).shape = node.in(0).shape;
  const auto stated = static_cast<Type>(node.integer("output_dtype", 0));
  node.set(0, node.has(2) ? node.in(2).type : stated != kUnknownType ? stated : kUint8);
}

void dequantize(NodeView& node) {
  node.out(0).shape = node.in(0).shape;
  const auto stated = static_cast<Type>(node.integer("output_dtype", 0));
  node.set(0, stated != kUnknownType ? stated : node.opset() < 19 ? kFloat : node.in(1).type);
}

void quantizeByRange(NodeView& node) {
  node.set(0, kUint8);
  node.out(0).shape = node.in(0).shape;
  node.set(1, kFloat, Shape());
  node.set(2, kUint8, Shape());
}

}  // namespace

std::vector<Entry> families::quantization() {
  return {{"QuantizeLinear", quantize},
          {"DequantizeLinear", dequantize},
          {"DynamicQuantizeLinear", quantizeByRange}};
}

}  // namespace passlib::facts
