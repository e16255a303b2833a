// Operators that compute each element from those at its place.
#include <cmath>

#include "facts/operators/common.h"

namespace passlib::facts {
namespace {

void elementSame(NodeView& node) { likeInput(node); }

/// Functions whose results are at least 0.
void elementNonNegative(NodeView& node) {
  likeInput(node);
  node.out(0).least = 0;
}

void elementTest(NodeView& node) {
  node.set(0, kBool);
  node.out(0).shape = node.in(0).shape;
}

/// The shape of several values broadcast to each other.
void broadcastInputs(NodeView& node, std::size_t first = 0) {
  Shape total;
  for (std::size_t i = first; i < node.count(); ++i) total = broadcast(total, node.shape(i));
  node.setShape(0, std::move(total));
}

bool isOldBroadcast(const NodeView& node) { return node.opset() < 7 && node.op() != "PRelu"; }

using Binary = Dim (*)(const Dim&, const Dim&);

Dim addItems(const Dim& a, const Dim& b) { return a + b; }
Dim subtractItems(const Dim& a, const Dim& b) { return a - b; }
Dim multiplyItems(const Dim& a, const Dim& b) { return a * b; }
Dim remainderItems(const Dim& a, const Dim& b) {
  if (!b.isNumber() || b.number() <= 0) return {};
  if (a.isNumber()) return a.number() >= 0 ? Dim(a.number() % b.number()) : Dim();
  return quotient(a, b).isKnown() ? Dim(0) : Dim();
}
Dim equalItems(const Dim& a, const Dim& b) {
  return a == b ? Dim(1) : differ(a, b) ? Dim(0) : Dim();
}
Dim greaterItems(const Dim& a, const Dim& b) {
  return atLeast(a - b, 1) ? Dim(1) : atLeast(b - a, 0) ? Dim(0) : Dim();
}
Dim notLessItems(const Dim& a, const Dim& b) {
  return atLeast(a - b, 0) ? Dim(1) : atLeast(b - a, 1) ? Dim(0) : Dim();
}
Dim lessItems(const Dim& a, const Dim& b) { return greaterItems(b, a); }
Dim notGreaterItems(const Dim& a, const Dim& b) { return notLessItems(b, a); }
Dim andItems(const Dim& a, const Dim& b) {
  if (a.is(0) || b.is(0)) return 0;
  return a.is(1) && b.is(1) ? Dim(1) : Dim();
}
Dim orItems(const Dim& a, const Dim& b) {
  if (a.is(1) || b.is(1)) return 1;
  return a.is(0) && b.is(0) ? Dim(0) : Dim();
}
Dim xorItems(const Dim& a, const Dim& b) {
  return a.isNumber() && b.isNumber() ? Dim(a.number() != b.number() ? 1 : 0) : Dim();
}

Binary itemsOf(std::string_view op) {
  static constexpr std::pair<std::string_view, Binary> kRules[] = {{"Add", addItems},
                                                                   {"Sub", subtractItems},
                                                                   {"Mul", multiplyItems},
                                                                   {"Div", towardsZero},
                                                                   {"Mod", remainderItems},
                                                                   {"Equal", equalItems},
                                                                   {"Greater", greaterItems},
                                                                   {"Less", lessItems},
                                                                   {"GreaterOrEqual", notLessItems},
                                                                   {"LessOrEqual", notGreaterItems},
                                                                   {"And", andItems},
                                                                   {"Or", orItems},
                                                                   {"Xor", xorItems},
                                                                   {"Max", maximum},
                                                                   {"Min", minimum},
                                                                   {"Sum", addItems}};
  for (const auto& [name, rule] : kRules) {
    if (name == op) return rule;
  }
  return nullptr;
}

/// Combines the elements of two reals exactly; false if floating point may round.
bool combineReals(std::string_view op, const Dim& a, int64_t below_a, const Dim& b, int64_t below_b,
                  Dim* number, int64_t* divisor) {
  const auto isExact = [](int64_t below) { return (below & (below - 1)) == 0; };
  if (!isExact(below_a) || !isExact(below_b)) return false;
  if (op == "Mul") {
    *number = a * b;
    if (__builtin_mul_overflow(below_a, below_b, divisor)) return false;
  } else if (op == "Div") {
    if (!b.isNumber() || b.number() <= 0) return false;
    *number = a * Dim(below_b);
    if (__builtin_mul_overflow(below_a, b.number(), divisor)) return false;
  } else if (op == "Add" || op == "Sub") {
    const Dim other = b * Dim(below_a);
    *number = op == "Add" ? a * Dim(below_b) + other : a * Dim(below_b) - other;
    if (__builtin_mul_overflow(below_a, below_b, divisor)) return false;
  } else {
    return false;
  }
  return reduceReal(number, divisor);
}

void combineContents(NodeView& node) {
  const Fact& left = node.in(0);
  const Fact& right = node.in(1);
  const Fact& made = node.out(0);
  if (left.content == nullptr || right.content == nullptr || !made.shape) return;
  const Content& a = *left.content;
  const Content& b = *right.content;
  const auto count = fewElements(*made.shape);
  if (!count || node.integer("fmod", 0) != 0 || left.type != right.type) return;
  std::vector<Dim> items;
  items.reserve(*count);
  const bool real = isReal(left.type);
  const Binary rule = itemsOf(node.op());
  std::vector<int64_t> divisors;
  bool known = real ? a.divisors.size() == a.items.size() && b.divisors.size() == b.items.size() &&
                          !a.items.empty() && !b.items.empty()
                    : rule != nullptr;
  if (!known) return;
  forEachBroadcast(*made.shape, {&*left.shape, &*right.shape},
                   [&](const std::vector<std::size_t>& places) {
                     const Dim& one = a.items.at(places[0]);
                     const Dim& other = b.items.at(places[1]);
                     if (!real) {
                       items.push_back(rule(one, other));
                       return;
                     }
                     Dim number;
                     int64_t divisor = 1;
                     known = known && combineReals(node.op(), one, a.divisors[places[0]], other,
                                                   b.divisors[places[1]], &number, &divisor);
                     items.push_back(number);
                     divisors.push_back(divisor);
                   });
  if (!known) return;
  auto content = std::make_shared<Content>();
  content->items = std::move(items);
  content->divisors = std::move(divisors);
  node.out(0).content = std::move(content);
}

void combineElements(NodeView& node) {
  const int8_t least = std::min(node.in(0).least, node.in(1).least);
  if (isOldBroadcast(node)) {
    node.out(0).shape = node.in(0).shape;
    return;
  }
  broadcastInputs(node);
  if (node.op() != "Sub" && node.op() != "Mod" && least >= 0) node.out(0).least = 0;
  combineContents(node);
}

void arithmetic(NodeView& node) {
  node.set(0, node.in(0).type != kUnknownType || node.op() == "Pow" || node.op() == "BitShift"
                  ? node.in(0).type
                  : node.in(1).type);
  combineElements(node);
}

void comparison(NodeView& node) {
  node.set(0, kBool);
  combineElements(node);
}

void variadic(NodeView& node) {
  node.set(0, node.in(0).type);
  for (std::size_t i = 1; i < node.count() && node.out(0).type == kUnknownType; ++i) {
    node.set(0, node.in(i).type);
  }
  if (node.opset() < 8 &&
      (node.op() == "Sum" || node.op() == "Mean" || node.op() == "Max" || node.op() == "Min")) {
    // All inputs have one shape.
    Shape made = node.shape(0);
    for (std::size_t i = 1; i < node.count(); ++i) {
      if (!node.in(i).shape || node.in(i).rank() != made.size()) continue;
      for (std::size_t k = 0; k < made.size(); ++k)
        made[k] = mergeDim(made[k], (*node.in(i).shape)[k]);
    }
    node.setShape(0, std::move(made));
  } else {
    broadcastInputs(node);
  }
  if (node.count() == 1) {
    node.out(0).content = node.in(0).content;
  } else if (node.count() == 2 && node.op() != "Mean" && !isReal(node.in(0).type)) {
    combineContents(node);
  }
}

void slopes(NodeView& node) {
  node.set(0, node.in(0).type);
  if (node.opset() < 7) {
    node.out(0).shape = node.in(0).shape;
    return;
  }
  broadcastInputs(node);
}

void choose(NodeView& node) {
  node.set(0, node.in(1).type != kUnknownType ? node.in(1).type : node.in(2).type);
  broadcastInputs(node);
  const std::vector<Dim>* condition = node.items(0);
  const std::vector<Dim>* one = node.items(1);
  const std::vector<Dim>* other = node.items(2);
  if (condition == nullptr || one == nullptr || other == nullptr) return;
  const Shape target = *node.out(0).shape;
  if (!fewElements(target)) return;
  std::vector<Dim> items;
  forEachBroadcast(target, {&node.shape(0), &node.shape(1), &node.shape(2)},
                   [&](const std::vector<std::size_t>& places) {
                     const Dim& test = condition->at(places[0]);
                     const Dim& a = one->at(places[1]);
                     const Dim& b = other->at(places[2]);
                     items.push_back(test.isNumber() ? (test.is(0) ? b : a) : a == b ? a : Dim());
                   });
  node.setItems(0, std::move(items));
}

void negate(NodeView& node) {
  likeInput(node);
  const std::vector<Dim>* source = node.items(0);
  if (source == nullptr) return;
  std::vector<Dim> items;
  for (const Dim& item : *source) items.push_back(Dim(0) - item);
  node.setItems(0, std::move(items));
}

void logicalNot(NodeView& node) {
  elementTest(node);
  const std::vector<Dim>* source = node.items(0);
  if (source == nullptr) return;
  std::vector<Dim> items;
  for (const Dim& item : *source)
    items.push_back(item.isNumber() ? Dim(item.is(0) ? 1 : 0) : Dim());
  node.setItems(0, std::move(items));
}

void magnitude(NodeView& node) {
  elementNonNegative(node);
  const std::vector<Dim>* source = node.items(0);
  if (source == nullptr) return;
  std::vector<Dim> items;
  for (const Dim& item : *source) {
    items.push_back(atLeast(item, 0) ? item : item.isNumber() ? Dim(0) - item : Dim());
  }
  node.setItems(0, std::move(items));
}

void rounding(NodeView& node) {
  likeInput(node);
  const Content* source = node.in(0).content.get();
  if (source == nullptr || source->divisors.empty()) return;
  auto made = std::make_shared<Content>();
  const bool down = node.op() == "Floor";
  for (std::size_t i = 0; i < source->items.size(); ++i) {
    int64_t divisor = 1;
    const Dim& item = source->items[i];
    if (!down && item.isSymbolic() && source->divisors[i] != 1) return;
    Dim number =
        down ? floorQuotient(item, source->divisors[i]) : ceilQuotient(item, source->divisors[i]);
    if (!number.isKnown() || !reduceReal(&number, &divisor)) return;
    made->items.push_back(number);
    made->divisors.push_back(divisor);
  }
  if (!source->reals.empty()) {
    for (const double real : source->reals)
      made->reals.push_back(down ? std::floor(real) : std::ceil(real));
  }
  node.out(0).content = std::move(made);
}

/// Whether a size stays the same in an integer type of 32 bits or fewer.
bool isPlainItem(const Dim& item) { return !item.isSymbolic() || item.name() != nullptr; }

void castItems(NodeView& node, Type target) {
  const Content* source = node.in(0).content.get();
  if (source == nullptr) return;
  const bool from_real = !source->divisors.empty() || !source->reals.empty();
  if (isReal(target)) {
    auto made = std::make_shared<Content>();
    if (from_real) {
      // Smaller types round.
      const bool wider = target == kDouble || target == node.in(0).type;
      if (wider) node.out(0).content = node.in(0).content;
      return;
    }
    if (target != kFloat && target != kDouble) return;
    for (const Dim& item : source->items) {
      Dim number = item;
      int64_t divisor = 1;
      if (!reduceReal(&number, &divisor)) return;
      made->items.push_back(number);
      made->divisors.push_back(1);
    }
    node.out(0).content = std::move(made);
    return;
  }
  if (target != kBool && !isInteger(target)) return;
  std::vector<Dim> items;
  if (from_real) {
    if (target != kInt64 || source->items.empty()) return;
    for (std::size_t i = 0; i < source->items.size(); ++i) {
      items.push_back(towardsZero(source->items[i], source->divisors[i]));
    }
  } else {
    for (const Dim& item : source->items) {
      if (target == kBool) {
        items.push_back(item.is(0) ? Dim(0) : differ(item, 0) ? Dim(1) : Dim());
      } else {
        items.push_back(target == kInt64 || isPlainItem(item) ? item : Dim());
      }
    }
  }
  node.setItems(0, std::move(items));
}

void cast(NodeView& node) {
  Type target = kUnknownType;
  if (node.op() == "CastLike") {
    target = node.in(1).type;
  } else {
    const std::string_view stated = node.text("to");
    if (node.opset() < 6 && !stated.empty() && (stated[0] < '0' || stated[0] > '9')) {
      std::string lower(stated);
      for (char& letter : lower)
        letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
      target = typeNamed(lower);
    } else {
      target = static_cast<Type>(node.integer("to", 0));
    }
  }
  node.set(0, target);
  node.out(0).shape = node.in(0).shape;
  if (node.in(0).least >= 0 && !isReal(node.in(0).type) && (target == kInt64 || isReal(target))) {
    node.out(0).least = node.in(0).least;
  }
  castItems(node, target);
}

void identity(NodeView& node) {
  const bool present = node.out(0).present;
  node.out(0) = node.in(0);
  node.out(0).present = present;
}

void clip(NodeView& node) {
  likeInput(node);
  const std::vector<Dim>* source = node.items(0);
  if (source == nullptr) return;
  const auto bound = [&](std::size_t number) -> std::optional<Dim> {
    if (!node.has(number)) return std::nullopt;
    const std::vector<Dim>* found = node.items(number);
    return found != nullptr && found->size() == 1 ? found->front() : Dim();
  };
  const std::optional<Dim> low = bound(1);
  const std::optional<Dim> high = bound(2);
  std::vector<Dim> items;
  for (Dim item : *source) {
    if (low) item = maximum(item, *low);
    if (high) item = minimum(item, *high);
    items.push_back(item);
  }
  node.setItems(0, std::move(items));
}

void dropout(NodeView& node) {
  likeInput(node);
  node.out(1).shape = node.in(0).shape;
  node.set(1, node.opset() < 10 ? node.in(0).type : kBool);
}

void reinterpret(NodeView& node) {
  const auto target = static_cast<Type>(node.integer("to", 0));
  node.set(0, target);
  node.out(0).shape = node.in(0).shape;
}

}  // namespace

std::vector<Entry> families::elementwise() {
  std::vector<Entry> made;
  for (const char* op : {"Acos",       "Acosh",       "Asin",
                         "Asinh",      "Atan",        "Atanh",
                         "BitwiseNot", "Celu",        "Cos",
                         "Cosh",       "Elu",         "Erf",
                         "Gelu",       "HardSigmoid", "HardSwish",
                         "Hardmax",    "LeakyRelu",   "Log",
                         "LogSoftmax", "Mish",        "Reciprocal",
                         "Round",      "Selu",        "Shrink",
                         "Sign",       "Sin",         "Sinh",
                         "Softplus",   "Softsign",    "Swish",
                         "Tan",        "Tanh",        "ThresholdedRelu"}) {
    made.push_back({op, elementSame});
  }
  for (const char* op : {"Exp", "Relu", "Sigmoid", "Softmax", "Sqrt"}) {
    made.push_back({op, elementNonNegative});
  }
  for (const char* op : {"IsInf", "IsNaN"}) made.push_back({op, elementTest});
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Pow", "Mod", "BitShift", "BitwiseAnd",
                         "BitwiseOr", "BitwiseXor"}) {
    made.push_back({op, arithmetic});
  }
  for (const char* op : {"Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"}) {
    made.push_back({op, comparison});
  }
  for (const char* op : {"And", "Or", "Xor"}) made.push_back({op, comparison});
  for (const char* op : {"Max", "Min", "Mean", "Sum"}) made.push_back({op, variadic});
  const Entry others[] = {{"Abs", magnitude},      {"Neg", negate},    {"Not", logicalNot},
                          {"Floor", rounding},     {"Ceil", rounding}, {"PRelu", slopes},
                          {"Where", choose},       {"Cast", cast},     {"CastLike", cast},
                          {"Identity", identity},  {"Clip", clip},     {"Dropout", dropout},
                          {"BitCast", reinterpret}};
  made.insert(made.end(), std::begin(others), std::end(others));
  return made;
}

}  // namespace passlib::facts
