#include "rules/terms.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "facts/node_view.h"
#include "graph/attributes.h"

namespace passlib::rules {

using mxnet::ext::MXTensor;
using mxnet::ext::NodeEntry;

namespace {

constexpr double kExactIntegers = 9007199254740992.0;

std::string named(const Term& term) { return "'" + term.text + "'"; }

std::optional<double> realOf(const Value& value) {
  if (value.kind == Value::kReal) return value.real;
  if (value.kind == Value::kTruth) return value.truth ? 1.0 : 0.0;
  const std::optional<int64_t> whole = value.number();
  if (whole && std::fabs(static_cast<double>(*whole)) <= kExactIntegers)
    return static_cast<double>(*whole);
  return std::nullopt;
}

bool isReadable(const MXTensor* tensor) {
  return tensor != nullptr && tensor->data_ptr != nullptr &&
         tensor->stype == mxnet::ext::kDefaultStorage && bytesOf(tensor->dtype) != 0 &&
         tensor->ctx.dev_type.compare(0, 3, "cpu") == 0;
}

constexpr const char* kNoItem = "an item of a list is a list";

/// Lists of lists would grow with each definition that repeats another.
bool isItem(const Value& value) {
  return value.kind != Value::kList && value.kind != Value::kNumbers;
}

Value notKnown(const std::string& what, const Term& term) {
  return Value::unknown("the " + what + " of " + named(term) + " is unknown");
}

/// Gets the only value of an argument. Returns false if it is absent.
bool entryOf(const Scope& scope, const Term& term, NodeEntry* entry) {
  std::vector<NodeEntry> found;
  if (term.kind != Term::kName || !scope.entries(term.text, &found) || found.size() != 1)
    return false;
  *entry = found[0];
  return true;
}

Value absent(const Term& term) { return Value::unknown(named(term) + " is absent"); }

Value shapeOf(const Scope& scope, const Term& term) {
  if (term.kind != Term::kName) return evaluate(term, scope);
  NodeEntry entry;
  if (!entryOf(scope, term, &entry)) return absent(term);
  const facts::Fact& fact = scope.known(entry).fact;
  return fact.shape ? Value::of(*fact.shape) : notKnown("shape", term);
}

// ---- arithmetic ----

Value orUnknown(const Dim& dim) {
  return dim.isKnown() ? Value::of(dim) : Value::unknown("a size has no exact form");
}

/// Applies a function to items of lists, and to one value with each item of a list.
template <typename Apply>
Value eachOf(const Value& left, const Value& right, Apply apply) {
  const bool first = left.kind == Value::kList;
  const bool second = right.kind == Value::kList;
  if (!first && !second) return apply(left, right);
  if (first && second && left.list.size() != right.list.size())
    return Value::unknown("two lists differ in length");
  std::vector<Value> made;
  const std::size_t count = first ? left.list.size() : right.list.size();
  for (std::size_t pos = 0; pos < count; ++pos) {
    Value each = apply(first ? left.list[pos] : left, second ? right.list[pos] : right);
    if (!each.known()) return each;
    made.push_back(std::move(each));
  }
  return Value::of(std::move(made));
}

Value calculated(const std::string& op, const Value& left, const Value& right) {
  if (!left.known()) return left;
  if (!right.known()) return right;
  if (left.kind == Value::kInteger && right.kind == Value::kInteger) {
    if (op == "+") return orUnknown(left.integer + right.integer);
    if (op == "-") return orUnknown(left.integer - right.integer);
    if (op == "*") return orUnknown(left.integer * right.integer);
    const std::optional<int64_t> divisor = right.number();
    if (op == "/") {
      const std::optional<int64_t> number = left.number();
      if (number && divisor && *divisor != 0 && *divisor != -1 && *number % *divisor == 0)
        return Value::of(*number / *divisor);
      if (number && divisor && *divisor != 0)
        return Value::of(static_cast<double>(*number) / static_cast<double>(*divisor));
      if (!facts::atLeast(right.integer, 1)) return Value::unknown("a divisor may be 0");
      return orUnknown(facts::quotient(left.integer, right.integer));
    }
    if (divisor && left.number() && *divisor > 0) {
      const int64_t rest = *left.number() % *divisor;
      return Value::of(rest < 0 ? rest + *divisor : rest);
    }
    if (divisor && *divisor > 0 && facts::quotient(left.integer, right.integer).isKnown())
      return Value::of(int64_t{0});
    return Value::unknown("a remainder of open sizes is unknown");
  }
  const std::optional<double> one = realOf(left);
  const std::optional<double> other = realOf(right);
  if (!one || !other)
    return Value::unknown(left.described() + " " + op + " " + right.described() + " has no value");
  if (op == "+") return Value::of(*one + *other);
  if (op == "-") return Value::of(*one - *other);
  if (op == "*") return Value::of(*one * *other);
  if (op == "/" && *other != 0) return Value::of(*one / *other);
  return Value::unknown("a division by zero");
}

Value arithmetic(const std::string& op, const Value& left, const Value& right) {
  if (!left.known()) return left;
  if (!right.known()) return right;
  const auto apply = [&op](const Value& one, const Value& other) {
    return calculated(op, one, other);
  };
  const bool first = left.kind == Value::kNumbers;
  const bool second = right.kind == Value::kNumbers;
  if (!first && !second) return eachOf(left, right, apply);
  const std::optional<double> number = realOf(first ? right : left);
  if ((first && second && left.numbers.size() != right.numbers.size()) ||
      (first != second && !number))
    return Value::unknown("constants of different sizes");
  Value made;
  made.kind = Value::kNumbers;
  const std::size_t count = first ? left.numbers.size() : right.numbers.size();
  for (std::size_t pos = 0; pos < count; ++pos) {
    const Value each = calculated(op, Value::of(first ? left.numbers[pos] : *number),
                                  Value::of(second ? right.numbers[pos] : *number));
    if (!each.known()) return each;
    made.numbers.push_back(each.real);
  }
  return made;
}

// ---- comparisons ----

Value compared(const std::string& op, const Value& left, const Value& right, double tolerance);

Value sizesCompared(const std::string& op, const Dim& left, const Dim& right) {
  if (left == right) return Value::of(op == "=" || op == "<=" || op == ">=");
  const bool above = facts::atLeast(left - right, 1);
  const bool below = facts::atLeast(right - left, 1);
  if (op == "=" || op == "!=") {
    if (above || below) return Value::of(op == "!=");
  } else if (op == "<" || op == ">=") {
    if (below) return Value::of(op == "<");
    if (facts::atLeast(left - right, 0)) return Value::of(op == ">=");
  } else {
    if (above) return Value::of(op == ">");
    if (facts::atLeast(right - left, 0)) return Value::of(op == "<=");
  }
  return Value::unknown("not known whether " + facts::print(left) + " " + op + " " +
                        facts::print(right));
}

bool numbersCompared(const std::string& op, double left, double right, double tolerance) {
  if (op == "near") return left == right || std::fabs(left - right) <= tolerance;
  if (op == "=") return left == right;
  if (op == "!=") return left != right;
  if (op == "<") return left < right;
  if (op == "<=") return left <= right;
  return op == ">" ? left > right : left >= right;
}

Value listsCompared(const std::string& op, const Value& left, const Value& right,
                    double tolerance) {
  if (left.list.size() != right.list.size()) return Value::of(op == "!=");
  Value open;
  bool is_open = false;
  for (std::size_t pos = 0; pos < left.list.size(); ++pos) {
    Value each = compared(op == "!=" ? "=" : op, left.list[pos], right.list[pos], tolerance);
    if (each.kind == Value::kTruth && !each.truth) return Value::of(op == "!=");
    if (!each.known() && !is_open) {
      open = std::move(each);
      is_open = true;
    }
  }
  return is_open ? open : Value::of(op != "!=");
}

Value compared(const std::string& op, const Value& left, const Value& right, double tolerance) {
  if (!left.known()) return left;
  if (!right.known()) return right;
  const bool equality = op == "=" || op == "!=";
  if (left.kind == Value::kList && right.kind == Value::kList && (equality || op == "near"))
    return listsCompared(op, left, right, tolerance);
  if (left.kind == Value::kList || right.kind == Value::kList) {
    const auto apply = [&](const Value& one, const Value& other) {
      return compared(op, one, other, tolerance);
    };
    Value made = eachOf(left, right, apply);
    // One item compares as a number does.
    if (made.kind == Value::kList && made.list.size() == 1) return made.list[0];
    return made;
  }
  if (left.kind == Value::kNumbers || right.kind == Value::kNumbers) {
    const bool first = left.kind == Value::kNumbers;
    const bool second = right.kind == Value::kNumbers;
    const std::optional<double> number = realOf(first ? right : left);
    if (first && second && left.numbers.size() != right.numbers.size())
      return Value::of(op == "!=");
    if (first != second && !number) return Value::unknown("a constant is compared with no number");
    Value made;
    made.kind = Value::kNumbers;
    made.truths = true;
    const std::size_t count = first ? left.numbers.size() : right.numbers.size();
    for (std::size_t pos = 0; pos < count; ++pos) {
      made.numbers.push_back(numbersCompared(op, first ? left.numbers[pos] : *number,
                                             second ? right.numbers[pos] : *number, tolerance));
    }
    if (!first || !second) return made;
    const bool all = std::all_of(made.numbers.begin(), made.numbers.end(),
                                 [](double each) { return each != 0; });
    const bool any = std::any_of(made.numbers.begin(), made.numbers.end(),
                                 [](double each) { return each != 0; });
    return Value::of(op == "!=" ? any : all);
  }
  if (left.kind == Value::kInteger && right.kind == Value::kInteger && op != "near")
    return sizesCompared(op, left.integer, right.integer);
  if (equality && left.kind == Value::kText && right.kind == Value::kText)
    return Value::of((left.text == right.text) == (op == "="));
  if (equality && (left.kind == Value::kType || right.kind == Value::kType)) {
    const auto code = [](const Value& value) -> int64_t {
      return value.kind == Value::kType ? value.type : value.number().value_or(-1);
    };
    return Value::of((code(left) == code(right)) == (op == "="));
  }
  if (equality && left.kind == Value::kEntry && right.kind == Value::kEntry)
    return Value::of((left.entries[0] == right.entries[0]) == (op == "="));
  const std::optional<double> one = realOf(left);
  const std::optional<double> other = realOf(right);
  if (one && other) return Value::of(numbersCompared(op, *one, *other, tolerance));
  if (op == "=" && left.kind != right.kind && left.kind != Value::kInteger &&
      right.kind != Value::kInteger)
    return Value::of(false);
  return Value::unknown("not known whether " + left.described() + " " + op + " " +
                        right.described());
}

// ---- logic ----

Value negated(Value value) {
  if (value.kind != Value::kTruth) return value;
  value.truth = !value.truth;
  return value;
}

/// `stop`: the value that decides, true for `or`.
Value joined(const Term& term, const Scope& scope, bool stop) {
  Value open;
  bool is_open = false;
  for (const Term& child : term.children) {
    Value each = evaluate(child, scope);
    if (each.kind == Value::kTruth && each.truth == stop) return each;
    if (each.kind != Value::kTruth && !is_open) {
      open = each.known() ? Value::unknown(each.described() + " is no condition") : std::move(each);
      is_open = true;
    }
  }
  return is_open ? open : Value::of(!stop);
}

Value operated(const Term& term, const Scope& scope) {
  const std::string& op = term.text;
  if (op == "and" || op == "or") return joined(term, scope, op == "or");
  if (op == "not") return negated(evaluate(term.children[0], scope));
  const Value left = evaluate(term.children[0], scope);
  if (op == "negative") return arithmetic("-", Value::of(int64_t{0}), left);
  if (op == "in") {
    Value open;
    bool is_open = false;
    for (const Term& choice : term.children[1].children) {
      Value each = compared("=", left, evaluate(choice, scope), 0);
      if (each.isTrue()) return each;
      if (each.kind != Value::kTruth && !is_open) {
        open = std::move(each);
        is_open = true;
      }
    }
    return is_open ? open : Value::of(false);
  }
  const Value right = evaluate(term.children[1], scope);
  if (op == "index") {
    if (!left.known()) return left;
    const std::optional<int64_t> index = right.number();
    if (left.kind != Value::kList || !index)
      return Value::unknown("no list, or no number of an item");
    const int64_t count = static_cast<int64_t>(left.list.size());
    const int64_t item = *index < 0 ? *index + count : *index;
    if (item < 0 || item >= count)
      return Value::unknown("the list has no item " + std::to_string(*index));
    return left.list[static_cast<std::size_t>(item)];
  }
  if (op == "near") {
    const std::optional<double> tolerance = realOf(evaluate(term.children[2], scope));
    return tolerance ? compared("near", left, right, *tolerance)
                     : Value::unknown("the tolerance is no number");
  }
  if (op == "+" || op == "-" || op == "*" || op == "/" || op == "%")
    return arithmetic(op, left, right);
  return compared(op, left, right, 0);
}

// ---- functions ----

Value argument(const Scope& scope, const Term& call, std::size_t pos) {
  return evaluate(call.children[pos], scope);
}

/// The rank that all values have.
Value rankOfAll(const Scope& scope, const Term& term) {
  std::vector<NodeEntry> entries;
  if (!scope.entries(term.text, &entries) || entries.empty()) return absent(term);
  std::optional<std::size_t> rank;
  for (const NodeEntry& entry : entries) {
    const facts::Fact& fact = scope.known(entry).fact;
    if (!fact.shape) return notKnown("rank", term);
    if (rank && *rank != fact.shape->size())
      return Value::unknown("the values of " + named(term) + " differ in rank");
    rank = fact.shape->size();
  }
  return Value::of(static_cast<int64_t>(*rank));
}

Value functionRank(const Scope& scope, const Term& call) {
  if (call.children[0].kind == Term::kStarred) return rankOfAll(scope, call.children[0]);
  const Value shape = shapeOf(scope, call.children[0]);
  if (shape.kind == Value::kList) return Value::of(static_cast<int64_t>(shape.list.size()));
  return shape.known() ? shape : notKnown("rank", call.children[0]);
}

Value functionShape(const Scope& scope, const Term& call) {
  return shapeOf(scope, call.children[0]);
}

Value functionDim(const Scope& scope, const Term& call) {
  const Value shape = shapeOf(scope, call.children[0]);
  if (shape.kind != Value::kList) return shape;
  const std::optional<int64_t> axis = argument(scope, call, 1).number();
  if (!axis) return Value::unknown("the axis is no known number");
  const int64_t rank = static_cast<int64_t>(shape.list.size());
  const int64_t place = *axis < 0 ? *axis + rank : *axis;
  if (place < 0 || place >= rank)
    return Value::unknown(named(call.children[0]) + " has no axis " + std::to_string(*axis));
  return shape.list[static_cast<std::size_t>(place)];
}

Value functionType(const Scope& scope, const Term& call) {
  NodeEntry entry;
  if (!entryOf(scope, call.children[0], &entry)) return absent(call.children[0]);
  const facts::Fact& fact = scope.known(entry).fact;
  return fact.type != 0 ? Value::ofType(fact.type) : notKnown("element type", call.children[0]);
}

Value functionSize(const Scope& scope, const Term& call) {
  const Value shape = shapeOf(scope, call.children[0]);
  if (shape.kind != Value::kList) return shape;
  Value total = Value::of(int64_t{1});
  for (const Value& each : shape.list) total = arithmetic("*", total, each);
  return total;
}

Value functionValue(const Scope& scope, const Term& call) {
  const Term& term = call.children[0];
  NodeEntry entry;
  if (!entryOf(scope, term, &entry)) return absent(term);
  return contentOf(scope.known(entry), term.text);
}

Value functionSign(const Scope& scope, const Term& call) {
  Value value = functionValue(scope, call);
  if (value.kind == Value::kReal) return Value::of(std::signbit(value.real));
  if (value.kind == Value::kInteger) return compared("<", value, Value::of(int64_t{0}), 0);
  if (value.kind != Value::kNumbers) return value.known() ? Value::unknown("no numbers") : value;
  for (double& each : value.numbers) each = std::signbit(each) ? 1 : 0;
  value.truths = true;
  return value;
}

Value functionFinite(const Scope& scope, const Term& call) {
  const Term& term = call.children[0];
  NodeEntry entry;
  if (!entryOf(scope, term, &entry)) return absent(term);
  const MXTensor* constant = scope.known(entry).constant;
  return isReadable(constant) ? Value::of(isFinite(*constant)) : notKnown("value", term);
}

Value functionHalves(const Scope& scope, const Term& call) {
  const Term& term = call.children[0];
  NodeEntry entry;
  if (!entryOf(scope, term, &entry)) return absent(term);
  const MXTensor* constant = scope.known(entry).constant;
  if (!isReadable(constant)) return notKnown("value", term);
  if (constant->shape.empty() || constant->shape.back() % 2 != 0) return Value::of(false);
  const int64_t half = constant->shape.back() / 2;
  for (int64_t pos = 0; half > 0 && pos < constant->size(); ++pos) {
    if (pos / half % 2 == 0 && elementAt(*constant, static_cast<std::size_t>(pos)) !=
                                   elementAt(*constant, static_cast<std::size_t>(pos + half)))
      return Value::of(false);
  }
  return Value::of(true);
}

/// Whether each row shows the elements up to its place and hides those after it.
Value functionCausal(const Scope& scope, const Term& call) {
  const Term& term = call.children[0];
  NodeEntry entry;
  if (!entryOf(scope, term, &entry)) return absent(term);
  const MXTensor* constant = scope.known(entry).constant;
  if (!isReadable(constant)) return notKnown("value", term);
  const std::size_t rank = constant->shape.size();
  if (rank < 2) return Value::of(false);
  const int64_t rows = constant->shape[rank - 2], columns = constant->shape[rank - 1];
  const bool is_truth = onnxType(constant->dtype) == facts::kBool;
  for (int64_t pos = 0; pos < constant->size(); ++pos) {
    const double each = elementAt(*constant, static_cast<std::size_t>(pos));
    const bool is_hidden = pos % columns > pos / columns % rows;
    if (is_truth ? (each != 0) == is_hidden : is_hidden ? !(each < -9e37) : each != 0)
      return Value::of(false);
  }
  return Value::of(true);
}

bool isPositiveZero(const MXTensor& tensor) {
  const std::size_t count = static_cast<std::size_t>(std::max<int64_t>(tensor.size(), 0));
  for (std::size_t pos = 0; pos < count; ++pos) {
    const double each = elementAt(tensor, pos);
    if (each != 0 || std::signbit(each)) return false;
  }
  return true;
}

/// Whether an operator fills its result with 0.0.
bool fillsZero(const mxnet::ext::Node& node) {
  const std::string_view text = attributeOf(node, "value");
  if (text.data() == nullptr) return true;
  const std::optional<facts::Fact> value = facts::parseTensor(text);
  if (!value || value->content == nullptr) return false;
  const auto is_zero = [](double each) { return each == 0 && !std::signbit(each); };
  const facts::Content& content = *value->content;
  return content.reals.empty()
             ? !content.items.empty() && std::all_of(content.items.begin(), content.items.end(),
                                                     [](const Dim& each) { return each.is(0); })
             : std::all_of(content.reals.begin(), content.reals.end(), is_zero);
}

/// How many inputs of an operator have all elements of its results; none of most operators.
std::size_t countMoved(const mxnet::ext::Node& node) {
  static const std::unordered_set<std::string> movements = {
      "Expand",    "Slice",    "Reshape", "Squeeze", "Unsqueeze", "Flatten",
      "Transpose", "Identity", "Gather",  "Tile",    "Split"};
  if (!isOwnDomain(node) || node.inputs.empty()) return 0;
  return node.op == "Concat" ? node.inputs.size() : movements.count(node.op);
}

Value functionZeros(const Scope& scope, const Term& call) {
  NodeEntry entry;
  if (!entryOf(scope, call.children[0], &entry)) return absent(call.children[0]);
  std::vector<const mxnet::ext::Node*> pending = {entry.node};
  std::unordered_set<const mxnet::ext::Node*> seen = {entry.node};
  while (!pending.empty()) {
    const mxnet::ext::Node& node = *pending.back();
    pending.pop_back();
    const MXTensor* constant =
        scope.known(NodeEntry(const_cast<mxnet::ext::Node*>(&node), 0)).constant;
    if (constant != nullptr) {
      if (!isReadable(constant)) return notKnown("value", call.children[0]);
      if (!isPositiveZero(*constant)) return Value::of(false);
      continue;
    }
    if (node.op == "ConstantOfShape" && isOwnDomain(node)) {
      if (!fillsZero(node)) return Value::of(false);
      continue;
    }
    const std::size_t count = countMoved(node);
    if (count == 0 || seen.size() > kMostItems) return notKnown("value", call.children[0]);
    for (std::size_t pos = 0; pos < count; ++pos) {
      if (seen.insert(node.inputs[pos].node).second) pending.push_back(node.inputs[pos].node);
    }
  }
  return Value::of(true);
}

Value reduced(const Scope& scope, const Term& call, bool all) {
  const Value value = argument(scope, call, 0);
  if (value.kind == Value::kTruth || !value.known()) return value;
  if (value.kind == Value::kNumbers && value.truths) {
    const auto is_true = [](double each) { return each != 0; };
    return Value::of(all ? std::all_of(value.numbers.begin(), value.numbers.end(), is_true)
                         : std::any_of(value.numbers.begin(), value.numbers.end(), is_true));
  }
  if (value.kind != Value::kList)
    return Value::unknown(value.described() + " is no list of conditions");
  Value open;
  bool is_open = false;
  for (const Value& each : value.list) {
    if (each.kind == Value::kTruth && each.truth != all) return each;
    if (each.kind != Value::kTruth) {
      open = Value::unknown(each.described() + " is no condition");
      is_open = true;
    }
  }
  return is_open ? open : Value::of(all);
}

Value functionAll(const Scope& scope, const Term& call) { return reduced(scope, call, true); }
Value functionAny(const Scope& scope, const Term& call) { return reduced(scope, call, false); }

Value functionScalar(const Scope& scope, const Term& call) {
  NodeEntry entry;
  if (!entryOf(scope, call.children[0], &entry)) return absent(call.children[0]);
  const MXTensor* constant = scope.known(entry).constant;
  return Value::of(constant != nullptr && constant->size() == 1);
}

Value functionConst(const Scope& scope, const Term& call) {
  NodeEntry entry;
  if (!entryOf(scope, call.children[0], &entry)) return absent(call.children[0]);
  return Value::of(scope.known(entry).constant != nullptr);
}

Value manyUsers(const Term& term) {
  return Value::unknown(named(term) + " is used too often to look at each use");
}

Value functionUsers(const Scope& scope, const Term& call) {
  NodeEntry entry;
  if (!entryOf(scope, call.children[0], &entry)) return absent(call.children[0]);
  std::size_t count = 0;
  bool captured = false;
  if (!scope.users(entry, &count, &captured)) return manyUsers(call.children[0]);
  return Value::of(static_cast<int64_t>(count));
}

Value functionCaptured(const Scope& scope, const Term& call) {
  NodeEntry entry;
  if (!entryOf(scope, call.children[0], &entry)) return absent(call.children[0]);
  std::size_t count = 0;
  bool captured = false;
  if (!scope.users(entry, &count, &captured)) return manyUsers(call.children[0]);
  return Value::of(captured);
}

Value functionOutput(const Scope& scope, const Term& call) {
  NodeEntry entry;
  if (!entryOf(scope, call.children[0], &entry)) return absent(call.children[0]);
  return Value::of(scope.isOutput(entry));
}

Value functionGiven(const Scope& scope, const Term& call) {
  const Term& term = call.children[0];
  if (term.kind == Term::kAttribute) return Value::of(scope.attribute(term.text).known());
  std::vector<NodeEntry> found;
  if (!scope.entries(term.text, &found)) return Value::of(false);
  return Value::of(!found.empty());
}

Value functionOperator(const Scope& scope, const Term& call) {
  NodeEntry entry;
  if (!entryOf(scope, call.children[0], &entry)) return absent(call.children[0]);
  return Value::of(std::string(entry.node->op));
}

Value functionResults(const Scope& scope, const Term& call) {
  NodeEntry entry;
  if (!entryOf(scope, call.children[0], &entry)) return absent(call.children[0]);
  const int count = entry.node->num_outputs;
  return count > 0 ? Value::of(int64_t{count}) : notKnown("number of results", call.children[0]);
}

Value functionInputs(const Scope& scope, const Term& call) {
  const Term& term = call.children[0];
  std::vector<NodeEntry> found;
  if (!scope.entries(term.text, &found)) return absent(term);
  if (term.kind == Term::kStarred) return Value::of(static_cast<int64_t>(found.size()));
  if (found.empty()) return absent(term);
  return Value::of(static_cast<int64_t>(found[0].node->inputs.size()));
}

Value functionSame(const Scope& scope, const Term& call) {
  NodeEntry one;
  NodeEntry other;
  if (!entryOf(scope, call.children[0], &one)) return absent(call.children[0]);
  if (!entryOf(scope, call.children[1], &other)) return absent(call.children[1]);
  if (one == other) return Value::of(true);
  const MXTensor* left = scope.known(one).constant;
  const MXTensor* right = scope.known(other).constant;
  if (!isReadable(left) || !isReadable(right)) return Value::of(false);
  if (left->dtype != right->dtype || left->shape != right->shape) return Value::of(false);
  return Value::of(std::memcmp(left->data_ptr, right->data_ptr,
                               static_cast<std::size_t>(left->size()) * bytesOf(left->dtype)) == 0);
}

Value functionBroadcasts(const Scope& scope, const Term& call) {
  const Value from = shapeOf(scope, call.children[0]);
  if (from.kind != Value::kList) return from;
  if (from.list.empty()) return Value::of(true);
  const Value target = shapeOf(scope, call.children[1]);
  if (target.kind != Value::kList) return target;
  if (from.list.size() > target.list.size()) return Value::of(false);
  const std::size_t shift = target.list.size() - from.list.size();
  for (std::size_t pos = 0; pos < from.list.size(); ++pos) {
    if (compared("=", from.list[pos], Value::of(int64_t{1}), 0).isTrue()) continue;
    const Value each = compared("=", from.list[pos], target.list[pos + shift], 0);
    if (!each.isTrue()) return each;
  }
  return Value::of(true);
}

/// The shapes of values, or a list of sizes.
std::vector<Value> shapesOf(const Scope& scope, const Term& term) {
  std::vector<NodeEntry> entries;
  if (term.kind != Term::kName && term.kind != Term::kStarred) return {evaluate(term, scope)};
  if (!scope.entries(term.text, &entries)) return {evaluate(term, scope)};
  std::vector<Value> shapes;
  for (const NodeEntry& entry : entries) {
    const facts::Fact& fact = scope.known(entry).fact;
    shapes.push_back(fact.shape ? Value::of(*fact.shape) : notKnown("shape", term));
  }
  if (shapes.empty() && term.kind == Term::kName) shapes.push_back(absent(term));
  return shapes;
}

/// The shape to which values and lists of sizes are broadcast; unknown if one may not fit.
Value functionBroadcast(const Scope& scope, const Term& call) {
  std::vector<Value> total;
  const Value one = Value::of(int64_t{1});
  for (const Term& term : call.children) {
    for (const Value& each : shapesOf(scope, term)) {
      if (each.kind != Value::kList)
        return each.known() ? Value::unknown(each.described() + " is no list") : each;
      if (each.list.size() > total.size())
        total.insert(total.begin(), each.list.size() - total.size(), one);
      const std::size_t shift = total.size() - each.list.size();
      for (std::size_t pos = 0; pos < each.list.size(); ++pos) {
        Value& size = total[pos + shift];
        if (!each.list[pos].known()) return each.list[pos];
        if (compared("=", each.list[pos], one, 0).isTrue()) continue;
        if (compared("=", size, one, 0).isTrue()) size = each.list[pos];
        if (compared("=", size, each.list[pos], 0).isTrue()) continue;
        return Value::unknown("one of " + size.described() + " and " + each.list[pos].described() +
                              " may not broadcast to the other");
      }
    }
  }
  return Value::of(std::move(total));
}

Value functionPerChannel(const Scope& scope, const Term& call) {
  const Value shape = shapeOf(scope, call.children[0]);
  const Value whole = shapeOf(scope, call.children[1]);
  const std::optional<int64_t> given = argument(scope, call, 2).number();
  if (shape.kind != Value::kList) return shape;
  if (whole.kind != Value::kList) return whole;
  if (!given) return Value::unknown("the axis is no known number");
  const int64_t rank = static_cast<int64_t>(whole.list.size());
  const int64_t axis = *given < 0 ? *given + rank : *given;
  const int64_t own = static_cast<int64_t>(shape.list.size());
  if (own > rank || axis < 0 || axis >= rank) return Value::of(false);
  for (int64_t pos = 0; pos < own; ++pos) {
    const Value& size = shape.list[static_cast<std::size_t>(pos)];
    if (compared("=", size, Value::of(int64_t{1}), 0).isTrue()) continue;
    if (pos + rank - own != axis) return Value::of(false);
    const Value each = compared("=", size, whole.list[static_cast<std::size_t>(axis)], 0);
    if (!each.isTrue()) return each;
  }
  return Value::of(true);
}

/// The only axis along which a value has another dimension than 1, of an operand of a rank.
Value functionChannel(const Scope& scope, const Term& call) {
  const Value shape = shapeOf(scope, call.children[0]);
  const std::optional<int64_t> rank = argument(scope, call, 1).number();
  if (shape.kind != Value::kList) return shape;
  if (!rank) return Value::unknown("the rank is no known number");
  const int64_t own = static_cast<int64_t>(shape.list.size());
  int64_t found = -1;
  for (int64_t axis = 0; axis < own; ++axis) {
    const Value& size = shape.list[static_cast<std::size_t>(axis)];
    if (compared("=", size, Value::of(int64_t{1}), 0).isTrue()) continue;
    if (found >= 0 || !size.number())
      return Value::unknown(named(call.children[0]) + " has several axes, or open ones");
    found = axis;
  }
  if (found < 0 || own > *rank)
    return Value::unknown(named(call.children[0]) + " has no axis that is not 1");
  return Value::of(found + *rank - own);
}

int typeCode(const Value& value) {
  if (value.kind == Value::kType) return value.type;
  if (value.kind == Value::kText) return typeNamed(value.text);
  return static_cast<int>(value.number().value_or(0));
}

Value functionLossless(const Scope& scope, const Term& call) {
  const Value from = argument(scope, call, 0);
  const Value target = argument(scope, call, 1);
  if (!from.known()) return from;
  if (!target.known()) return target;
  return Value::of(isLossless(typeCode(from), typeCode(target)));
}

Value ofType(const Scope& scope, const Term& call, bool (*test)(int)) {
  const Value type = argument(scope, call, 0);
  return type.known() ? Value::of(test(typeCode(type))) : type;
}
Value functionIsReal(const Scope& scope, const Term& call) { return ofType(scope, call, isReal); }
Value functionIsWhole(const Scope& scope, const Term& call) { return ofType(scope, call, isWhole); }

Value functionOpset(const Scope& scope, const Term& call) {
  const Value domain = argument(scope, call, 0);
  return Value::of(scope.operatorSet(domain.text));
}

// ---- functions of lists ----

std::vector<Dim> counted(int64_t from, int64_t end) {
  std::vector<Dim> made;
  for (int64_t each = from; each < end && made.size() < kMostItems; ++each) made.emplace_back(each);
  return made;
}

Value functionRange(const Scope& scope, const Term& call) {
  const Value first = argument(scope, call, 0);
  if (!first.known()) return first;
  const std::optional<int64_t> from = call.children.size() > 1 ? first.number() : 0;
  const Value last = argument(scope, call, call.children.size() - 1);
  if (!last.known()) return last;
  if (!from || !last.number()) return Value::unknown("a range has known ends");
  return Value::of(counted(*from, *last.number()));
}

Value functionLast(const Scope& scope, const Term& call) {
  const std::optional<int64_t> count = argument(scope, call, 0).number();
  const Value rank = argument(scope, call, 1);
  if (!rank.known()) return rank;
  if (!count || !rank.number()) return Value::unknown("the number of axes is unknown");
  const Value first = Value::of(Dim(*rank.number()) - Dim(*count));
  if (!first.number()) return Value::unknown("a range has known ends");
  return Value::of(counted(*first.number(), *rank.number()));
}

Value functionLastDims(const Scope& scope, const Term& call) {
  Value shape = shapeOf(scope, call.children[0]);
  const std::optional<int64_t> count = argument(scope, call, 1).number();
  if (shape.kind != Value::kList) return shape;
  if (!count || *count < 0 || *count > static_cast<int64_t>(shape.list.size()))
    return Value::unknown("the number of axes is unknown or above the rank");
  shape.list.erase(shape.list.begin(), shape.list.end() - static_cast<std::ptrdiff_t>(*count));
  return shape;
}

Value functionLength(const Scope& scope, const Term& call) {
  const Value list = argument(scope, call, 0);
  if (!list.known()) return list;
  if (list.kind != Value::kList) return Value::unknown(list.described() + " is no list");
  return Value::of(static_cast<int64_t>(list.list.size()));
}

Value functionProduct(const Scope& scope, const Term& call) {
  const Value list = argument(scope, call, 0);
  if (!list.known()) return list;
  if (list.kind != Value::kList) return Value::unknown(list.described() + " is no list");
  Value total = Value::of(int64_t{1});
  for (const Value& each : list.list) total = arithmetic("*", total, each);
  return total;
}

std::optional<std::vector<int64_t>> integersAt(const Scope& scope, const Term& call,
                                               std::size_t pos, Value* value) {
  *value = argument(scope, call, pos);
  if (!value->known()) return std::nullopt;
  std::optional<std::vector<int64_t>> found = value->integers();
  if (!found) *value = Value::unknown(value->described() + " is no list of known numbers");
  return found;
}

Value ofIntegers(const std::vector<int64_t>& numbers) {
  return Value::of(std::vector<Dim>(numbers.begin(), numbers.end()));
}

Value functionNormalize(const Scope& scope, const Term& call) {
  const Value given = argument(scope, call, 0);
  if (!given.known()) return given;
  const std::optional<int64_t> rank = argument(scope, call, 1).number();
  std::vector<int64_t> axes;
  if (given.kind == Value::kInteger && given.number()) {
    axes.push_back(*given.number());
  } else if (const auto numbers = given.integers()) {
    axes = *numbers;
  } else {
    return Value::unknown(given.described() + " is no list of axes");
  }
  for (int64_t& axis : axes) {
    if (axis < 0) {
      if (!rank) return Value::unknown("an axis counts from the end of an unknown rank");
      axis += std::max<int64_t>(*rank, 0);
    }
    if (axis < 0 || (rank && axis >= *rank))
      return Value::unknown("an axis is outside of the rank");
  }
  return given.kind == Value::kInteger ? Value::of(axes[0]) : ofIntegers(axes);
}

bool isOrder(const std::vector<int64_t>& order) {
  std::vector<char> seen(order.size(), 0);
  for (const int64_t axis : order) {
    if (axis < 0 || axis >= static_cast<int64_t>(order.size()) ||
        seen[static_cast<std::size_t>(axis)] != 0)
      return false;
    seen[static_cast<std::size_t>(axis)] = 1;
  }
  return true;
}

Value functionCompose(const Scope& scope, const Term& call) {
  Value value;
  const auto first = integersAt(scope, call, 0, &value);
  if (!first) return value;
  const auto second = integersAt(scope, call, 1, &value);
  if (!second) return value;
  if (first->size() != second->size() || !isOrder(*first) || !isOrder(*second))
    return Value::unknown("no two orders of the same axes");
  std::vector<int64_t> made;
  for (const int64_t axis : *second) made.push_back((*first)[static_cast<std::size_t>(axis)]);
  return ofIntegers(made);
}

Value functionInvert(const Scope& scope, const Term& call) {
  Value value;
  const auto order = integersAt(scope, call, 0, &value);
  if (!order) return value;
  if (!isOrder(*order)) return Value::unknown("no order of axes");
  std::vector<int64_t> made(order->size());
  for (std::size_t pos = 0; pos < made.size(); ++pos)
    made[static_cast<std::size_t>((*order)[pos])] = static_cast<int64_t>(pos);
  return ofIntegers(made);
}

Value functionPermute(const Scope& scope, const Term& call) {
  const Value list = argument(scope, call, 0);
  if (!list.known()) return list;
  Value value;
  const auto order = integersAt(scope, call, 1, &value);
  if (!order) return value;
  const std::size_t rank = order->size();
  if (list.kind != Value::kList || !isOrder(*order) || rank == 0 ||
      (list.list.size() != rank && list.list.size() != 2 * rank))
    return Value::unknown("the list has not one item, or two, for each axis");
  std::vector<Value> made;
  for (std::size_t start = 0; start < list.list.size(); start += rank) {
    for (const int64_t axis : *order)
      made.push_back(list.list[start + static_cast<std::size_t>(axis)]);
  }
  return Value::of(std::move(made));
}

/// Items of a list at the places that a second list names.
Value functionSelect(const Scope& scope, const Term& call) {
  const Value list = argument(scope, call, 0);
  if (!list.known()) return list;
  Value value;
  const auto places = integersAt(scope, call, 1, &value);
  if (!places) return value;
  std::vector<Value> made;
  for (const int64_t place : *places) {
    const int64_t count = static_cast<int64_t>(list.list.size());
    const int64_t item = place < 0 ? place + count : place;
    if (list.kind != Value::kList || item < 0 || item >= count)
      return Value::unknown("the list has no item " + std::to_string(place));
    made.push_back(list.list[static_cast<std::size_t>(item)]);
  }
  return Value::of(std::move(made));
}

Value functionConcat(const Scope& scope, const Term& call) {
  std::vector<Value> made;
  for (std::size_t pos = 0; pos < call.children.size(); ++pos) {
    Value each = argument(scope, call, pos);
    if (!each.known()) return each;
    if (each.kind == Value::kNumbers) return Value::unknown(kNoItem);
    if (each.kind != Value::kList) {
      made.push_back(std::move(each));
    } else {
      made.insert(made.end(), each.list.begin(), each.list.end());
    }
    if (made.size() > kMostItems) break;
  }
  return Value::of(std::move(made));
}

Value functionWithout(const Scope& scope, const Term& call) {
  const Value list = argument(scope, call, 0);
  if (!list.known()) return list;
  Value value;
  const auto places = integersAt(scope, call, 1, &value);
  if (!places) return value;
  if (list.kind != Value::kList) return Value::unknown(list.described() + " is no list");
  const int64_t count = static_cast<int64_t>(list.list.size());
  std::vector<Value> made;
  for (int64_t pos = 0; pos < count; ++pos) {
    if (std::find(places->begin(), places->end(), pos) == places->end() &&
        std::find(places->begin(), places->end(), pos - count) == places->end())
      made.push_back(list.list[static_cast<std::size_t>(pos)]);
  }
  return Value::of(std::move(made));
}

/// The sizes of a shape for Reshape. One open size may be 0 too, of a value that is then empty.
Value functionReshapeTo(const Scope& scope, const Term& call) {
  Value sizes = argument(scope, call, 0);
  if (!sizes.known()) return sizes;
  if (sizes.kind != Value::kList) return Value::unknown(sizes.described() + " is no list");
  bool is_open = false;
  for (Value& each : sizes.list) {
    if (each.number() && *each.number() > 0) continue;
    if (is_open || each.kind != Value::kInteger || each.number())
      return Value::unknown(sizes.described() + " has sizes that are 0, or several open ones");
    is_open = true;
    each = Value::of(int64_t{-1});
  }
  return sizes;
}

/// A list with an item at places of the result, as Unsqueeze puts axes of 1.
Value functionInsert(const Scope& scope, const Term& call) {
  const Value list = argument(scope, call, 0);
  const Value item = argument(scope, call, 2);
  if (!list.known()) return list;
  if (!item.known()) return item;
  if (!isItem(item)) return Value::unknown(kNoItem);
  Value value;
  auto places = integersAt(scope, call, 1, &value);
  if (!places) return value;
  if (list.kind != Value::kList) return Value::unknown(list.described() + " is no list");
  const int64_t count = static_cast<int64_t>(list.list.size() + places->size());
  for (int64_t& place : *places) place += place < 0 ? count : 0;
  std::sort(places->begin(), places->end());
  std::vector<Value> made = list.list;
  for (const int64_t place : *places) {
    if (place < 0 || place > static_cast<int64_t>(made.size()))
      return Value::unknown("an axis is outside of the rank");
    made.insert(made.begin() + static_cast<std::ptrdiff_t>(place), item);
  }
  return Value::of(std::move(made));
}

Value functionSlice(const Scope& scope, const Term& call) {
  const Value list = argument(scope, call, 0);
  if (!list.known()) return list;
  const std::optional<int64_t> first = argument(scope, call, 1).number();
  const std::optional<int64_t> last = argument(scope, call, 2).number();
  const int64_t count = static_cast<int64_t>(list.list.size());
  if (list.kind != Value::kList || !first || !last || *first < 0 || *last > count || *first > *last)
    return Value::unknown("a part of a list lies in the list");
  return Value::of(std::vector<Value>(list.list.begin() + static_cast<std::ptrdiff_t>(*first),
                                      list.list.begin() + static_cast<std::ptrdiff_t>(*last)));
}

Value functionRepeat(const Scope& scope, const Term& call) {
  const Value item = argument(scope, call, 0);
  const std::optional<int64_t> count = argument(scope, call, 1).number();
  if (!item.known()) return item;
  if (!isItem(item)) return Value::unknown(kNoItem);
  if (!count || *count < 0 || *count > static_cast<int64_t>(kMostItems))
    return Value::unknown("a list has a known number of items");
  return Value::of(std::vector<Value>(static_cast<std::size_t>(*count), item));
}

Value functionSorted(const Scope& scope, const Term& call) {
  Value value;
  auto numbers = integersAt(scope, call, 0, &value);
  if (!numbers) return value;
  std::sort(numbers->begin(), numbers->end());
  return ofIntegers(*numbers);
}

Value functionReversed(const Scope& scope, const Term& call) {
  Value list = argument(scope, call, 0);
  std::reverse(list.list.begin(), list.list.end());
  return list;
}

Value functionContains(const Scope& scope, const Term& call) {
  const Value list = argument(scope, call, 0);
  const Value item = argument(scope, call, 1);
  if (!list.known()) return list;
  if (list.kind != Value::kList) return Value::unknown(list.described() + " is no list");
  Value open;
  bool is_open = false;
  for (const Value& each : list.list) {
    Value equal = compared("=", each, item, 0);
    if (equal.isTrue()) return equal;
    if (!equal.known()) {
      open = std::move(equal);
      is_open = true;
    }
  }
  return is_open ? open : Value::of(false);
}

Value functionEither(const Scope& scope, const Term& call) {
  const Value first = argument(scope, call, 0);
  return first.known() ? first : argument(scope, call, 1);
}

Value extreme(const Scope& scope, const Term& call, bool greatest) {
  const Value one = argument(scope, call, 0);
  const Value other = argument(scope, call, 1);
  const Value above = compared(">=", one, other, 0);
  if (above.kind != Value::kTruth) return above.known() ? Value::unknown("no two numbers") : above;
  return above.truth == greatest ? one : other;
}
Value functionMaximum(const Scope& scope, const Term& call) { return extreme(scope, call, true); }
Value functionMinimum(const Scope& scope, const Term& call) { return extreme(scope, call, false); }

Value functionRoot(const Scope& scope, const Term& call) {
  const Value value = argument(scope, call, 0);
  if (!value.known()) return value;
  const std::optional<double> number = realOf(value);
  if (!number || *number < 0) return Value::unknown(value.described() + " has no square root");
  return Value::of(std::sqrt(*number));
}

// ---- names ----

Value ofName(const Term& term, const Scope& scope) {
  Value found;
  if (scope.definition(term.text, &found)) return found;
  if (term.text == "true" || term.text == "false") return Value::of(term.text == "true");
  if (term.text == "opset") return Value::of(scope.operatorSet(""));
  std::vector<NodeEntry> entries;
  if (scope.entries(term.text, &entries)) {
    if (entries.empty()) return absent(term);
    found.kind = entries.size() == 1 ? Value::kEntry : Value::kEntries;
    found.entries = std::move(entries);
    return found;
  }
  if (const int type = typeNamed(term.text)) return Value::ofType(type);
  return Value::of(term.text);
}

Value listed(const Term& term, const Scope& scope) {
  std::vector<Value> items;
  for (const Term& child : term.children) {
    Value each = evaluate(child, scope);
    if (!each.known()) return each;
    if (!isItem(each)) return Value::unknown(kNoItem);
    items.push_back(std::move(each));
  }
  return Value::of(std::move(items));
}

}  // namespace

// ---- values ----

Value Value::unknown(const std::string& missing) {
  Value made;
  made.text = missing;
  return made;
}
Value Value::of(bool truth) {
  Value made;
  made.kind = kTruth;
  made.truth = truth;
  return made;
}
Value Value::of(const Dim& integer) {
  if (!integer.isKnown()) return unknown("a dimension is unknown");
  Value made;
  made.kind = kInteger;
  made.integer = integer;
  return made;
}
Value Value::of(double real) {
  Value made;
  made.kind = kReal;
  made.real = real;
  return made;
}
Value Value::of(const std::string& text) {
  Value made;
  made.kind = kText;
  made.text = text;
  return made;
}
Value Value::ofType(int type) {
  Value made;
  made.kind = kType;
  made.type = type;
  return made;
}
Value Value::of(const std::vector<Dim>& integers) {
  std::vector<Value> items;
  items.reserve(integers.size());
  for (const Dim& each : integers) items.push_back(of(each));
  return of(std::move(items));
}
Value Value::of(std::vector<Value> list) {
  if (list.size() > kMostItems) return unknown("a list of too many items");
  for (const Value& each : list) {
    if (!isItem(each)) return unknown(kNoItem);
  }
  Value made;
  made.kind = kList;
  made.list = std::move(list);
  return made;
}

std::optional<int64_t> Value::number() const {
  if (kind != kInteger || !integer.isNumber()) return std::nullopt;
  return integer.number();
}

std::optional<std::vector<int64_t>> Value::integers() const {
  if (kind != kList) return std::nullopt;
  std::vector<int64_t> made;
  for (const Value& each : list) {
    const std::optional<int64_t> number = each.number();
    if (!number) return std::nullopt;
    made.push_back(*number);
  }
  return made;
}

bool Value::isNumeric() const {
  if (kind == kList)
    return std::all_of(list.begin(), list.end(),
                       [](const Value& each) { return each.isNumeric(); });
  return kind == kReal || number().has_value();
}

std::optional<std::string> Value::attribute() const {
  switch (kind) {
    case kTruth:
      return truth ? "1" : "0";
    case kInteger:
      return number() ? std::optional<std::string>(std::to_string(*number())) : std::nullopt;
    case kReal: {
      if (!std::isfinite(static_cast<float>(real))) return std::nullopt;  // attributes have no such
      const std::string made = mxnet::ext::JsonVal::real(static_cast<float>(real)).dump();
      // An operator without a schema has no other sign of the type.
      return made.find_first_of(".eE") == std::string::npos ? made + ".0" : made;
    }
    case kText:
      return text;
    case kType:
      return std::to_string(type);
    case kList: {
      std::string made = "[";
      for (const Value& each : list) {
        const std::optional<std::string> item = each.attribute();
        if (!item || each.kind == kList || each.kind == kText) return std::nullopt;
        made += (made.size() > 1 ? ", " : "") + *item;
      }
      return made + "]";
    }
    default:
      return std::nullopt;
  }
}

std::string Value::described() const {
  switch (kind) {
    case kUnknown:
      return text;
    case kInteger:
      return facts::print(integer);
    case kTruth:
      return truth ? "true" : "false";
    case kType:
      return typeName(type);
    case kList: {
      std::string made = "[";
      for (const Value& each : list) made += (made.size() > 1 ? ", " : "") + each.described();
      return made + "]";
    }
    case kNumbers:
      return std::to_string(numbers.size()) + " numbers";
    case kEntry:
    case kEntries:
      return "the value of '" + entries[0].node->name + "'";
    default:
      return attribute().value_or("a value");
  }
}

Value contentOf(const Known& known, const std::string& name) {
  const facts::Fact& fact = known.fact;
  const MXTensor* tensor = known.constant;
  if (tensor == nullptr && fact.content && fact.shape && fact.content->divisors.empty()) {
    const std::vector<Dim>& items = fact.content->items;
    if (fact.shape->empty() && items.size() == 1) return Value::of(items[0]);
    if (fact.shape->size() == 1 && fact.shape->front().is(static_cast<int64_t>(items.size())))
      return Value::of(items);
  }
  if (!isReadable(tensor)) return Value::unknown("the value of '" + name + "' is unknown");
  const std::size_t count = static_cast<std::size_t>(std::max<int64_t>(tensor->size(), 0));
  const int code = onnxType(tensor->dtype);
  if ((isWhole(code) || code == 9) && tensor->shape.size() <= 1 && count <= kMostItems &&
      code != 13) {
    if (tensor->shape.empty()) return Value::of(integerAt(*tensor, 0));
    std::vector<Dim> items;
    for (std::size_t pos = 0; pos < count; ++pos) items.emplace_back(integerAt(*tensor, pos));
    return Value::of(items);
  }
  if (count == 1) return Value::of(elementAt(*tensor, 0));
  if (count > kMostElements)
    return Value::unknown("'" + name + "' has too many elements to look at");
  Value made;
  made.kind = Value::kNumbers;
  made.numbers.reserve(count);
  for (std::size_t pos = 0; pos < count; ++pos) {
    made.numbers.push_back(elementAt(*tensor, pos));
    if (std::fabs(made.numbers.back()) > kExactIntegers && !isReal(code))
      return Value::unknown("'" + name + "' has elements of more than 53 bits");
  }
  return made;
}

Value attributeValue(const std::string& text) {
  const auto number = [](const std::string& item) -> Value {
    if (item.empty() || item.find_first_not_of("+-.0123456789eE") != std::string::npos)
      return Value::of(item);
    char* last = nullptr;
    const bool whole = item.find_first_of(".eE") == std::string::npos && item.size() < 20;
    if (whole) {
      const long long made = std::strtoll(item.c_str(), &last, 10);
      if (*last == '\0') return Value::of(static_cast<int64_t>(made));
    } else {
      double made = 0;
      if (mxnet::ext::host::scanDouble(item, &made))
        return Value::of(static_cast<double>(static_cast<float>(made)));
    }
    return Value::of(item);
  };
  if (text == "True" || text == "False") return Value::of(int64_t{text == "True" ? 1 : 0});
  const bool is_list = text.size() >= 2 && ((text.front() == '[' && text.back() == ']') ||
                                            (text.front() == '(' && text.back() == ')'));
  if (!is_list) return number(text);
  std::vector<Value> items;
  std::size_t pos = 1;
  const std::size_t end = text.size() - 1;
  while (pos < end) {
    while (pos < end && text[pos] == ' ') ++pos;
    if (pos == end) break;
    std::size_t next = std::min(text.find(',', pos), end);
    std::size_t last = next;
    while (last > pos && text[last - 1] == ' ') --last;
    Value item = number(text.substr(pos, last - pos));
    if (item.kind == Value::kText || items.size() > kMostItems) return Value::of(text);  // of texts
    items.push_back(std::move(item));
    pos = next + 1;
  }
  return Value::of(std::move(items));
}

bool areEqual(const Value& left, const Value& right) {
  if (left.kind == Value::kList && right.kind == Value::kList) {
    return left.list.size() == right.list.size() &&
           std::equal(left.list.begin(), left.list.end(), right.list.begin(), areEqual);
  }
  if (left.kind != Value::kReal && right.kind != Value::kReal)
    return compared("=", left, right, 0).isTrue();
  const std::optional<double> one = realOf(left);
  const std::optional<double> other = realOf(right);
  return one && other && static_cast<float>(*one) == static_cast<float>(*other);
}

bool isLossless(int from, int target) {
  if (from == 0 || target == 0) return false;
  if (from == target) return true;
  // Digits and the greatest exponent of reals; bits of whole numbers without the sign.
  struct Kind {
    int digits;
    int exponent;
    int least;
    bool real;
    bool sign;
  };
  static const std::map<int, Kind> kinds = {
      // by ONNX's codes of element types
      {1, {24, 127, -149, true, true}},    {10, {11, 15, -24, true, true}},
      {11, {53, 1023, -1074, true, true}}, {16, {8, 127, -133, true, true}},
      {9, {1, 0, 0, false, false}},        {2, {8, 0, 0, false, false}},
      {3, {7, 0, 0, false, true}},         {4, {16, 0, 0, false, false}},
      {5, {15, 0, 0, false, true}},        {6, {31, 0, 0, false, true}},
      {7, {63, 0, 0, false, true}},        {12, {32, 0, 0, false, false}},
      {13, {64, 0, 0, false, false}},      {21, {4, 0, 0, false, false}},
      {22, {3, 0, 0, false, true}},
  };
  const auto source = kinds.find(from);
  const auto result = kinds.find(target);
  if (source == kinds.end() || result == kinds.end() || target == 9) return false;
  const Kind& one = source->second;
  const Kind& other = result->second;
  if (one.real) {
    return other.real && one.digits <= other.digits && one.exponent <= other.exponent &&
           one.least >= other.least;
  }
  // -2^digits is a power of two, which a real with the exponent has.
  if (other.real) return one.digits <= other.digits && one.digits <= other.exponent;
  return one.digits <= other.digits && (other.sign || !one.sign);
}

std::string shapeText(const std::vector<Dim>& shape) { return Value::of(shape).described(); }

Value evaluate(const Term& term, const Scope& scope) {
  switch (term.kind) {
    case Term::kInteger:
      return Value::of(term.integer);
    case Term::kReal:
      return Value::of(term.real);
    case Term::kText:
      return Value::of(term.text);
    case Term::kName:
      return ofName(term, scope);
    case Term::kAttribute:
      return scope.attribute(term.text);
    case Term::kList:
      return listed(term, scope);
    case Term::kCall:
      return functionNamed(term.text)->call(scope, term);
    case Term::kOperator:
      return operated(term, scope);
    default:
      return Value::unknown("no value");
  }
}

const std::vector<Function>& functions() {
  static const std::vector<Function> table = {
      {"rank", "x", "the number of dimensions of x, or of each of *xs", 1, 1, &functionRank},
      {"dim", "x, axis", "a dimension of x; negative axes count from the end", 2, 2, &functionDim},
      {"shape", "x", "the dimensions of x", 1, 1, &functionShape},
      {"last_dims", "x, k", "the last k dimensions of x", 2, 2, &functionLastDims},
      {"type", "x", "the element type of x: float, int64, ...", 1, 1, &functionType},
      {"size", "x", "the number of elements of x", 1, 1, &functionSize},
      {"value", "c", "the number in c, or its elements; of whole numbers also open ones", 1, 1,
       &functionValue},
      {"signbit", "c", "for each element of c whether its sign is negative, also of -0.0", 1, 1,
       &functionSign},
      {"finite", "c", "whether no element of c is infinite or NaN", 1, 1, &functionFinite},
      {"halves", "c", "whether both halves of c along its last axis are equal", 1, 1,
       &functionHalves},
      {"causal", "c",
       "whether c, a mask, hides what is above the diagonal of its last two axes, and nothing else",
       1, 1, &functionCausal},
      {"zeros", "x",
       "whether all elements of x are 0.0, not -0.0, also where they are filled in and moved", 1, 1,
       &functionZeros},
      {"all", "t", "whether all elements meet a comparison", 1, 1, &functionAll},
      {"any", "t", "whether some element meets a comparison", 1, 1, &functionAny},
      {"scalar", "c", "whether c is a constant of one element", 1, 1, &functionScalar},
      {"const", "c", "whether c is a constant", 1, 1, &functionConst},
      {"users", "y", "the number of inputs that take y, unknown above 1000", 1, 1, &functionUsers},
      {"output", "y", "whether y is an output of its graph", 1, 1, &functionOutput},
      {"captured", "y", "whether a nested graph uses y", 1, 1, &functionCaptured},
      {"given", "x", "whether an optional input or $attribute is present", 1, 1, &functionGiven},
      {"op", "y", "the operator that computes y, as text", 1, 1, &functionOperator},
      {"results", "y", "the number of results of the operator that computes y", 1, 1,
       &functionResults},
      {"inputs", "*xs", "the number of values of a variadic input", 1, 1, &functionInputs},
      {"same", "a, b", "whether two values are one, or equal constants", 2, 2, &functionSame},
      {"broadcasts", "b, y", "whether b broadcasts to the shape of y and does not enlarge it", 2, 2,
       &functionBroadcasts},
      {"broadcast", "a, b, ...", "the shape to which values or shapes are broadcast", 1, 16,
       &functionBroadcast},
      {"per_channel", "s, y, axis",
       "whether s broadcasts to y and has, but for one axis, dimensions of 1 only", 3, 3,
       &functionPerChannel},
      {"channel", "s, rank",
       "the only axis of a value of a rank along which s, which broadcasts to it, is not 1", 2, 2,
       &functionChannel},
      {"lossless", "from, to", "whether a Cast keeps each value of a type", 2, 2,
       &functionLossless},
      {"is_real", "type", "whether a type is float16, bfloat16, float or double", 1, 1,
       &functionIsReal},
      {"is_whole", "type", "whether a type is one of whole numbers", 1, 1, &functionIsWhole},
      {"opset_of", "domain", "the version of another operator set; 0 if it is not imported", 1, 1,
       &functionOpset},
      {"range", "n or first, end", "the whole numbers from 0, or from the first, below the end", 1,
       2, &functionRange},
      {"last", "k, n", "the k whole numbers below n", 2, 2, &functionLast},
      {"len", "list", "the number of items", 1, 1, &functionLength},
      {"product", "list", "the product of the items", 1, 1, &functionProduct},
      {"normalize", "axes, rank", "axes, or one axis, counted from the front", 2, 2,
       &functionNormalize},
      {"compose", "p, q", "the order of a Transpose by p and then by q", 2, 2, &functionCompose},
      {"invert", "p", "the order that undoes p", 1, 1, &functionInvert},
      {"permute", "list, p", "a list by axes, or pads, in the order p", 2, 2, &functionPermute},
      {"select", "list, places", "the items at places", 2, 2, &functionSelect},
      {"slice", "list, first, end", "the items from the first to before the end", 3, 3,
       &functionSlice},
      {"concat", "a, b, ...", "lists and items as one list", 1, 16, &functionConcat},
      {"without", "list, places", "a list without the items at places", 2, 2, &functionWithout},
      {"insert", "list, places, item", "a list with an item at places of the result", 3, 3,
       &functionInsert},
      {"reshape_to", "shape",
       "a shape as Reshape takes it: one open size is -1; none if there are more, or a 0", 1, 1,
       &functionReshapeTo},
      {"repeat", "item, n", "a list of n equal items", 2, 2, &functionRepeat},
      {"sorted", "list", "whole numbers in order", 1, 1, &functionSorted},
      {"reversed", "list", "a list from its end", 1, 1, &functionReversed},
      {"contains", "list, item", "whether a list has an item", 2, 2, &functionContains},
      {"either", "a, b", "a if it is known, otherwise b", 2, 2, &functionEither},
      {"max", "a, b", "the greater number", 2, 2, &functionMaximum},
      {"min", "a, b", "the smaller number", 2, 2, &functionMinimum},
      {"sqrt", "a", "the square root", 1, 1, &functionRoot},
  };
  return table;
}

const Function* functionNamed(const std::string& name) {
  static const std::unordered_map<std::string, const Function*> by_name = [] {
    std::unordered_map<std::string, const Function*> made;
    for (const Function& each : functions()) made[each.name] = &each;
    return made;
  }();
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

}  // namespace passlib::rules
