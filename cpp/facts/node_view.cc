#include "facts/node_view.h"

#include <cmath>
#include <cstdlib>
#include <numeric>
#include <utility>

namespace passlib::facts {
namespace {

constexpr int64_t kLargestExact = int64_t{1} << 24;  // float32 has every integer up to here
constexpr int64_t kLargestFactor = int64_t{1} << 12;

void skipBlanks(std::string_view* text) {
  while (!text->empty() && text->front() == ' ') text->remove_prefix(1);
}

bool parseInteger(std::string_view text, int64_t* number) {
  const bool negative = !text.empty() && text.front() == '-';
  if (negative) text.remove_prefix(1);
  if (text.empty() || text.size() > 20) return false;
  uint64_t value = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return false;
    if (__builtin_mul_overflow(value, uint64_t{10}, &value) ||
        __builtin_add_overflow(value, static_cast<uint64_t>(digit - '0'), &value)) {
      return false;
    }
  }
  const uint64_t bound = uint64_t{1} << 63U;
  if (negative ? value > bound : value >= bound) return false;
  *number = static_cast<int64_t>(negative ? 0 - value : value);
  return true;
}

bool parseReal(std::string_view text, double* number) {
  return mxnet::ext::host::readReal(std::string(text), number);
}

/// Splits the items of a list in brackets; false for other texts.
bool splitList(std::string_view text, std::vector<std::string_view>* items) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return false;
  text = text.substr(1, text.size() - 2);
  skipBlanks(&text);
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    items->push_back(item);
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
    skipBlanks(&text);
    if (text.empty()) return false;
  }
  return true;
}

/// Returns the text of a member of a JSON object as the reader writes it, up to the end of a list.
std::string_view memberOf(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + key.size());
  skipBlanks(&text);
  if (text.empty()) return {};
  if (text.front() == '"') {
    const std::size_t end = text.find('"', 1);
    return end == std::string_view::npos ? std::string_view() : text.substr(1, end - 1);
  }
  const std::size_t end = text.find(']');
  return end == std::string_view::npos ? std::string_view() : text.substr(0, end + 1);
}

}  // namespace

Type typeNamed(std::string_view name) {
  static constexpr std::pair<std::string_view, int32_t> kNames[] = {
      {"float32", 1},        {"float", 1},
      {"uint8", 2},          {"int8", 3},
      {"uint16", 4},         {"int16", 5},
      {"int32", 6},          {"int64", 7},
      {"string", 8},         {"bool", 9},
      {"float16", 10},       {"float64", 11},
      {"double", 11},        {"uint32", 12},
      {"uint64", 13},        {"complex64", 14},
      {"complex128", 15},    {"bfloat16", 16},
      {"float8_e4m3fn", 17}, {"float8_e4m3fnuz", 18},
      {"float8_e5m2", 19},   {"float8_e5m2fnuz", 20},
      {"uint4", 21},         {"int4", 22},
      {"float4_e2m1", 23},   {"float8_e8m0", 24},
      {"uint2", 25},         {"int2", 26}};
  for (const auto& [known, code] : kNames) {
    if (known == name) return static_cast<Type>(code);
  }
  int64_t number = 0;
  if (name.substr(0, 5) == "type " && parseInteger(name.substr(5), &number) && number > 0 &&
      number < 1000) {
    return static_cast<Type>(number);
  }
  return kUnknownType;
}

bool parseIntegers(std::string_view text, std::vector<int64_t>* numbers) {
  std::vector<std::string_view> items;
  if (!splitList(text, &items)) return false;
  numbers->resize(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!parseInteger(items[i], &(*numbers)[i])) return false;
  }
  return true;
}

std::shared_ptr<const Content> makeContent(std::vector<int64_t> items) {
  auto made = std::make_shared<Content>();
  made->items.assign(items.begin(), items.end());
  return made;
}

bool reduceReal(Dim* number, int64_t* divisor) {
  if (number->is(INT64_MIN)) return false;
  if (number->isNumber()) {
    const int64_t common = std::gcd(number->number(), *divisor);
    if (common > 1) {
      *number = number->number() / common;
      *divisor /= common;
    }
    return std::llabs(number->number()) <= kLargestExact && *divisor <= kLargestExact;
  }
  // A product of open sizes may be above the largest exact number, a small multiple hardly.
  if (!number->isKnown() || *divisor > kLargestExact) return false;
  int64_t total = 0;
  for (const auto& [names, factor] : number->terms()) {
    if (names.size() > 1 || factor > kLargestFactor || factor < -kLargestFactor) return false;
    total += std::llabs(factor);
  }
  if (total > kLargestFactor) return false;
  const Dim exact = quotient(*number, *divisor);
  if (exact.isKnown()) {
    *number = exact;
    *divisor = 1;
  }
  return true;
}

std::shared_ptr<const Content> makeRealContent(std::vector<double> reals) {
  auto made = std::make_shared<Content>();
  made->items.reserve(reals.size());
  made->divisors.reserve(reals.size());
  constexpr auto kLargest = static_cast<double>(kLargestExact);
  for (const double real : reals) {
    double scaled = real;
    int64_t divisor = 1;
    while (std::isfinite(scaled) && scaled != std::floor(scaled) && divisor <= kLargestExact) {
      scaled *= 2;
      divisor *= 2;
    }
    // The quotient is in lowest terms: a numerator with a divisor above 1 is odd.
    const bool exact = std::fabs(scaled) <= kLargest && scaled == std::floor(scaled);
    if (!exact || divisor > kLargestExact) {
      made->items.clear();
      made->divisors.clear();
      break;
    }
    made->items.emplace_back(static_cast<int64_t>(scaled));
    made->divisors.push_back(divisor);
  }
  made->reals = std::move(reals);
  return made;
}

std::optional<Fact> parseTensor(std::string_view text) {
  if (text.empty() || text.front() != '{') return std::nullopt;
  Fact made = Fact::tensor(typeNamed(memberOf(text, "\"dtype\":")));
  std::vector<int64_t> dims;
  if (!parseIntegers(memberOf(text, "\"shape\":"), &dims)) return made;
  made.shape.emplace(dims.begin(), dims.end());
  made.constant = true;
  const auto count = fewElements(*made.shape);
  const std::string_view data = memberOf(text, "\"data\":");
  std::vector<std::string_view> items;
  if (!count || data.empty() || !splitList(data, &items) || items.size() != *count) return made;
  if (isReal(made.type)) {
    std::vector<double> reals(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (!parseReal(items[i], &reals[i])) return made;
    }
    made.content = makeRealContent(std::move(reals));
  } else {
    std::vector<int64_t> numbers(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (items[i] == "true" || items[i] == "false") {
        numbers[i] = items[i] == "true" ? 1 : 0;
      } else if (!parseInteger(items[i], &numbers[i])) {
        return made;
      }
    }
    made.content = makeContent(std::move(numbers));
  }
  return made;
}

std::size_t axisOf(int64_t axis, std::size_t rank) {
  const auto size = static_cast<int64_t>(rank);
  if (axis < -size || axis >= size) throw Unknowable();
  return static_cast<std::size_t>(axis < 0 ? axis + size : axis);
}

const Fact& NodeView::absent() {
  static const Fact fact = [] {
    Fact made;
    made.present = false;
    return made;
  }();
  return fact;
}

const Shape& NodeView::shape(std::size_t number) const {
  const Fact& fact = in(number);
  if (!fact.shape || !fact.isTensor()) throw Unknowable();
  return *fact.shape;
}

const Shape& NodeView::shape(std::size_t number, std::size_t rank) const {
  const Shape& found = shape(number);
  if (found.size() != rank) throw Unknowable();
  return found;
}

const std::vector<Dim>* NodeView::items(std::size_t number) const {
  const Content* content = in(number).content.get();
  if (content == nullptr || !content->divisors.empty() || !content->reals.empty()) return nullptr;
  return &content->items;
}

std::optional<std::vector<int64_t>> NodeView::integersOf(std::size_t number) const {
  const std::vector<Dim>* found = items(number);
  if (found == nullptr) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const Dim& item : *found) {
    if (!item.isNumber()) return std::nullopt;
    numbers.push_back(item.number());
  }
  return numbers;
}

std::optional<int64_t> NodeView::integerOf(std::size_t number) const {
  const auto numbers = integersOf(number);
  return numbers && numbers->size() == 1 ? std::optional<int64_t>(numbers->front()) : std::nullopt;
}

std::optional<std::vector<double>> NodeView::realsOf(std::size_t number) const {
  const Content* content = in(number).content.get();
  if (content == nullptr) return std::nullopt;
  if (!content->reals.empty()) return content->reals;
  std::vector<double> made;
  for (std::size_t i = 0; i < content->items.size(); ++i) {
    if (!content->items[i].isNumber()) return std::nullopt;
    const auto divisor = content->divisors.empty() ? 1 : content->divisors[i];
    made.push_back(static_cast<double>(content->items[i].number()) / static_cast<double>(divisor));
  }
  return made;
}

std::string_view NodeView::text(std::string_view key, std::string_view preset) const {
  const std::string_view found = text(key);
  return found.data() == nullptr ? preset : found;
}

std::optional<int64_t> NodeView::integer(std::string_view key) const {
  const std::string_view found = text(key);
  if (found.data() == nullptr) return std::nullopt;
  int64_t number = 0;
  if (!parseInteger(found, &number)) throw Unknowable();
  return number;
}

int64_t NodeView::integer(std::string_view key, int64_t preset) const {
  return integer(key).value_or(preset);
}

double NodeView::real(std::string_view key, double preset) const {
  const std::string_view found = text(key);
  if (found.data() == nullptr) return preset;
  double number = 0;
  if (!parseReal(found, &number)) throw Unknowable();
  return number;
}

std::optional<std::vector<int64_t>> NodeView::integers(std::string_view key) const {
  const std::string_view found = text(key);
  if (found.data() == nullptr) return std::nullopt;
  std::vector<int64_t> numbers;
  if (!parseIntegers(found, &numbers)) throw Unknowable();
  return numbers;
}

std::optional<std::vector<double>> NodeView::reals(std::string_view key) const {
  const std::string_view found = text(key);
  if (found.data() == nullptr) return std::nullopt;
  std::vector<std::string_view> items;
  if (!splitList(found, &items)) throw Unknowable();
  std::vector<double> numbers(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!parseReal(items[i], &numbers[i])) throw Unknowable();
  }
  return numbers;
}

bool NodeView::isList(std::string_view key) const {
  const std::string_view found = text(key);
  return !found.empty() && found.front() == '[';
}

std::optional<std::size_t> NodeView::countStrings(std::string_view key) const {
  const std::string_view found = text(key);
  if (found.size() < 2 || found.front() != '[') return std::nullopt;
  std::size_t count = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] == '\\') {
      ++i;
    } else if (found[i] == '"') {
      quoted = !quoted;
      if (quoted) ++count;
    }
  }
  return count;
}

std::optional<Fact> NodeView::tensor(std::string_view key) const {
  const std::string_view found = text(key);
  return found.data() == nullptr ? std::nullopt : parseTensor(found);
}

const Graph* NodeView::body(std::string_view key) const {
  std::string_view found = text(key);
  constexpr std::string_view kPrefix = "subgraph[";
  int64_t number = 0;
  if (found.substr(0, kPrefix.size()) != kPrefix || found.back() != ']') return nullptr;
  found = found.substr(kPrefix.size(), found.size() - kPrefix.size() - 1);
  if (!parseInteger(found, &number) || number < 0) return nullptr;
  const auto index = static_cast<std::size_t>(number);
  return index < node_.subgraphs.size() ? node_.subgraphs[index] : nullptr;
}

void NodeView::setItems(std::size_t number, std::vector<Dim> items) {
  if (items.size() > kMostElements) return;
  auto made = std::make_shared<Content>();
  made->items = std::move(items);
  out(number).content = std::move(made);
}

}  // namespace passlib::facts
