// Operators that return shapes, sizes and constants, or values of a stated shape.
#include <algorithm>
#include <array>
#include <cmath>

#include "facts/operators/common.h"

namespace passlib::facts {
namespace {

void shapeOfValue(NodeView& node) {
  node.set(0, kInt64, Shape(1));
  node.out(0).least = 0;
  if (!node.in(0).shape || !node.in(0).isTensor()) return;
  const Shape& shape = *node.in(0).shape;
  const auto rank = static_cast<int64_t>(shape.size());
  const auto bound = [rank](int64_t place) {
    return std::clamp<int64_t>(place < 0 ? place + rank : place, 0, rank);
  };
  const int64_t start = bound(node.integer("start", 0));
  const int64_t end = std::max(bound(node.integer("end", rank)), start);
  node.setShape(0, {end - start});
  node.setItems(0, std::vector<Dim>(shape.begin() + start, shape.begin() + end));
  node.out(0).constant = isStatic(shape);
}

void sizeOfValue(NodeView& node) {
  node.set(0, kInt64, Shape());
  node.out(0).least = 0;
  if (!node.in(0).shape) return;
  node.setItems(0, {product(*node.in(0).shape)});
  node.out(0).constant = isStatic(*node.in(0).shape);
}

void repeatItem(NodeView& node, const Fact& item) {
  const auto count = fewElements(*node.out(0).shape);
  if (!count || item.content == nullptr) return;
  auto made = std::make_shared<Content>();
  const Content& one = *item.content;
  if (!one.items.empty()) made->items.assign(*count, one.items.front());
  if (!one.divisors.empty()) made->divisors.assign(*count, one.divisors.front());
  if (!one.reals.empty()) made->reals.assign(*count, one.reals.front());
  node.out(0).content = std::move(made);
}

void constantOfShape(NodeView& node) {
  Fact item = Fact::tensor(kFloat, {1});
  item.content = makeRealContent({0.0});
  if (node.hasAttribute("value")) {
    const auto stated = node.tensor("value");
    require(stated.has_value());
    item = *stated;
  }
  node.set(0, item.type);
  Shape made;
  if (const std::vector<Dim>* found = node.items(0)) {
    made = *found;
    for (Dim& dim : made) {
      if (dim.isSymbolic() && !atLeast(dim, 0)) dim = Dim();
      require(!dim.isNumber() || dim.number() >= 0);
    }
  } else {
    const Shape& lengths = node.shape(0, 1);
    require(lengths[0].isNumber() && lengths[0].number() >= 0 &&
            lengths[0].number() <= static_cast<int64_t>(kMostElements));
    made.resize(static_cast<std::size_t>(lengths[0].number()));
  }
  node.setShape(0, std::move(made));
  repeatItem(node, item);
}

void range(NodeView& node) {
  node.set(0, node.in(0).type, Shape(1));
  if (isReal(node.in(0).type)) {
    const auto start = node.realsOf(0);
    const auto limit = node.realsOf(1);
    const auto step = node.realsOf(2);
    if (!start || !limit || !step || start->size() != 1 || limit->size() != 1 ||
        step->size() != 1) {
      return;
    }
    const double count = std::ceil(((*limit)[0] - (*start)[0]) / (*step)[0]);
    if (count < 1e9) node.setShape(0, {static_cast<int64_t>(std::max(count, 0.0))});
    return;
  }
  const std::vector<Dim>* start = node.items(0);
  const std::vector<Dim>* limit = node.items(1);
  const std::vector<Dim>* step = node.items(2);
  if (start == nullptr || limit == nullptr || step == nullptr || start->size() != 1 ||
      limit->size() != 1 || step->size() != 1 || !step->front().isNumber() || step->front().is(0)) {
    return;
  }
  const Dim span = limit->front() - start->front();
  const int64_t by = step->front().number();
  if (!span.isNumber()) {
    if (by == 1 && atLeast(span, 0)) node.setShape(0, {span});
    if (by > 1 && atLeast(span, 0)) node.setShape(0, {ceilQuotient(span, by)});
    return;
  }
  const int64_t far = span.number();
  const bool forward = by > 0;
  int64_t count = 0;
  if (forward ? far > 0 : far < 0) count = forward ? (far - 1) / by + 1 : (far + 1) / by + 1;
  node.setShape(0, {count});
  if (count > static_cast<int64_t>(kMostElements)) return;
  std::vector<Dim> items;
  for (int64_t i = 0; i < count; ++i) items.push_back(start->front() + Dim(i) * step->front());
  node.setItems(0, std::move(items));
}

void constant(NodeView& node) {
  constexpr std::array<const char*, 8> kValues = {"value",        "sparse_value", "value_int",
                                                  "value_ints",   "value_float",  "value_floats",
                                                  "value_string", "value_strings"};
  const auto stated_values =
      std::count_if(kValues.begin(), kValues.end(),
                    [&node](const char* name) { return node.hasAttribute(name); });
  if (stated_values != 1) return;  // ONNX's checker refuses it, and runtimes take any of them
  Fact& made = node.out(0);
  if (node.hasAttribute("value")) {
    const auto stated = node.tensor("value");
    if (stated) made = *stated;
  } else if (const auto whole = node.integer("value_int")) {
    made = Fact::tensor(kInt64, Shape());
    made.content = makeContent({*whole});
  } else if (node.hasAttribute("value_ints")) {
    const auto items = *node.integers("value_ints");
    made = Fact::tensor(kInt64, {static_cast<int64_t>(items.size())});
    if (items.size() <= kMostElements) made.content = makeContent(items);
  } else if (node.hasAttribute("value_float")) {
    made = Fact::tensor(kFloat, Shape());
    made.content = makeRealContent({node.real("value_float", 0)});
  } else if (node.hasAttribute("value_floats")) {
    const auto items = *node.reals("value_floats");
    made = Fact::tensor(kFloat, {static_cast<int64_t>(items.size())});
    if (items.size() <= kMostElements) made.content = makeRealContent(items);
  } else if (node.hasAttribute("value_string")) {
    made = Fact::tensor(kString, Shape());
  } else if (node.hasAttribute("value_strings")) {
    made = Fact::tensor(kString, Shape(1));
    if (const auto count = node.countStrings("value_strings")) {
      made.shape = Shape{static_cast<int64_t>(*count)};
    }
  } else if (node.hasAttribute("sparse_value")) {
    // {"shape": [3, 3], "values": {"dtype": ...
    const std::string_view text = node.text("sparse_value");
    const std::size_t values = text.find("\"values\": ");
    require(values != std::string_view::npos);
    const auto tensor = parseTensor(text.substr(values + 10));
    require(tensor.has_value());
    const std::size_t open = text.find('[');
    const std::size_t close = text.find(']');
    std::vector<int64_t> dims;
    require(open < close && close != std::string_view::npos &&
            parseIntegers(text.substr(open, close - open + 1), &dims));
    made = Fact::tensor(tensor->type, Shape(dims.begin(), dims.end()));
  }
  made.constant = true;
}

void eyeLike(NodeView& node) {
  likeInput(node);
  node.out(0).least = 0;
  if (const auto type = node.integer("dtype")) node.set(0, static_cast<Type>(*type));
}

}  // namespace

std::vector<Entry> families::shapes() {
  return {{"Shape", shapeOfValue}, {"Size", sizeOfValue},  {"ConstantOfShape", constantOfShape},
          {"Range", range},        {"Constant", constant}, {"EyeLike", eyeLike}};
}

}  // namespace passlib::facts
