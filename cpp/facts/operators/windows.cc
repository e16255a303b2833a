// Convolutions, poolings, and other operators on images.
#include <cmath>

#include "facts/operators/common.h"

namespace passlib::facts {
namespace {

struct Windows {
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::vector<int64_t> pads;
  std::string_view padding;
  bool isSame() const { return padding == "SAME_UPPER" || padding == "SAME_LOWER"; }
};

/// Reads the attributes of windows over so many axes.
Windows readWindows(const NodeView& node, std::size_t axes) {
  Windows made;
  const auto listed = [&](std::string_view key, std::size_t count, int64_t preset) {
    auto found = node.integers(key);
    if (!found || found->empty()) return std::vector<int64_t>(count, preset);
    require(found->size() == count);
    return std::move(*found);
  };
  made.strides = listed("strides", axes, 1);
  made.dilations = listed("dilations", axes, 1);
  made.padding = node.text("auto_pad", "NOTSET");
  made.pads.assign(2 * axes, 0);
  if (made.padding == "NOTSET") {
    made.pads = listed("pads", 2 * axes, 0);
  } else if (auto stated = node.integers("pads")) {
    require(stated->size() == 2 * axes || stated->empty());
  }
  return made;
}

/// The number of windows along an axis.
Dim countWindows(const Windows& windows, std::size_t axis, const Dim& size, const Dim& kernel,
                 bool round_up) {
  const int64_t stride = windows.strides[axis];
  if (stride < 1 || !size.isKnown()) return {};
  const int64_t dilation = windows.dilations[axis];
  Dim head = windows.pads[axis];
  Dim tail = windows.pads[axis + windows.strides.size()];
  if (windows.isSame()) {
    if (dilation == 1 || !size.isNumber()) {
      if (dilation != 1) return {};
      const Dim count = ceilQuotient(size, stride);
      if (!round_up) return count;
      if (!size.isNumber() || !kernel.isNumber()) return {};
    }
    if (!kernel.isNumber()) return {};
    // Without the dilation, and so fewer windows than the axis has strides.
    const Dim needed =
        maximum((ceilQuotient(size, stride) - 1) * Dim(stride) + kernel - size, Dim(0));
    head = windows.padding == "SAME_UPPER" ? floorQuotient(needed, 2)
                                           : needed - floorQuotient(needed, 2);
    tail = needed - head;
  }
  const Dim reach = size + head + tail - Dim(dilation) * (kernel - 1) - 1;
  if (!reach.isKnown()) return {};
  if (!round_up) return stride == 1 ? reach + 1 : windowQuotient(reach, stride) + 1;
  if (!reach.isNumber()) return {};
  Dim count = ceilQuotient(reach, stride) + 1;
  const Dim start = (count - 1) * Dim(stride);
  if (atLeast(start - (size + head), 0)) count = count - 1;
  return count;
}

void convolveShape(NodeView& node, std::size_t data, std::size_t weight) {
  const Shape& shape = node.shape(data);
  require(shape.size() >= 2);
  const std::size_t axes = shape.size() - 2;
  const Windows windows = readWindows(node, axes);
  std::vector<Dim> kernel(axes);
  Shape made{shape[0], Dim()};
  const std::optional<Shape>& weights = node.in(weight).shape;
  if (weights) {
    require(weights->size() == shape.size());
    made[1] = (*weights)[0];
    kernel.assign(weights->begin() + 2, weights->end());
  }
  if (const auto stated = node.integers("kernel_shape")) {
    require(stated->size() == axes);
    kernel.assign(stated->begin(), stated->end());
  }
  for (std::size_t i = 0; i < axes; ++i) {
    made.push_back(countWindows(windows, i, shape[i + 2], kernel[i], false));
  }
  node.setShape(0, std::move(made));
}

void convolve(NodeView& node) {
  const std::string_view op = node.op();
  if (op == "ConvInteger") {
    node.set(0, kInt32);
    convolveShape(node, 0, 1);
  } else if (op == "QLinearConv") {
    node.set(0, node.in(7).type);
    convolveShape(node, 0, 3);
  } else {
    node.set(0, node.in(0).type);
    convolveShape(node, 0, 1);
  }
}

void convolveTransposed(NodeView& node) {
  node.set(0, node.in(0).type);
  const Shape& shape = node.shape(0);
  require(shape.size() >= 2);
  const std::size_t axes = shape.size() - 2;
  const Windows windows = readWindows(node, axes);
  std::vector<Dim> kernel(axes);
  Shape made{shape[0], Dim()};
  if (const std::optional<Shape>& weights = node.in(1).shape) {
    require(weights->size() == shape.size());
    made[1] = (*weights)[1] * Dim(node.integer("group", 1));
    kernel.assign(weights->begin() + 2, weights->end());
  }
  if (const auto stated = node.integers("kernel_shape")) {
    require(stated->size() == axes);
    kernel.assign(stated->begin(), stated->end());
  }
  const auto extra = node.integers("output_padding");
  require(!extra || extra->size() == axes || extra->empty());
  const auto stated = node.integers("output_shape");
  // ConvTransposeWithDynamicPads has them as an input.
  const bool computed = node.op() != "ConvTranspose";
  const std::vector<Dim>* const pads = computed ? node.items(2) : nullptr;
  require(pads == nullptr || pads->size() == 2 * axes);
  for (std::size_t i = 0; i < axes; ++i) {
    if (stated && !stated->empty()) {
      require(stated->size() == axes);
      made.emplace_back((*stated)[i]);
      continue;
    }
    const Dim stride = windows.strides[i];
    const Dim reach = (kernel[i] - 1) * Dim(windows.dilations[i]) + 1;
    if (windows.isSame()) {
      const bool simple = !extra && atLeast(reach - stride, 0);
      made.push_back(simple ? shape[i + 2] * stride : Dim());
      continue;
    }
    Dim size = stride * (shape[i + 2] - 1) + reach;
    if (!computed) {
      size = size - Dim(windows.pads[i]) - Dim(windows.pads[i + axes]);
    } else {
      size = pads == nullptr ? Dim() : size - (*pads)[i] - (*pads)[i + axes];
    }
    if (extra && !extra->empty()) size = size + Dim((*extra)[i]);
    made.push_back(size);
  }
  node.setShape(0, std::move(made));
}

void pool(NodeView& node) {
  for (std::size_t i = 0; i < node.outputs(); ++i) node.set(i, i == 0 ? node.in(0).type : kInt64);
  node.out(0).least = node.in(0).least;
  const Shape& shape = node.shape(0);
  const auto kernel = node.integers("kernel_shape");
  require(kernel && kernel->size() + 2 == shape.size());
  const Windows windows = readWindows(node, kernel->size());
  const bool round_up = node.integer("ceil_mode", 0) == 1;
  Shape made{shape[0], shape[1]};
  for (std::size_t i = 0; i < kernel->size(); ++i) {
    made.push_back(countWindows(windows, i, shape[i + 2], (*kernel)[i], round_up));
  }
  for (std::size_t i = 0; i < node.outputs(); ++i) node.setShape(i, made);
}

void poolAll(NodeView& node) {
  node.set(0, node.in(0).type);
  Shape made = node.shape(0);
  require(made.size() >= 2);
  std::fill(made.begin() + 2, made.end(), Dim(1));
  node.setShape(0, std::move(made));
}

void unpool(NodeView& node) {
  node.set(0, node.in(0).type);
  const Shape& shape = node.shape(0);
  if (node.has(2)) {
    const std::vector<Dim>* stated = node.items(2);
    if (stated != nullptr) {
      node.setShape(0, *stated);
    } else {
      node.setShape(0, Shape(shape.size()));
    }
    return;
  }
  const auto kernel = node.integers("kernel_shape");
  require(kernel && kernel->size() + 2 == shape.size());
  const Windows windows = readWindows(node, kernel->size());
  Shape made{shape[0], shape[1]};
  for (std::size_t i = 0; i < kernel->size(); ++i) {
    made.push_back(Dim(windows.strides[i]) * (shape[i + 2] - 1) + Dim((*kernel)[i]) -
                   Dim(windows.pads[i]) - Dim(windows.pads[i + kernel->size()]));
  }
  node.setShape(0, std::move(made));
}

void poolRegions(NodeView& node) {
  node.set(0, node.in(0).type);
  const bool align = node.op() == "RoiAlign";
  Shape made(2);
  if (node.in(0).shape) made[1] = node.shape(0, 4)[1];
  if (node.in(1).shape) made[0] = node.shape(1, 2)[0];
  if (align) {
    if (node.in(2).shape) made[0] = mergeDim(made[0], node.shape(2, 1)[0]);
    made.emplace_back(node.integer("output_height", 1));
    made.emplace_back(node.integer("output_width", 1));
  } else {
    const auto sizes = node.integers("pooled_shape");
    require(sizes && sizes->size() == 2);
    made.insert(made.end(), sizes->begin(), sizes->end());
  }
  node.setShape(0, std::move(made));
}

Dim scaleDim(const Dim& size, double scale) {
  if (scale == 1) return size;
  if (size.isNumber()) {
    const float made = static_cast<float>(size.number()) * static_cast<float>(scale);
    return made < 9e18f ? Dim(static_cast<int64_t>(made)) : Dim();
  }
  const bool whole = scale == std::floor(scale) && scale < 4096;
  return whole ? size * Dim(static_cast<int64_t>(scale)) : Dim();
}

void resize(NodeView& node) {
  node.set(0, node.in(0).type);
  const Shape& shape = node.shape(0);
  const std::size_t rank = shape.size();
  std::vector<std::size_t> axes;
  if (const auto stated = node.integers("axes")) {
    for (const int64_t axis : *stated) axes.push_back(axisOf(axis, rank));
  } else {
    for (std::size_t i = 0; i < rank; ++i) axes.push_back(i);
  }
  Shape made = shape;
  Shape open(rank);
  if (node.text("coordinate_transformation_mode", "") == "tf_crop_and_resize") {
    node.setShape(0, std::move(open));
    return;
  }
  const bool sizes_too = node.op() == "Resize" && node.opset() >= 11;
  if (sizes_too && node.has(3) && node.rankOf(3) != 0) {
    const std::vector<Dim>* sizes = node.items(3);
    for (const std::size_t axis : axes) made[axis] = Dim();
    if (sizes != nullptr && !sizes->empty()) {
      require(sizes->size() == axes.size());
      const std::string_view policy = node.text("keep_aspect_ratio_policy", "stretch");
      if (policy == "stretch") {
        for (std::size_t i = 0; i < axes.size(); ++i) made[axes[i]] = (*sizes)[i];
      } else {
        const bool larger = policy == "not_smaller";
        float scale = larger ? 0.0f : INFINITY;
        bool known = true;
        for (std::size_t i = 0; i < axes.size(); ++i) {
          known = known && (*sizes)[i].isNumber() && shape[axes[i]].isNumber() &&
                  shape[axes[i]].number() > 0;
          if (!known) break;
          const float own = static_cast<float>((*sizes)[i].number()) /
                            static_cast<float>(shape[axes[i]].number());
          scale = larger ? std::max(scale, own) : std::min(scale, own);
        }
        for (std::size_t i = 0; known && i < axes.size(); ++i) {
          const float size = std::round(scale * static_cast<float>(shape[axes[i]].number()));
          if (size < 9e18f) made[axes[i]] = static_cast<int64_t>(size);
        }
      }
    }
    node.setShape(0, std::move(made));
    return;
  }
  std::optional<std::vector<double>> scales = node.reals("scales");
  if (!scales && node.hasAttribute("height_scale")) {
    require(rank == 4);
    scales = {1, 1, node.real("height_scale", 1), node.real("width_scale", 1)};
  }
  if (!scales) scales = node.realsOf(sizes_too ? 2 : 1);
  if (!scales || scales->empty()) {
    node.setShape(0, std::move(open));
    return;
  }
  bool usable = scales->size() == axes.size();
  for (const double scale : *scales) usable = usable && scale > 0 && scale < 2147483647.0;
  if (!usable) {
    node.setShape(0, std::move(open));
    return;
  }
  for (std::size_t i = 0; i < axes.size(); ++i)
    made[axes[i]] = scaleDim(shape[axes[i]], (*scales)[i]);
  node.setShape(0, std::move(made));
}

void columnsToImage(NodeView& node) {
  node.set(0, node.in(0).type);
  const Shape& shape = node.shape(0, 3);
  const std::vector<Dim>* image = node.items(1);
  const std::vector<Dim>* block = node.items(2);
  Shape made{shape[0], Dim()};
  if (block != nullptr) made[1] = wholeQuotient(shape[1], product(*block));
  if (image != nullptr) {
    made.insert(made.end(), image->begin(), image->end());
  } else {
    const Shape& lengths = node.shape(1, 1);
    require(lengths[0].isNumber() && lengths[0].number() >= 0 && lengths[0].number() < 64);
    made.resize(made.size() + static_cast<std::size_t>(lengths[0].number()));
  }
  node.setShape(0, std::move(made));
}

void sampleGrid(NodeView& node) {
  node.set(0, node.in(0).type);
  const Shape& shape = node.shape(0);
  const Shape& grid = node.shape(1);
  require(shape.size() >= 3 && grid.size() == shape.size());
  Shape made{mergeDim(shape[0], grid[0]), shape[1]};
  made.insert(made.end(), grid.begin() + 1, grid.end() - 1);
  node.setShape(0, std::move(made));
}

void makeGrid(NodeView& node) {
  node.set(0, node.in(0).type);
  const std::vector<Dim>* size = node.items(1);
  if (size == nullptr) {
    const Shape& lengths = node.shape(1, 1);
    require(lengths[0].is(4) || lengths[0].is(5));
    Shape made(static_cast<std::size_t>(lengths[0].number()));
    made.back() = lengths[0].number() - 2;
    node.setShape(0, std::move(made));
    return;
  }
  require(size->size() == 4 || size->size() == 5);
  Shape made{size->front()};
  made.insert(made.end(), size->begin() + 2, size->end());
  made.emplace_back(static_cast<int64_t>(size->size()) - 2);
  node.setShape(0, std::move(made));
}

void decodeImage(NodeView& node) {
  node.set(0, kUint8, Shape(3));
  node.setShape(0, {Dim(), Dim(), node.text("pixel_format", "RGB") == "Grayscale" ? 1 : 3});
}

void causalConvolution(NodeView& node) {
  likeInput(node);
  node.set(1, node.in(0).type);
  const Shape& shape = node.shape(0, 3);
  const Shape& weight = node.shape(1, 3);
  node.setShape(1, {shape[0], shape[1], weight[2] - 1});
}

}  // namespace

std::vector<Entry> families::windows() {
  return {{"Conv", convolve},
          {"ConvInteger", convolve},
          {"QLinearConv", convolve},
          {"DeformConv", convolve},
          {"ConvTranspose", convolveTransposed},
          {"AveragePool", pool},
          {"LpPool", pool},
          {"MaxPool", pool},
          {"GlobalAveragePool", poolAll},
          {"GlobalLpPool", poolAll},
          {"GlobalMaxPool", poolAll},
          {"MaxUnpool", unpool},
          {"MaxRoiPool", poolRegions},
          {"RoiAlign", poolRegions},
          {"Resize", resize},
          {"Upsample", resize},
          {"Col2Im", columnsToImage},
          {"GridSample", sampleGrid},
          {"AffineGrid", makeGrid},
          {"ImageDecoder", decodeImage},
          {"CausalConvWithState", causalConvolution}};
}

}  // namespace passlib::facts
