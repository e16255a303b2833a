#include "facts/dim.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <numeric>

namespace passlib::facts {
namespace {

constexpr std::size_t kMostTerms = 64;
constexpr std::size_t kMostFactors = 16;
constexpr std::size_t kLongestName = 512;

using Terms = Dim::Terms;
using Monomial = Dim::Monomial;

/// The terms of a known dimension.
const Terms& termsOf(const Dim& dim, Terms* scratch) {
  if (dim.isSymbolic()) return dim.terms();
  if (!dim.is(0)) scratch->assign(1, {{}, dim.number()});
  return *scratch;
}

bool multiply(int64_t left, int64_t right, int64_t* result) {
  return !__builtin_mul_overflow(left, right, result);
}

/// Adds the terms of `added` times `factor` to sorted terms; false on overflow.
bool addTerms(const Terms& left, const Terms& added, int64_t factor, Terms* made) {
  auto one = left.begin();
  auto other = added.begin();
  while (one != left.end() || other != added.end()) {
    if (other == added.end() || (one != left.end() && one->first < other->first)) {
      made->push_back(*one++);
      continue;
    }
    int64_t scaled = 0;
    if (!multiply(other->second, factor, &scaled)) return false;
    if (one != left.end() && one->first == other->first) {
      if (__builtin_add_overflow(one->second, scaled, &scaled)) return false;
      ++one;
    }
    if (scaled != 0) made->emplace_back(other->first, scaled);
    ++other;
  }
  return made->size() <= kMostTerms;
}

/// Divides all factors of a symbolic dimension and a divisor by what they share.
void reduceTerms(Dim* value, int64_t* divisor) {
  int64_t common = *divisor;
  for (const auto& [names, factor] : value->terms())
    common = factor == INT64_MIN ? 1 : std::gcd(common, factor);
  if (common <= 1) return;
  *value = quotient(*value, common);
  *divisor /= common;
}

/// Returns a name of an expression, unknown if it is too long.
Dim expression(std::string text) { return text.size() > kLongestName ? Dim() : Dim::named(text); }

}  // namespace

Dim Dim::named(std::string_view name) {
  Dim made;
  made.number_ = 0;
  made.terms_ = std::make_shared<const Terms>(Terms{{{std::string(name)}, 1}});
  return made;
}

const std::string* Dim::name() const {
  if (terms_ == nullptr || terms_->size() != 1) return nullptr;
  const auto& [names, factor] = terms_->front();
  return factor == 1 && names.size() == 1 ? &names.front() : nullptr;
}

Dim Dim::make(Terms terms) {
  if (terms.empty()) return 0;
  if (terms.size() == 1 && terms.front().first.empty()) return terms.front().second;
  Dim made;
  made.number_ = 0;
  made.terms_ = std::make_shared<const Terms>(std::move(terms));
  return made;
}

Dim operator+(const Dim& left, const Dim& right) {
  if (!left.isKnown() || !right.isKnown()) return {};
  if (left.isNumber() && right.isNumber()) {
    int64_t sum = 0;
    return __builtin_add_overflow(left.number(), right.number(), &sum) ? Dim() : Dim(sum);
  }
  if (right.is(0)) return left;
  if (left.is(0)) return right;
  Terms one;
  Terms other;
  Terms made;
  return addTerms(termsOf(left, &one), termsOf(right, &other), 1, &made)
             ? Dim::make(std::move(made))
             : Dim();
}

Dim operator-(const Dim& left, const Dim& right) {
  if (!left.isKnown() || !right.isKnown()) return {};
  if (left.isNumber() && right.isNumber()) {
    int64_t difference = 0;
    return __builtin_sub_overflow(left.number(), right.number(), &difference) ? Dim()
                                                                              : Dim(difference);
  }
  if (left == right) return 0;
  Terms one;
  Terms other;
  Terms made;
  return addTerms(termsOf(left, &one), termsOf(right, &other), -1, &made)
             ? Dim::make(std::move(made))
             : Dim();
}

Dim operator*(const Dim& left, const Dim& right) {
  if (!left.isKnown() || !right.isKnown()) return {};
  if (left.isNumber() && right.isNumber()) {
    int64_t made = 0;
    return multiply(left.number(), right.number(), &made) ? Dim(made) : Dim();
  }
  if (left.is(1)) return right;
  if (right.is(1)) return left;
  if (left.is(0) || right.is(0)) return 0;
  Terms one;
  Terms other;
  Terms total;
  for (const auto& [names, factor] : termsOf(left, &one)) {
    Terms part;
    for (const auto& [more, times] : termsOf(right, &other)) {
      int64_t scaled = 0;
      if (!multiply(factor, times, &scaled)) return {};
      Monomial joined;
      std::merge(names.begin(), names.end(), more.begin(), more.end(), std::back_inserter(joined));
      if (joined.size() > kMostFactors) return {};
      part.emplace_back(std::move(joined), scaled);
    }
    std::sort(part.begin(), part.end());
    Terms sum;
    if (!addTerms(total, part, 1, &sum)) return {};
    total = std::move(sum);
  }
  return Dim::make(std::move(total));
}

Dim product(const std::vector<Dim>& dims) {
  Dim total = 1;
  for (const Dim& dim : dims) total = total * dim;
  return total;
}

namespace {

using Term = Terms::value_type;

Dim dimOf(const Monomial& names, int64_t factor) {
  Dim made = factor;
  for (const std::string& name : names) made = made * Dim::named(name);
  return made;
}

/// Divides a term by another; unknown if that is not exact.
Dim divideTerm(const Term& term, const Term& by) {
  const auto& [names, number] = by;
  if (number == -1 || term.second % number != 0) return {};
  if (!std::includes(term.first.begin(), term.first.end(), names.begin(), names.end())) return {};
  Monomial rest;
  std::set_difference(term.first.begin(), term.first.end(), names.begin(), names.end(),
                      std::back_inserter(rest));
  return dimOf(rest, term.second / number);
}

/// The term of most names, of these the last one by name: the product of two such terms is that of
/// the product of two sums.
const Term& leadingTerm(const Terms& terms) {
  return *std::max_element(terms.begin(), terms.end(), [](const Term& one, const Term& other) {
    if (one.first.size() != other.first.size()) return one.first.size() < other.first.size();
    return one.first < other.first;
  });
}

}  // namespace

Dim quotient(const Dim& value, const Dim& divisor) {
  if (!value.isKnown() || !divisor.isKnown() || divisor.is(0)) return {};
  if (divisor.is(1)) return value;
  if (value.isNumber() && divisor.isNumber()) {
    if (divisor.is(-1)) return Dim(0) - value;
    return value.number() % divisor.number() == 0 ? Dim(value.number() / divisor.number()) : Dim();
  }
  if (value == divisor) return 1;
  Terms scratch;
  const Term& lead = leadingTerm(termsOf(divisor, &scratch));
  Dim rest = value;
  Dim total = 0;
  for (std::size_t step = 0; step <= kMostTerms && !rest.is(0); ++step) {
    if (!rest.isKnown()) return {};
    Terms storage;
    const Dim part = divideTerm(leadingTerm(termsOf(rest, &storage)), lead);
    if (!part.isKnown()) return {};
    total = total + part;
    rest = rest - part * divisor;
  }
  return rest.is(0) ? total : Dim();
}

namespace {

/// A quotient of a symbolic dimension rounded down, which is at least 0.
Dim floored(const Dim& value, int64_t divisor) {
  const Dim exact = quotient(value, divisor);
  if (exact.isKnown()) return exact;
  // Terms that the divisor divides, if only a number is left.
  Dim rest = value;
  if (value.terms().front().first.empty()) {
    const Dim number = value.terms().front().second;
    const Dim whole = quotient(value - number, divisor);
    if (whole.isKnown()) return whole + floorQuotient(number, divisor);
  }
  reduceTerms(&rest, &divisor);
  return expression("floor((" + print(rest) + ")/" + std::to_string(divisor) + ")");
}

}  // namespace

Dim floorQuotient(const Dim& value, int64_t divisor) {
  if (!value.isKnown() || divisor <= 0) return {};
  if (value.isNumber()) {
    const int64_t whole = value.number() / divisor;
    return value.number() % divisor < 0 ? whole - 1 : whole;
  }
  return atLeast(value, 0) ? floored(value, divisor) : Dim();
}

Dim windowQuotient(const Dim& value, int64_t divisor) {
  if (!value.isKnown() || divisor <= 0) return {};
  return value.isNumber() ? Dim(value.number() / divisor) : floored(value, divisor);
}

Dim ceilQuotient(const Dim& value, int64_t divisor) {
  if (!value.isKnown() || divisor <= 0) return {};
  if (value.isNumber()) {
    const int64_t whole = value.number() / divisor;
    return value.number() % divisor > 0 ? whole + 1 : whole;
  }
  const Dim exact = quotient(value, divisor);
  if (exact.isKnown()) return exact;
  if (!atLeast(value, 0)) return {};
  Dim reduced = value;
  reduceTerms(&reduced, &divisor);
  return expression("ceil((" + print(reduced) + ")/" + std::to_string(divisor) + ")");
}

Dim wholeQuotient(const Dim& value, const Dim& divisor) {
  const Dim exact = quotient(value, divisor);
  if (exact.isKnown() || !value.isKnown() || !divisor.isKnown() || divisor.is(0)) return exact;
  if (divisor.isNumber()) return floorQuotient(value, divisor.number());
  if (!atLeast(value, 0) || !atLeast(divisor, 0)) return {};
  return expression("(" + print(value) + ")/(" + print(divisor) + ")");
}

Dim towardsZero(const Dim& value, const Dim& divisor) {
  if (!value.isKnown() || !divisor.isNumber() || divisor.is(0)) return {};
  if (divisor.is(-1)) return Dim(0) - value;
  if (value.isNumber()) return value.number() / divisor.number();
  return floorQuotient(value, divisor.number());
}

Dim minimum(const Dim& left, const Dim& right) {
  const Dim rest = left - right;
  if (atLeast(rest, 0)) return right;
  if (atLeast(right - left, 0)) return left;
  if (!rest.isKnown() || !atLeast(left, 0) || !atLeast(right, 0)) return {};
  const std::string one = print(left);
  const std::string other = print(right);
  return expression("min(" + std::min(one, other) + ", " + std::max(one, other) + ")");
}

Dim maximum(const Dim& left, const Dim& right) {
  const Dim rest = left - right;
  if (atLeast(rest, 0)) return left;
  if (atLeast(right - left, 0)) return right;
  if (!rest.isKnown() || !(atLeast(left, 0) || atLeast(right, 0))) return {};
  const std::string one = print(left);
  const std::string other = print(right);
  return expression("max(" + std::min(one, other) + ", " + std::max(one, other) + ")");
}

bool atLeast(const Dim& value, int64_t least) {
  if (value.isNumber()) return value.number() >= least;
  if (!value.isKnown()) return false;
  int64_t constant = 0;
  for (const auto& [names, factor] : value.terms()) {
    if (names.empty()) {
      constant = factor;
    } else if (factor < 0) {
      return false;
    }
  }
  return constant >= least;
}

bool differ(const Dim& left, const Dim& right) {
  if (left.isNumber() && right.isNumber()) return left.number() != right.number();
  return atLeast(left - right, 1) || atLeast(right - left, 1);
}

std::string print(const Dim& dim) {
  if (dim.isNumber()) return std::to_string(dim.number());
  if (!dim.isKnown()) return "?";
  std::string text;
  // The number comes last, though its monomial is the lowest.
  const Terms& terms = dim.terms();
  const bool first_is_number = terms.front().first.empty();
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const auto& [names, factor] = terms[(i + (first_is_number ? 1 : 0)) % terms.size()];
    const bool negative = factor < 0;
    if (text.empty()) {
      if (negative) text += "-";
    } else {
      text += negative ? " - " : " + ";
    }
    std::string size = std::to_string(factor);
    if (negative) size.erase(0, 1);
    if (names.empty() || size != "1") text += size;
    bool first = size == "1";
    for (const std::string& name : names) {
      if (!first) text += "*";
      text += name;
      first = false;
    }
  }
  return text;
}

Dim parseDim(std::string_view text) {
  Dim total = 0;
  Dim term = 1;
  std::size_t pos = 0;
  const auto blank = [&] {
    while (pos < text.size() && text[pos] == ' ') ++pos;
  };
  const auto isWord = [&](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
  };
  blank();
  bool negative = pos < text.size() && text[pos] == '-';
  if (negative) ++pos;
  for (;;) {
    blank();
    const std::size_t start = pos;
    if (pos < text.size() && text[pos] == '"') {
      const std::size_t end = text.find('"', pos + 1);
      if (end == std::string_view::npos) return {};
      term = term * Dim::named(text.substr(pos + 1, end - pos - 1));
      pos = end + 1;
    } else {
      while (pos < text.size() && isWord(text[pos])) ++pos;
      const std::string_view word = text.substr(start, pos - start);
      if (word.empty()) return {};
      if (std::isdigit(static_cast<unsigned char>(word[0])) != 0) {
        int64_t number = 0;
        for (const char digit : word) {
          if (std::isdigit(static_cast<unsigned char>(digit)) == 0) return {};
          if (!multiply(number, 10, &number)) return {};
          if (__builtin_add_overflow(number, digit - '0', &number)) return {};
        }
        term = term * Dim(number);
      } else {
        term = term * Dim::named(word);
      }
    }
    blank();
    if (pos < text.size() && text[pos] == '*') {
      ++pos;
      continue;
    }
    total = negative ? total - term : total + term;
    term = 1;
    if (pos == text.size()) return total;
    if (text[pos] != '+' && text[pos] != '-') return {};
    negative = text[pos++] == '-';
  }
}

}  // namespace passlib::facts
