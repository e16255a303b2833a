// Random numbers, windows and transforms of signals, and other values made from a few numbers.
#include "facts/operators/common.h"

namespace passlib::facts {
namespace {

void randomOfShape(NodeView& node) {
  node.set(0, static_cast<Type>(node.integer("dtype", 1)));
  const auto shape = node.integers("shape");
  require(shape.has_value());
  node.setShape(0, Shape(shape->begin(), shape->end()));
}

void randomLike(NodeView& node) {
  likeInput(node);
  if (const auto type = node.integer("dtype")) node.set(0, static_cast<Type>(*type));
}

void multinomial(NodeView& node) {
  node.set(0, static_cast<Type>(node.integer("dtype", 6)));
  Shape made(2);
  if (node.in(0).shape) made[0] = node.shape(0, 2)[0];
  made[1] = node.integer("sample_size", 1);
  node.setShape(0, std::move(made));
}

void window(NodeView& node) {
  node.set(0, static_cast<Type>(node.integer("output_datatype", 1)), Shape(1));
  if (const std::vector<Dim>* size = node.items(0)) {
    if (size->size() == 1 && atLeast(size->front(), 0)) node.setShape(0, {size->front()});
  }
}

void melWeights(NodeView& node) {
  node.set(0, static_cast<Type>(node.integer("output_datatype", 1)), Shape(2));
  Shape made(2);
  if (const std::vector<Dim>* length = node.items(1)) {
    if (length->size() == 1) made[0] = floorQuotient(length->front(), 2) + 1;
  }
  if (const std::vector<Dim>* bins = node.items(0)) {
    if (bins->size() == 1 && atLeast(bins->front(), 0)) made[1] = bins->front();
  }
  node.setShape(0, std::move(made));
}

void fourier(NodeView& node) {
  node.set(0, node.in(0).type);
  Shape made = node.shape(0);
  const int64_t onesided = node.integer("onesided", 0);
  const bool inverse = node.integer("inverse", 0) != 0;
  const bool half = onesided == 1;
  require(!made.empty());
  if ((onesided != 0 && !half) || (node.has(1) && node.items(1) == nullptr)) {
    node.setShape(0, Shape(made.size()));
    return;
  }
  made.back() = half && inverse ? 1 : 2;
  if (half || node.has(1)) {
    std::optional<int64_t> axis = 1;
    if (node.opset() < 20) {
      axis = node.integer("axis", 1);
    } else {
      axis = -2;
      if (node.has(2)) axis = node.integerOf(2);
    }
    if (!axis) {
      const Dim last = made.back();
      made.assign(made.size(), Dim());
      made.back() = last;
      node.setShape(0, std::move(made));
      return;
    }
    Dim& size = made[axisOf(*axis, made.size())];
    const std::vector<Dim>* length = node.items(1);
    const Dim stated = length != nullptr && length->size() == 1 ? length->front() : Dim();
    if (half && inverse) {
      size = node.has(1) ? stated : (size - 1) * Dim(2);
    } else {
      if (node.has(1)) size = stated;
      if (half) size = floorQuotient(size, 2) + 1;
    }
    if (size.isSymbolic() && !atLeast(size, 0)) size = Dim();
  }
  node.setShape(0, std::move(made));
}

void spectrum(NodeView& node) {
  node.set(0, node.in(0).type);
  Shape made(4);
  made[3] = 2;
  Dim frame;
  if (node.rankOf(2) == 1) frame = node.shape(2)[0];
  if (const std::vector<Dim>* length = node.items(3)) {
    if (length->size() == 1) frame = length->front();
  }
  if (node.in(0).shape) {
    const Shape& signal = node.shape(0);
    if (!signal.empty()) made[0] = signal[0];
    const auto step = node.integerOf(1);
    if (frame.isNumber() && signal.size() > 1 && step && *step > 0 && signal[1].isNumber()) {
      made[1] = floorQuotient(signal[1] - frame, *step) + 1;
    }
  }
  if (frame.isNumber()) {
    made[2] = node.integer("onesided", 1) != 0 ? floorQuotient(frame, 2) + 1 : frame;
  }
  node.setShape(0, std::move(made));
}

void suppress(NodeView& node) { node.set(0, kInt64, {Dim(), 3}); }

}  // namespace

std::vector<Entry> families::generators() {
  return {{"RandomNormal", randomOfShape},
          {"RandomUniform", randomOfShape},
          {"RandomNormalLike", randomLike},
          {"RandomUniformLike", randomLike},
          {"Bernoulli", randomLike},
          {"Multinomial", multinomial},
          {"HannWindow", window},
          {"HammingWindow", window},
          {"BlackmanWindow", window},
          {"MelWeightMatrix", melWeights},
          {"DFT", fourier},
          {"STFT", spectrum},
          {"NonMaxSuppression", suppress}};
}

}  // namespace passlib::facts
