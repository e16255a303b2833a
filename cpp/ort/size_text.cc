#include "ort/size_text.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "ort/calls.h"

namespace passlib {
namespace {

constexpr std::size_t kLongest = 1 << 16;

/// A number during evaluation: only floor and ceil take one whose divisor does not divide it.
struct Fraction {
  int64_t number;
  int64_t divisor;  ///< above 0
};

bool isLetter(char letter) {
  return std::isalpha(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

bool isDigit(char letter) { return std::isdigit(static_cast<unsigned char>(letter)) != 0; }

}  // namespace

/// Reads a text into postfix order. Operators wait on a stack, so that nothing recurses.
class SizeText::Reader {
 public:
  explicit Reader(SizeText* made) : made_(*made), text_(made->text_) {}

  void read() {
    while (skipBlanks(), pos_ < text_.size()) {
      if (wants_operand_) {
        readOperand();
      } else {
        readOperator();
      }
    }
    if (wants_operand_) fail();
    while (!waiting_.empty()) {
      if (waiting_.back().is_bracket) fail();
      finishLast();
    }
  }

 private:
  struct Waiting {
    bool is_bracket;
    Step step;     ///< of an operator, or of the function that the bracket belongs to
    int operands;  ///< that the function takes; 0 for a bracket alone
    int commas = 0;
  };

  [[noreturn]] void fail() const {
    made_.fail("cannot be read at character " + std::to_string(pos_));
  }

  void skipBlanks() {
    while (pos_ < text_.size() && text_[pos_] == ' ') ++pos_;
  }

  static int rank(Step step) {
    if (step == Step::kMultiply || step == Step::kDivide) return 2;
    return 1;
  }

  void finishLast() {
    made_.items_.push_back({waiting_.back().step, 0, ""});
    waiting_.pop_back();
  }

  void addOperator(Step step) {
    while (!waiting_.empty() && !waiting_.back().is_bracket &&
           rank(waiting_.back().step) >= rank(step)) {
      finishLast();
    }
    waiting_.push_back({false, step, 0});
  }

  void readOperand() {
    const char letter = text_[pos_];
    if (letter == '-' && may_negate_) {
      ++pos_;
      may_negate_ = false;
      waiting_.push_back({false, Step::kNegate, 0});
    } else if (letter == '(') {
      ++pos_;
      open({true, Step::kNumber, 0});
    } else if (isDigit(letter)) {
      readNumber();
    } else if (isLetter(letter)) {
      readWord();
    } else {
      fail();
    }
  }

  void open(Waiting bracket) {
    waiting_.push_back(bracket);
    may_negate_ = true;
  }

  void finishOperand(Item item) {
    made_.items_.push_back(std::move(item));
    wants_operand_ = false;
    may_negate_ = false;
  }

  void readNumber() {
    int64_t number = 0;
    for (; pos_ < text_.size() && isDigit(text_[pos_]); ++pos_) {
      if (__builtin_mul_overflow(number, 10, &number) ||
          __builtin_add_overflow(number, text_[pos_] - '0', &number)) {
        made_.fail("has a number beyond 64 bits");
      }
    }
    finishOperand({Step::kNumber, number, ""});
  }

  void readWord() {
    const std::size_t start = pos_;
    while (pos_ < text_.size() && (isLetter(text_[pos_]) || isDigit(text_[pos_]))) ++pos_;
    const std::string word = text_.substr(start, pos_ - start);
    if (pos_ == text_.size() || text_[pos_] != '(') {
      finishOperand({Step::kName, 0, word});
      return;
    }
    static const std::map<std::string, std::pair<Step, int>> functions = {
        {"floor", {Step::kFloor, 1}},
        {"ceil", {Step::kCeil, 1}},
        {"min", {Step::kMin, 2}},
        {"max", {Step::kMax, 2}},
    };
    const auto found = functions.find(word);
    if (found == functions.end()) made_.fail("has an unknown function '" + word + "'");
    ++pos_;
    open({true, found->second.first, found->second.second});
  }

  void readOperator() {
    switch (text_[pos_]) {
      case '+':
        addOperator(Step::kAdd);
        break;
      case '-':
        addOperator(Step::kSubtract);
        break;
      case '*':
        addOperator(Step::kMultiply);
        break;
      case '/':
        addOperator(Step::kDivide);
        break;
      case ',':
        finishBracket();
        if (++waiting_.back().commas >= waiting_.back().operands) fail();
        may_negate_ = true;
        break;
      case ')':
        finishBracket();
        if (waiting_.back().operands > waiting_.back().commas + 1) fail();
        if (waiting_.back().operands > 0) {
          finishLast();
        } else {
          waiting_.pop_back();
        }
        ++pos_;
        return;
      default:
        fail();
    }
    ++pos_;
    wants_operand_ = true;
  }

  /// Finishes the operators since the last open bracket.
  void finishBracket() {
    while (!waiting_.empty() && !waiting_.back().is_bracket) finishLast();
    if (waiting_.empty()) fail();
  }

  SizeText& made_;
  const std::string& text_;
  std::size_t pos_ = 0;
  bool wants_operand_ = true;
  bool may_negate_ = true;
  std::vector<Waiting> waiting_;
};

SizeText::SizeText(std::string_view text) : text_(text.substr(0, kLongest)) {
  if (text.size() > kLongest) fail("is too long");
  Reader(this).read();
}

void SizeText::fail(const std::string& what) const {
  const std::size_t shown = 100;
  throw OrtError("the size '" + text_.substr(0, shown) + (text_.size() > shown ? "..." : "") +
                 "' " + what);
}

const std::string* SizeText::name() const {
  return items_.size() == 1 && items_[0].step == Step::kName ? &items_[0].name : nullptr;
}

void SizeText::addNames(std::vector<std::string>* names) const {
  for (const Item& item : items_) {
    if (item.step == Step::kName) names->push_back(item.name);
  }
}

int64_t SizeText::evaluate(const std::map<std::string, int64_t>& sizes) const {
  std::vector<Fraction> stack;
  const auto take = [&]() {
    const Fraction last = stack.back();
    stack.pop_back();
    return last;
  };
  const auto takeWhole = [&]() {
    const Fraction last = take();
    if (last.number % last.divisor != 0) fail("is no whole number for these inputs");
    return last.number / last.divisor;
  };
  for (const Item& item : items_) {
    Fraction made{0, 1};
    bool overflows = false;
    if (item.step == Step::kNumber) {
      made.number = item.number;
    } else if (item.step == Step::kName) {
      const auto found = sizes.find(item.name);
      if (found == sizes.end()) fail("has the name '" + item.name + "', which no input has");
      made.number = found->second;
    } else if (item.step == Step::kNegate) {
      overflows = __builtin_sub_overflow(int64_t{0}, takeWhole(), &made.number);
    } else if (item.step == Step::kFloor || item.step == Step::kCeil) {
      const auto [number, divisor] = take();
      // The facts round what is at least 0 wherever a model runs, such as places of a window.
      if (number < 0) fail("rounds a number below 0 for these inputs");
      const bool up = item.step == Step::kCeil && number % divisor != 0;
      made.number = number / divisor + (up ? 1 : 0);
    } else {
      const int64_t right = takeWhole();
      const int64_t left = takeWhole();
      if (item.step == Step::kAdd) {
        overflows = __builtin_add_overflow(left, right, &made.number);
      } else if (item.step == Step::kSubtract) {
        overflows = __builtin_sub_overflow(left, right, &made.number);
      } else if (item.step == Step::kMultiply) {
        overflows = __builtin_mul_overflow(left, right, &made.number);
      } else if (item.step == Step::kDivide) {
        if (right <= 0) fail("divides by " + std::to_string(right) + " for these inputs");
        made = {left, right};
      } else {
        made.number = item.step == Step::kMin ? std::min(left, right) : std::max(left, right);
      }
    }
    if (overflows) fail("exceeds 64 bits for these inputs");
    stack.push_back(made);
  }
  return takeWhole();
}

}  // namespace passlib
