#include "rules/reading.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>
#include <string_view>

#include "header.h"

namespace passlib::rules {
namespace {

/// Bounds on one text, so that hostile ones end.
constexpr std::size_t kMostBytes = std::size_t{1} << 24;
constexpr int kMostDepth = 64;
/// Bytes of a message, which may quote a word of the text.
constexpr std::size_t kMostMessage = 300;

bool beginsWord(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isWord(char c) { return beginsWord(c) || isDigit(c) || c == '.'; }

const std::set<std::string, std::less<>>& constructors() {
  static const std::set<std::string, std::less<>> names = {
      "fold", "like", "transposed", "aligned", "flat", "shape_of", "either", "i64",
      "i32",  "f32",  "f64",        "f16",     "bool", "i8",       "u8"};
  return names;
}

/// Reads a part of a text. Line ends outside of brackets end a statement or a condition.
class Reader {
 public:
  Reader(const std::string& text, const std::string& file, std::size_t begin, std::size_t end)
      : text_(text), file_(file), cursor_(begin), end_(end) {}

  [[noreturn]] void fail(const std::string& message, std::size_t place) const {
    failAt(file_, text_, place, message);
  }

  [[noreturn]] void expected(const std::string& what) {
    peek();
    std::string found = "the end";
    if (cursor_ < text_.size() && text_[cursor_] != '\0') {
      std::size_t next = cursor_ + 1;
      while (next < text_.size() && (static_cast<unsigned char>(text_[next]) & 0xC0U) == 0x80U)
        ++next;
      found = text_[cursor_] == '\n' ? "the end of the line"
                                     : "'" + text_.substr(cursor_, next - cursor_) + "'";
    }
    fail("expected " + what + ", not " + found, cursor_);
  }

  char peek() {
    while (cursor_ < end_) {
      const char next = text_[cursor_];
      if (next != ' ' && next != '\t' && next != '\r' && !(next == '\n' && brackets_ > 0))
        return next;
      ++cursor_;
    }
    return '\0';
  }
  void skipLines() {
    while (peek() == '\n') ++cursor_;
  }
  bool atEnd() { return peek() == '\0'; }
  std::size_t place() {
    peek();
    return cursor_;
  }

  bool take(std::string_view token) {
    peek();
    if (text_.compare(cursor_, token.size(), token) != 0 || cursor_ + token.size() > end_)
      return false;
    if (beginsWord(token[0]) && cursor_ + token.size() < end_ &&
        isWord(text_[cursor_ + token.size()]))
      return false;
    cursor_ += token.size();
    return true;
  }
  void require(std::string_view token, const char* what) {
    if (!take(token)) expected(what);
  }

  std::string word(const char* what) {
    if (!beginsWord(peek())) expected(what);
    const std::size_t start = cursor_;
    while (cursor_ < end_ && isWord(text_[cursor_])) ++cursor_;
    while (text_[cursor_ - 1] == '.') --cursor_;
    return text_.substr(start, cursor_ - start);
  }

  bool atNumber() {
    const char first = peek();
    return atInfinity() || isDigit(first) ||
           (first == '.' && cursor_ + 1 < end_ && isDigit(text_[cursor_ + 1]));
  }

  bool atInfinity() {
    peek();
    return text_.compare(cursor_, 3, "inf") == 0 &&
           (cursor_ + 3 >= end_ || !isWord(text_[cursor_ + 3]));
  }

  /// A number without a sign, or inf. Returns whether it is whole.
  bool number(int64_t* whole, double* real) {
    if (!atNumber()) expected("a number");
    if (atInfinity()) {
      cursor_ += 3;
      *real = std::numeric_limits<double>::infinity();
      return false;
    }
    const std::size_t start = cursor_;
    bool is_whole = true;
    while (cursor_ < end_) {
      const char c = text_[cursor_];
      if (!isDigit(c)) {
        const char next = cursor_ + 1 < end_ ? text_[cursor_ + 1] : ' ';
        const bool range = c == '.' && next == '.';
        const bool sign = (c == '+' || c == '-') &&
                          (text_[cursor_ - 1] == 'e' || text_[cursor_ - 1] == 'E') && !is_whole;
        if (range || !(c == '.' || c == 'e' || c == 'E' || sign)) break;
        is_whole = false;
      }
      ++cursor_;
    }
    const std::string digits = text_.substr(start, cursor_ - start);
    if (!mxnet::ext::host::scanDouble(digits, real) || !std::isfinite(*real))
      fail("expected a number, not '" + digits + "'", start);
    if (is_whole) {
      errno = 0;
      *whole = std::strtoll(digits.c_str(), nullptr, 10);
      if (errno != 0) fail("a whole number has at most 64 bits", start);
    }
    return is_whole;
  }

  std::string quotedText() {
    peek();
    const char mark = text_[cursor_];
    const std::size_t start = cursor_;
    const std::size_t close = text_.find_first_of(mark == '"' ? "\"\n" : "'\n", start + 1);
    if (close == std::string::npos || close >= end_ || text_[close] == '\n')
      fail("the quotation mark is not closed on its line", start);
    cursor_ = close + 1;
    return text_.substr(start + 1, close - start - 1);
  }
  bool atQuote() { return peek() == '"' || peek() == '\''; }

  /// The rest of the line without spaces around.
  std::string line() {
    peek();
    const std::size_t start = cursor_;
    while (cursor_ < end_ && text_[cursor_] != '\n') ++cursor_;
    std::size_t last = cursor_;
    while (last > start &&
           (text_[last - 1] == ' ' || text_[last - 1] == '\t' || text_[last - 1] == '\r'))
      --last;
    return text_.substr(start, last - start);
  }

  // ---- terms ----

  Term condition() {
    Term left = conjunction();
    for (;;) {
      const std::size_t before = cursor_;
      skipLines();
      if (!take("or")) {
        cursor_ = before;
        return left;
      }
      skipLines();
      left = binary("or", std::move(left), conjunction());
    }
  }

  Term sum() {
    Term left = product();
    for (;;) {
      peek();
      if (text_.compare(cursor_, 2, "+-") == 0) return left;
      const char* op = take("+") ? "+" : take("-") ? "-" : nullptr;
      if (op == nullptr) return left;
      skipLines();
      left = binary(op, std::move(left), product());
    }
  }

  // ---- expressions ----

  enum Side { kLeft, kRight, kExample };

  std::vector<Statement> statements(Side side) {
    std::vector<Statement> found;
    for (;;) {
      while (take(";") || peek() == '\n') skipLines();
      if (atEnd()) return found;
      found.push_back(statement(side));
      if (!atEnd() && peek() != ';' && peek() != '\n') {
        expected(side == kLeft ? "an operation or the end of the statement"
                               : "the end of the statement");
      }
    }
  }

 private:
  struct Depth {
    explicit Depth(Reader* reader) : owner(reader) {
      if (++owner->depth_ > kMostDepth) {
        owner->fail("more than " + std::to_string(kMostDepth) + " levels: name parts of it",
                    owner->cursor_);
      }
    }
    ~Depth() { --owner->depth_; }
    Reader* owner;
  };

  Term binary(const char* op, Term left, Term right) const {
    Term made;
    made.kind = Term::kOperator;
    made.text = op;
    made.place = left.place;
    made.end = right.end;
    made.children.push_back(std::move(left));
    made.children.push_back(std::move(right));
    deepen(&made);
    return made;
  }

  /// Notes how deep a term is: it is evaluated by a function that calls itself.
  void deepen(Term* made) const {
    for (const Term& child : made->children) made->depth = std::max(made->depth, child.depth + 1);
    if (made->depth > kMostDepth) {
      fail("more than " + std::to_string(kMostDepth) + " levels of terms: define parts of it",
           made->place);
    }
  }

  Term conjunction() {
    Term left = negation();
    for (int count = 0;; ++count) {
      const std::size_t before = cursor_;
      skipLines();
      if (!take("and")) {
        cursor_ = before;
        return left;
      }
      skipLines();
      if (count > 1000) fail("more than 1000 conditions in one", cursor_);
      if (left.kind == Term::kOperator && left.text == "and" && !left.children.empty() &&
          count > 0) {
        left.children.push_back(negation());  // a flat list: depth stays bounded
        left.end = cursor_;
        deepen(&left);
      } else {
        left = binary("and", std::move(left), negation());
      }
    }
  }

  Term negation() {
    const Depth depth(this);
    const std::size_t start = place();
    if (!take("not")) return comparison();
    Term made;
    made.kind = Term::kOperator;
    made.text = "not";
    made.place = start;
    made.children.push_back(negation());
    made.end = cursor_;
    deepen(&made);
    return made;
  }

  Term comparison() {
    Term left = sum();
    static const std::array<const char*, 7> kOperators = {"!=", "<=", ">=", "=", "<", ">", "in"};
    for (const char* op : kOperators) {
      const std::size_t start = place();
      if (op[0] == '=' && text_.compare(cursor_, 2, "=>") == 0) continue;
      if (!take(op)) continue;
      skipLines();
      if (op[0] == 'i') {
        if (peek() != '(') expected("( and the values, one of which it may be");
        Term choices = choice();
        return binary(op, std::move(left), std::move(choices));
      }
      Term made = binary(op, std::move(left), sum());
      if (take("+-")) {
        if (op[0] != '=') fail("a tolerance follows =", start);
        made.text = "near";
        made.children.push_back(sum());
        made.end = cursor_;
        deepen(&made);
      }
      return made;
    }
    return left;
  }

  Term choice() {
    Term made;
    made.kind = Term::kChoice;
    made.place = cursor_;
    require("(", "(");
    ++brackets_;
    do {
      made.children.push_back(sum());
    } while (take(","));
    --brackets_;
    require(")", ") or ,");
    made.end = cursor_;
    deepen(&made);
    return made;
  }

  Term product() {
    Term left = unary();
    for (;;) {
      const char* op = take("*") ? "*" : take("/") ? "/" : take("%") ? "%" : nullptr;
      if (op == nullptr) return left;
      skipLines();
      left = binary(op, std::move(left), unary());
    }
  }

  Term unary() {
    const Depth depth(this);
    const std::size_t start = place();
    if (!take("-")) return postfix();
    Term inner = unary();
    if (inner.kind == Term::kInteger || inner.kind == Term::kReal) {
      inner.integer = -inner.integer;
      inner.real = -inner.real;
      inner.place = start;
      return inner;
    }
    Term made;
    made.kind = Term::kOperator;
    made.text = "negative";
    made.place = start;
    made.end = inner.end;
    made.children.push_back(std::move(inner));
    deepen(&made);
    return made;
  }

  Term postfix() {
    Term made = primary();
    while (peek() == '[' && text_[cursor_ - 1] != ' ' && text_[cursor_ - 1] != '\n') {
      ++cursor_;
      ++brackets_;
      Term index = sum();
      --brackets_;
      require("]", "]");
      made = binary("index", std::move(made), std::move(index));
    }
    return made;
  }

  void arguments(const char* close, Term* made) {
    ++brackets_;
    if (peek() != close[0]) {
      do {
        made->children.push_back(argument());
      } while (take(","));
    }
    --brackets_;
    peek();
    if (peek() == '\n') skipLines();
    require(close, close[0] == ']' ? "] or ," : ") or ,");
    made->end = cursor_;
    deepen(made);
  }

  Term argument() {
    const std::size_t start = place();
    if (!take("*")) return condition();
    Term made;
    made.kind = Term::kStarred;
    made.place = start;
    made.text = word("a name after *");
    made.end = cursor_;
    return made;
  }

  Term primary() {
    Term made;
    made.place = place();
    if (atNumber()) {
      made.kind = number(&made.integer, &made.real) ? Term::kInteger : Term::kReal;
      made.end = cursor_;
      return made;
    }
    if (atQuote()) {
      made.kind = Term::kText;
      made.text = quotedText();
      made.end = cursor_;
      return made;
    }
    if (take("$")) {
      made.kind = Term::kAttribute;
      made.text = word("a name after $");
      made.end = cursor_;
      return made;
    }
    if (take("[")) {
      made.kind = Term::kList;
      arguments("]", &made);
      return made;
    }
    if (take("(")) {
      ++brackets_;
      Term inner = condition();
      --brackets_;
      if (peek() == '\n') skipLines();
      require(")", ")");
      inner.end = cursor_;
      return inner;
    }
    made.text = word("a value: a number, a name, $attribute, a list or a function");
    made.end = cursor_;
    if (cursor_ < end_ && text_[cursor_] == '(') {
      ++cursor_;
      made.kind = Term::kCall;
      arguments(")", &made);
    }
    return made;
  }

  // ---- statements ----

  Statement statement(Side side) {
    Statement made;
    made.place = place();
    const std::size_t start = cursor_;
    do {
      if (!beginsWord(peek())) break;
      made.targets.push_back(word("a name"));
      if (side == kLeft && made.targets.size() > 1 && take("?")) {
        ++made.optional;
      } else if (made.optional > 0) {
        expected("? after '" + made.targets.back() + "', as after the result before it");
      }
    } while (take(","));
    peek();
    const bool equals = !made.targets.empty() && text_.compare(cursor_, 2, "=>") != 0 && take("=");
    if (!equals) {
      if (made.targets.size() > 1) expected("= after the names of results");
      made.targets.clear();
      made.optional = 0;
      cursor_ = start;
    } else {
      skipLines();
    }
    made.expression = expression(side);
    return made;
  }

  Expression expression(Side side) {
    const Depth depth(this);
    Expression first = single(side);
    if (side != kLeft || first.kind != Expression::kOperation) return first;
    while (take("|")) {
      const std::size_t start = place();
      Expression other = single(side);
      if (other.kind == Expression::kNumber)
        fail("a number is no alternative of an operation", start);
      first.alternatives.push_back(std::move(other));
    }
    return first;
  }

  Expression single(Side side) {
    Expression made;
    made.place = place();
    if (take("(") && side == kLeft) {  // alternatives in parentheses
      ++brackets_;
      Expression inner = expression(side);
      --brackets_;
      require(")", ") or |");
      return inner;
    }
    const bool negative = take("-");
    if (negative || atNumber()) {
      made.kind = Expression::kNumber;
      int64_t whole = 0;
      const bool is_whole = number(&whole, &made.number);
      (void)is_whole;
      if (negative) made.number = -made.number;
      return made;
    }
    if (take("*")) {
      made.starred = true;
      made.names.push_back(word("a name after *"));
      return made;
    }
    if (side == kRight && take("@")) {
      made.names.push_back("@" + word("the name of an operation after @"));
      return operation(side, std::move(made));
    }
    std::string name = word("an operation, a name, a number, or *name");
    if (side == kLeft && name == "shared" && beginsWord(peek())) {
      made.shared = true;
      name = word("an operator");
    }
    if (side != kLeft && constructors().count(name) != 0 && (peek() == '(' || peek() == '[')) {
      made.names.push_back(name);
      return constructor(side, std::move(made));
    }
    const char next = peek();
    const bool has_domain = next == ':' && text_.compare(cursor_, 2, "::") == 0;
    if (made.shared || has_domain || next == '(' || next == '[' || (next == '|' && side == kLeft)) {
      if (has_domain) {
        cursor_ += 2;
        name += "::" + word("an operator");
      }
      made.names.push_back(name);
      while (side == kLeft && take("|")) {
        std::string other = word("an operator");
        if (take("::")) other += "::" + word("an operator");
        made.names.push_back(other);
      }
      return operation(side, std::move(made));
    }
    made.names.push_back(name);
    if (side == kRight) {
      made.output = outputNumber();
      return made;
    }
    made.optional = take("?");
    made.output = outputNumber();
    if (made.output < 0 && take(":")) {
      side == kExample ? exampleType(&made) : constraint(&made);
    }
    made.optional = take("?") || made.optional;
    return made;
  }

  int outputNumber() {
    if (peek() != ':' || cursor_ + 1 >= end_ || !isDigit(text_[cursor_ + 1])) return -1;
    ++cursor_;
    const std::size_t start = cursor_;
    int64_t output = 0;
    double real = 0;
    if (!number(&output, &real) || output > 9999) fail("an output has a number below 10000", start);
    return static_cast<int>(output);
  }

  void constraint(Expression* made) {
    const std::size_t start = place();
    const std::string kind = word("param, input or value");
    if (kind != "param" && kind != "input" && kind != "value")
      fail("expected param, input or value, not '" + kind + "'", start);
    made->constraint = ":" + kind;
    if (peek() != '[') return;
    if (kind != "param")
      fail("of a value that is no param, rank and type are conditions: where rank(x) = 4", cursor_);
    const std::size_t open = cursor_;
    int level = 0;
    for (; cursor_ < end_; ++cursor_) {
      if (text_[cursor_] == '[') ++level;
      if (text_[cursor_] == ']' && --level == 0) break;
    }
    if (cursor_ == end_) fail("the bracket is not closed", open);
    ++cursor_;
    made->constraint += text_.substr(open, cursor_ - open);
  }

  /// `float[2, n]` of an input; `param float[3]`, `zero`, `one` and `causal` ones of a constant.
  void exampleType(Expression* made) {
    for (const char* kind : {"param", "zero", "one", "causal"}) {
      if (made->constraint.empty() && take(kind)) made->constraint = std::string(kind) + " ";
    }
    const std::size_t start = place();
    const std::string type = word("an element type such as float");
    if (typeNamed(type) == 0) fail("unknown element type '" + type + "'", start);
    made->constraint += typeName(typeNamed(type));
    if (peek() != '[') return;
    const std::size_t open = cursor_;
    const std::size_t close = text_.find(']', open);
    if (close == std::string::npos || close >= end_) fail("the bracket is not closed", open);
    made->constraint += text_.substr(open, close + 1 - open);
    cursor_ = close + 1;
  }

  Expression operation(Side side, Expression made) {
    made.kind = Expression::kOperation;
    ++brackets_;
    if (take("[")) settings(side, &made.settings);
    require("(", "( and the inputs");
    if (!take(")")) {
      do {
        made.inputs.push_back(expression(side));
      } while (take(","));
      if (peek() != ')') expected(") or ,");
      ++cursor_;
    }
    --brackets_;
    made.output = outputNumber();
    return made;
  }

  void settings(Side side, std::vector<Setting>* found) {
    do {
      Setting made;
      made.place = place();
      if (take("!")) {
        if (side != kLeft)
          fail("a replacement leaves out attributes by not naming them", made.place);
        made.relation = Setting::kAbsent;
        made.key = word("the name of an attribute");
      } else if (take("*")) {
        if (side != kRight)
          fail("only a replacement copies the attributes of an operation", made.place);
        made.relation = Setting::kSpread;
        made.name = word("the name of an operation");
      } else {
        made.key = word("the name of an attribute, !name or *operation");
        made.optional = take("?");
        if (side != kLeft && made.optional)
          fail("a replacement has no optional attributes", made.place);
        if (take("!=")) {
          made.relation = Setting::kDifferent;
        } else {
          require("=", "= and a value");
        }
        if (side == kRight) {
          if (made.relation != Setting::kEqual)
            fail("a replacement sets attributes with =", made.place);
          made.term = sum();
        } else if (take("$")) {
          if (made.relation != Setting::kEqual) fail("expected a value", made.place);
          made.relation = Setting::kBind;
          made.name = word("a name after $");
        } else {
          do {
            made.texts.push_back(attributeText());
          } while (side == kLeft && take("|"));
        }
      }
      found->push_back(std::move(made));
    } while (take(","));
    if (peek() != ']') expected("] or ,");
    ++cursor_;
  }

  std::string attributeText() {
    const char first = peek();
    const std::size_t start = cursor_;
    if (atQuote()) return quotedText();
    if (first == '[' || first == '(') {
      const std::size_t close = text_.find(first == '[' ? ']' : ')', start);
      if (close == std::string::npos || close >= end_) fail("the list is not closed", start);
      cursor_ = close + 1;
      return text_.substr(start, cursor_ - start);
    }
    while (cursor_ < end_ &&
           (isWord(text_[cursor_]) || text_[cursor_] == '-' || text_[cursor_] == '+'))
      ++cursor_;
    if (cursor_ == start) expected("a value: a number, a word, text in quotes, or a list");
    return text_.substr(start, cursor_ - start);
  }

  /// `fold(Mul(w, s))`, `like(c, 1.0)`, `i64[0, -1]`.
  Expression constructor(Side side, Expression made) {
    made.kind = Expression::kConstructor;
    const std::string name = made.names[0];
    const bool is_type = typeNamed(name) != 0;
    if (side == kExample && !is_type)
      fail("an example states its constants: " + name + " belongs into a replacement", made.place);
    ++brackets_;
    const bool is_list = take("[");
    if (is_list && !is_type) expected("(");
    if (!is_list) require("(", "(");
    if (is_type) {
      Term list;
      list.place = made.place;
      if (is_list) {
        list.kind = Term::kList;
        --brackets_;
        arguments("]", &list);
        ++brackets_;
      } else {
        list = sum();
        if (peek() != ')') expected(")");
        ++cursor_;
      }
      made.terms.push_back(std::move(list));
      --brackets_;
      return made;
    }
    const std::size_t expressions = name == "either" ? 2 : 1;
    for (std::size_t pos = 0; pos < expressions; ++pos) {
      if (pos > 0) require(",", ", and a second value");
      made.inputs.push_back(expression(side));
    }
    while (take(",")) made.terms.push_back(sum());
    if (peek() != ')') expected(") or ,");
    ++cursor_;
    --brackets_;
    const std::size_t wanted = name == "like" ? 1 : name == "aligned" ? 2 : 0;
    const std::size_t most = name == "flat" ? 1 : wanted;
    if (made.terms.size() < wanted || made.terms.size() > most) {
      fail(name + " has " + std::to_string(expressions + wanted) +
               (most > wanted ? " or " + std::to_string(expressions + most) : "") + " arguments",
           made.place);
    }
    return made;
  }

  const std::string& text_;
  const std::string& file_;
  std::size_t cursor_;
  std::size_t end_;
  int brackets_ = 0;
  int depth_ = 0;
};

/// Replaces comments by spaces; places stay.
std::string withoutComments(const std::string& text) {
  std::string made = text;
  char quote = '\0';
  for (std::size_t pos = 0; pos < made.size(); ++pos) {
    const char c = made[pos];
    if (c == '\n') {
      quote = '\0';
    } else if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"') {
      quote = c;
    } else if (c == '#') {
      while (pos < made.size() && made[pos] != '\n') made[pos++] = ' ';
      --pos;
    } else if (c == '\0') {
      made[pos] = '\x01';  // no end of the text
    }
  }
  return made;
}

struct Clause {
  std::string keyword;
  std::size_t begin;  ///< of what follows the keyword
  std::size_t end;
  std::size_t place;
};

/// The keyword at a place; empty if a statement or a condition goes on there.
std::string keywordAt(const std::string& text, std::size_t place) {
  if (text.compare(place, 2, "=>") == 0) return "=>";
  if (!beginsWord(text[place])) return std::string();
  std::size_t end = place;
  while (end < text.size() && isWord(text[end])) ++end;
  std::size_t next = end;
  while (next < text.size() && (text[next] == ' ' || text[next] == '\t')) ++next;
  const std::string word = text.substr(place, end - place);
  static const std::set<std::string, std::less<>> kKeywords = {
      "rule",    "group", "where",  "exact",  "rounding", "lowers",
      "enables", "drops", "breaks", "target", "example"};
  const char after = next < text.size() ? text[next] : '\n';
  if (kKeywords.count(word) != 0) {
    return after == '=' || after == ',' ? std::string() : word;
  }
  // An operator set: a domain and a number. Everything else that begins like it is a statement.
  return isDigit(after) && next > end ? "set" : std::string();
}

/// Splits a text into clauses, which begin at the first word of a line.
std::vector<Clause> clausesOf(const std::string& text) {
  std::vector<Clause> found;
  std::size_t start = 0;
  int level = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    std::size_t first = start;
    while (first < end && (text[first] == ' ' || text[first] == '\t' || text[first] == '\r'))
      ++first;
    if (first < end) {
      const std::string keyword = keywordAt(text, first);
      // A rule begins at its keyword whatever is open before it: errors stay in their rule.
      if (!keyword.empty() && (level <= 0 || keyword == "rule")) {
        if (!found.empty()) found.back().end = start;
        const std::size_t begin = keyword == "set" ? first : first + keyword.size();
        found.push_back(Clause{keyword, begin, text.size(), first});
        level = 0;
      } else if (found.empty()) {
        found.push_back(Clause{"", first, text.size(), first});
      }
      char quote = '\0';
      for (std::size_t pos = first; pos < end; ++pos) {
        const char c = text[pos];
        if (quote != '\0') {
          if (c == quote) quote = '\0';
        } else if (c == '"' || c == '\'') {
          quote = c;
        } else if (c == '(' || c == '[') {
          ++level;
        } else if (c == ')' || c == ']') {
          --level;
        }
      }
    }
    start = end + 1;
  }
  return found;
}

class RuleReader {
 public:
  RuleReader(const std::string& text, const std::string& file)
      : original_(text), file_(file), text_(withoutComments(text)), clauses_(clausesOf(text_)) {}

  std::vector<Rule> read() {
    std::vector<Rule> rules;
    std::set<std::string> names;
    std::size_t pos = 0;
    if (!clauses_.empty() && clauses_[0].keyword != "rule")
      fail("expected rule, a name and a sentence", clauses_[0].place);
    while (pos < clauses_.size()) {
      std::size_t end = pos + 1;
      while (end < clauses_.size() && clauses_[end].keyword != "rule") ++end;
      rules.push_back(readOne(pos, end));
      if (!names.insert(rules.back().name).second)
        fail("a second rule of the name '" + rules.back().name + "'", rules.back().place);
      pos = end;
    }
    return rules;
  }

 private:
  [[noreturn]] void fail(const std::string& message, std::size_t place) const {
    failAt(file_, text_, place, message);
  }
  Reader reader(const Clause& clause) const {
    return Reader(text_, file_, clause.begin, clause.end);
  }

  void ends(Reader* reader) const {
    reader->skipLines();
    if (!reader->atEnd()) reader->expected("the end of the line");
  }

  Rule readOne(std::size_t first, std::size_t last) {
    Rule rule;
    const Clause& head = clauses_[first];
    rule.place = head.place;
    line_ += static_cast<std::size_t>(
        std::count(text_.begin() + static_cast<std::ptrdiff_t>(counted_),
                   text_.begin() + static_cast<std::ptrdiff_t>(head.place), '\n'));
    counted_ = head.place;
    rule.line = line_;
    const std::size_t end = last < clauses_.size() ? clauses_[last].place : text_.size();
    rule.text = original_.substr(head.place, end - head.place);
    while (!rule.text.empty() && (rule.text.back() == '\n' || rule.text.back() == ' '))
      rule.text.pop_back();
    // The left side follows the head, or a clause of one line.
    std::size_t left_clause = first;
    Reader begin = reader(head);
    rule.name = begin.word("the name of the rule");
    if (!begin.atQuote()) begin.expected("a sentence in quotes: what the rule does");
    rule.sentence = begin.quotedText();
    readLeft(&begin, first, &left_clause, &rule);
    bool graded = false;
    for (std::size_t pos = first + 1; pos < last; ++pos) {
      const Clause& clause = clauses_[pos];
      const std::string& word = clause.keyword;
      Reader each = reader(clause);
      if (word == "where") {
        readConditions(&each, &rule);
      } else if (word == "=>") {
        if (!rule.right.empty()) fail("a second replacement", clause.place);
        rule.right = each.statements(Reader::kRight);
        if (rule.right.empty()) each.expected("what replaces the results");
      } else if (word == "example") {
        pos = readExample(pos, last, &rule);
      } else {
        if (word == "exact" || word == "rounding") {
          if (graded) fail("exact or rounding is said once", clause.place);
          graded = true;
          rule.exact = word == "exact";
        } else {
          readFact(word, &each, clause, &rule);
        }
        readLeft(&each, pos, &left_clause, &rule);
      }
    }
    if (rule.left.empty()) fail("the rule has no pattern", head.place);
    if (rule.right.empty())
      fail("the rule has no replacement: => and what replaces the results", head.place);
    if (!graded) fail("say exact or rounding: whether results keep every bit", head.place);
    if (rule.lowers.empty() && !rule.enables) rule.lowers.push_back("nodes");
    return rule;
  }

  /// Reads statements of the left side that follow a clause of one line.
  void readLeft(Reader* reader, std::size_t pos, std::size_t* left_clause, Rule* rule) {
    if (!reader->atEnd() && reader->peek() != '\n') reader->expected("the end of the line");
    reader->skipLines();
    if (reader->atEnd()) return;
    if (!rule->left.empty())
      fail("the pattern goes on after another clause: write it in one piece", reader->place());
    *left_clause = pos;
    rule->left = reader->statements(Reader::kLeft);
  }

  void readFact(const std::string& word, Reader* reader, const Clause& clause, Rule* rule) {
    if (word == "group") {
      rule->group = reader->word("the name of a group");
    } else if (word == "set") {
      do {
        OperatorSet set;
        set.domain = reader->word("an operator set such as onnx 7..");
        if (set.domain == "onnx" || set.domain == "ai.onnx") set.domain.clear();
        double real = 0;
        const std::size_t start = reader->place();
        if (!reader->number(&set.first, &real)) fail("a version is a whole number", start);
        set.last = set.first;
        if (reader->take("..")) {
          set.last = 0;
          if (reader->atNumber() && !reader->number(&set.last, &real))
            fail("a version is a whole number", start);
          if (set.last != 0 && set.last < set.first)
            fail("the last version comes before the first", start);
        }
        rule->sets.push_back(set);
      } while (reader->take(","));
    } else if (word == "lowers") {
      do {
        const std::size_t start = reader->place();
        const std::string what = reader->word("nodes, bytes, flops or traffic");
        if (what != "nodes" && what != "bytes" && what != "flops" && what != "traffic")
          fail("expected nodes, bytes, flops or traffic, not '" + what + "'", start);
        rule->lowers.push_back(what);
      } while (reader->take(","));
    } else if (word == "enables") {
      rule->enables = true;
      reader->line();
    } else if (word == "drops") {
      reader->require("check", "check");
      rule->drops_check = true;
    } else if (word == "breaks") {
      reader->require("fusion", "fusion of, and names");
      reader->require("of", "of, and names");
      do {
        rule->breaks.push_back(reader->word("the name of a fusion"));
      } while (reader->take(","));
    } else if (word == "target") {
      rule->target = reader->word("the name of a target");
    } else {
      fail("unexpected '" + word + "'", clause.place);
    }
  }

  void readConditions(Reader* reader, Rule* rule) {
    reader->skipLines();
    if (reader->atEnd()) reader->expected("a condition");
    while (!reader->atEnd()) {
      Definition made;
      const std::size_t start = reader->place();
      made.term = reader->condition();
      if (reader->take(":=")) {
        if (made.term.kind != Term::kName) fail("a name stands before :=", start);
        made.name = made.term.text;
        reader->skipLines();
        made.term = reader->sum();
      }
      rule->where.push_back(std::move(made));
      if (reader->take(",")) {
        reader->skipLines();
        if (reader->atEnd()) reader->expected("a condition after ,");
        continue;
      }
      if (!reader->atEnd() && reader->peek() != '\n') reader->expected(", or the end of the line");
      reader->skipLines();
    }
  }

  std::size_t readExample(std::size_t pos, std::size_t last, Rule* rule) {
    Example example;
    if (pos + 1 >= last || clauses_[pos + 1].keyword != "=>")
      fail("an example has a model before, => and the model after", clauses_[pos].place);
    Reader before = reader(clauses_[pos]);
    Reader after = reader(clauses_[pos + 1]);
    example.before = before.statements(Reader::kExample);
    example.after = after.statements(Reader::kExample);
    if (example.before.empty()) before.expected("the model before");
    if (example.after.empty()) after.expected("the model after");
    example.text = text_.substr(clauses_[pos].begin, clauses_[pos + 1].end - clauses_[pos].begin);
    rule->examples.push_back(std::move(example));
    return pos + 1;
  }

  const std::string& original_;
  const std::string& file_;
  std::string text_;
  std::vector<Clause> clauses_;
  std::size_t line_ = 1;     ///< of the byte at `counted_`
  std::size_t counted_ = 0;  ///< rules are read from first to last
};

struct TypeNames {
  int code;
  const char* name;
  const char* brief;
};
constexpr std::array<TypeNames, 24> kTypes = {{{1, "float", "f32"},
                                               {2, "uint8", "u8"},
                                               {3, "int8", "i8"},
                                               {4, "uint16", "u16"},
                                               {5, "int16", "i16"},
                                               {6, "int32", "i32"},
                                               {7, "int64", "i64"},
                                               {8, "string", "string"},
                                               {9, "bool", "bool"},
                                               {10, "float16", "f16"},
                                               {11, "double", "f64"},
                                               {12, "uint32", "u32"},
                                               {13, "uint64", "u64"},
                                               {14, "complex64", "c64"},
                                               {15, "complex128", "c128"},
                                               {16, "bfloat16", "bf16"},
                                               {17, "float8e4m3fn", "f8e4m3fn"},
                                               {18, "float8e4m3fnuz", "f8e4m3fnuz"},
                                               {19, "float8e5m2", "f8e5m2"},
                                               {20, "float8e5m2fnuz", "f8e5m2fnuz"},
                                               {21, "uint4", "u4"},
                                               {22, "int4", "i4"},
                                               {23, "float4e2m1", "f4e2m1"},
                                               {24, "float8e8m0", "f8e8m0"}}};

}  // namespace

Location locationOf(const std::string& text, std::size_t place) {
  Location found{1, 1};
  for (std::size_t pos = 0; pos < place && pos < text.size(); ++pos) {
    ++found.column;
    if (text[pos] == '\n') found = Location{found.line + 1, 1};
  }
  return found;
}

void failAt(const std::string& file, const std::string& text, std::size_t place,
            const std::string& message) {
  const Location where = locationOf(text, place);
  if (message.size() > kMostMessage) {
    std::size_t end = kMostMessage - 3;
    while ((static_cast<unsigned char>(message[end]) & 0xC0U) == 0x80U) --end;
    failAt(file, text, place, message.substr(0, end) + "...");
  }
  throw RuleError((file.empty() ? "" : file + ", ") + "line " + std::to_string(where.line) +
                      ", column " + std::to_string(where.column) + ": " + message,
                  where.line, where.column);
}

int typeNamed(const std::string& name) {
  for (const TypeNames& type : kTypes) {
    if (name == type.name || name == type.brief) return type.code;
  }
  if (name == "float32") return 1;
  return name == "float64" ? 11 : 0;
}

const char* typeName(int code) {
  for (const TypeNames& type : kTypes) {
    if (code == type.code) return type.name;
  }
  return "unknown";
}

std::vector<Rule> readRules(const std::string& text, const std::string& file) {
  if (text.size() > kMostBytes) failAt(file, text, 0, "a text of rules has at most 16 MiB");
  return RuleReader(text, file).read();
}

}  // namespace passlib::rules
