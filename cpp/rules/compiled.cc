#include "rules/compiled.h"

#include <algorithm>
#include <set>

#include "rules/attributes.h"

namespace passlib::rules {
namespace {

constexpr std::size_t kMostAlternatives = 256;
/// Bounds on the operations of a pattern, which is printed for each choice, and of a replacement,
/// which is made at each match.
constexpr std::size_t kMostPattern = 1000;
constexpr std::size_t kMostReplacement = 256;

/// Where a rule has several forms: an expression with alternatives, or a statement with results
/// that may be absent.
struct Choice {
  const void* at;
  std::size_t count;
  std::size_t place;
};
/// The number of the form for each.
using Chosen = std::map<const void*, std::size_t>;

/// Collects the expressions that have alternatives, outermost first.
void collect(const Expression& expression, std::vector<Choice>* found) {
  if (!expression.alternatives.empty())
    found->push_back({&expression, expression.alternatives.size() + 1, expression.place});
  for (const Expression& input : expression.inputs) collect(input, found);
  for (const Expression& other : expression.alternatives) collect(other, found);
}

/// Counts operations and what they take.
std::size_t countOf(const Expression& expression) {
  std::size_t count = 1;
  for (const Expression& input : expression.inputs) count += countOf(input);
  for (const Expression& other : expression.alternatives) count += countOf(other);
  return count;
}

/// Prints one choice of alternatives as a pattern.
class Printer {
 public:
  Printer(const Rule& rule, int64_t opset, const Chosen& chosen)
      : rule_(rule), opset_(opset), chosen_(chosen) {}

  Alternative print() {
    for (const Statement& statement : rule_.left) {
      const Expression& expression = choice(statement.expression);
      if (expression.kind == Expression::kName && statement.targets.size() == 1) {
        made_.aliases[statement.targets[0]] = resolved(expression.names[0]);
        continue;
      }
      if (!made_.text.empty()) add("\n", statement.place);
      const auto absent = chosen_.find(&statement);
      const std::size_t count =
          statement.targets.size() - (absent == chosen_.end() ? 0 : absent->second);
      for (std::size_t pos = 0; pos < count; ++pos) {
        add((pos > 0 ? ", " : "") + statement.targets[pos], statement.place);
        note(statement.targets[pos]);
      }
      if (!statement.targets.empty()) add(" = ", statement.place);
      print(expression);
    }
    return std::move(made_);
  }

 private:
  void add(const std::string& text, std::size_t place) {
    made_.text += text;
    made_.places.resize(made_.text.size(), place);
  }
  void note(const std::string& name) {
    if (name != "_" && std::find(made_.names.begin(), made_.names.end(), name) == made_.names.end())
      made_.names.push_back(name);
  }
  std::string resolved(const std::string& name) const {
    const auto found = made_.aliases.find(name);
    return found == made_.aliases.end() ? name : found->second;
  }

  const Expression& choice(const Expression& expression) const {
    const Expression* each = &expression;
    for (;;) {
      const auto found = chosen_.find(each);
      if (found == chosen_.end() || found->second == 0) return *each;
      each = &each->alternatives[found->second - 1];
    }
  }

  void print(const Expression& given) {
    const Expression& expression = choice(given);
    if (expression.kind == Expression::kNumber) {
      const std::string name = "number_" + std::to_string(made_.numbers.size());
      const std::string value = mxnet::ext::host::printDouble(expression.number, 17);
      add(name + ":param[value=" + value + "]", expression.place);
      made_.numbers.push_back({0, name});
      note(name);
    } else if (expression.kind == Expression::kName) {
      const std::string name = resolved(expression.names[0]);
      note(name);
      const bool aliased = name != expression.names[0];
      add((expression.starred ? "*" : "") + name + (expression.optional && !aliased ? "?" : "") +
              (aliased ? "" : expression.constraint) + output(expression),
          expression.place);
    } else {
      printOperation(expression);
    }
  }

  static std::string output(const Expression& expression) {
    return expression.output < 0 ? std::string() : ":" + std::to_string(expression.output);
  }

  void printOperation(const Expression& expression) {
    std::string operators;
    for (const std::string& name : expression.names)
      operators += (operators.empty() ? "" : "|") + name;
    add((expression.shared ? "shared " : "") + operators, expression.place);
    const std::string& op = expression.names[0];
    std::string kept;
    std::vector<const Setting*> own;
    int last_input = -1;
    for (const Setting& setting : expression.settings) {
      if (expression.names.size() == 1) {
        if (const Moved* moved = movedInput(op, setting.key, opset_))
          last_input = std::max(last_input, moved->input);
      }
      if (isCompared(expression, setting)) {
        own.push_back(&setting);
        continue;
      }
      kept += (kept.empty() ? "[" : ", ") + settingText(setting);
    }
    // An attribute that later sets take as an input is absent in all sets unless the pattern names
    // it.
    for (const Moved* moved = nextMoved(op, nullptr); moved != nullptr;
         moved = nextMoved(op, moved)) {
      const bool is_named =
          std::any_of(expression.settings.begin(), expression.settings.end(),
                      [&](const Setting& setting) { return setting.key == moved->attribute; });
      const bool has_input = static_cast<int>(expression.inputs.size()) > moved->input;
      if (!is_named && !has_input && opset_ < moved->since && expression.names.size() == 1 &&
          op != "Dropout")
        kept += std::string(kept.empty() ? "[" : ", ") + "!" + std::string(moved->attribute);
    }
    if (!kept.empty()) add(kept + "]", expression.place);
    add("(", expression.place);
    std::vector<std::size_t> numbers;
    for (std::size_t pos = 0; pos < expression.inputs.size(); ++pos) {
      if (pos > 0) add(", ", expression.place);
      if (choice(expression.inputs[pos]).kind == Expression::kNumber)
        numbers.push_back(made_.numbers.size());
      print(expression.inputs[pos]);
    }
    for (const std::size_t number : numbers) made_.numbers[number].operation = operations_;
    for (int pos = static_cast<int>(expression.inputs.size()); pos <= last_input; ++pos)
      add(pos > 0 ? ", _?" : "_?", expression.place);
    add(")" + output(expression), expression.place);
    for (const Setting* setting : own) addSource(*setting);
    ++operations_;
  }

  /// Whether the engine compares an attribute, as it may be an input, be missing, or be bound.
  bool isCompared(const Expression& expression, const Setting& setting) const {
    if (setting.relation == Setting::kBind) return true;
    if (expression.names.size() != 1) return false;
    return movedInput(expression.names[0], setting.key, opset_) != nullptr ||
           defaultOf(expression.names[0], setting.key, opset_) != nullptr;
  }

  static std::string settingText(const Setting& setting) {
    if (setting.relation == Setting::kAbsent) return "!" + setting.key;
    std::string made = setting.key + (setting.optional ? "?" : "") +
                       (setting.relation == Setting::kDifferent ? "!=" : "=");
    for (std::size_t pos = 0; pos < setting.texts.size(); ++pos) {
      const std::string& text = setting.texts[pos];
      const bool plain = !text.empty() && (text[0] == '[' || text[0] == '(' ||
                                           text.find_first_of(" ,]|") == std::string::npos);
      made += (pos > 0 ? "|" : "") + (plain ? text : "\"" + text + "\"");
    }
    return made;
  }

  void addSource(const Setting& setting) {
    Source source;
    source.operation = operations_;
    source.key = setting.key;
    source.setting = &setting;
    if (setting.relation != Setting::kBind) {
      made_.checks.push_back(std::move(source));
      return;
    }
    for (std::size_t pos = 0; pos < made_.variable_names.size(); ++pos) {
      if (made_.variable_names[pos] == setting.name) {
        made_.variables[pos].push_back(std::move(source));
        return;
      }
    }
    made_.variable_names.push_back(setting.name);
    made_.variables.emplace_back(1, std::move(source));
  }

  const Rule& rule_;
  int64_t opset_;
  const Chosen& chosen_;
  Alternative made_;
  std::size_t operations_ = 0;
};

}  // namespace

std::vector<Alternative> compileLeft(const Rule& rule, const std::string& text,
                                     const std::string& file, int64_t opset) {
  std::vector<Choice> branching;
  std::size_t operations = 0;
  for (const Statement& statement : rule.left) {
    operations += countOf(statement.expression);
    if (operations > kMostPattern) {
      failAt(file, text, statement.place,
             "more than " + std::to_string(kMostPattern) + " operations and values");
    }
    if (statement.optional > 0)
      branching.push_back({&statement, statement.optional + 1, statement.place});
    collect(statement.expression, &branching);
  }
  std::size_t count = 1;
  for (const Choice& each : branching) {
    count *= each.count;
    if (count > kMostAlternatives) {
      failAt(file, text, each.place,
             "more than " + std::to_string(kMostAlternatives) + " choices of alternatives");
    }
  }
  std::vector<Alternative> made;
  std::set<std::string> texts;
  for (std::size_t number = 0; number < count; ++number) {
    Chosen chosen;
    std::size_t rest = number;
    for (const Choice& each : branching) {
      chosen[each.at] = rest % each.count;
      rest /= each.count;
    }
    Alternative each = Printer(rule, opset, chosen).print();
    std::string key = each.text;
    for (const Source& check : each.checks) key += "\n" + std::to_string(check.setting->place);
    for (const std::vector<Source>& sources : each.variables) {
      for (const Source& source : sources) key += "\n" + std::to_string(source.setting->place);
    }
    if (texts.insert(key).second) made.push_back(std::move(each));
  }
  return made;
}

bool isFor(const Rule& rule, const std::map<std::string, int64_t>& sets) {
  for (const OperatorSet& wanted : rule.sets) {
    const auto found = sets.find(wanted.domain);
    if (found == sets.end()) {
      // A right side may import a domain: its operators are as of the first version.
      if (wanted.domain.empty()) return false;
      continue;
    }
    if (found->second < wanted.first || (wanted.last != 0 && found->second > wanted.last))
      return false;
  }
  return true;
}

namespace {

class RightCheck {
 public:
  RightCheck(const Rule& rule, const std::vector<Alternative>& patterns, const std::string& text,
             const std::string& file)
      : rule_(rule), text_(text), file_(file) {
    for (const Alternative& each : patterns) {
      names_.insert(each.names.begin(), each.names.end());
      for (const auto& alias : each.aliases) names_.insert(alias.first);
      for (const std::string& name : each.variable_names) variables_.insert(name);
    }
    for (const Statement& statement : rule.left) {
      collectNames(statement.expression);
    }
  }

  void check() {
    for (const Definition& definition : rule_.where) {
      term(definition.term, false);
      if (definition.name.empty()) continue;
      if (names_.count(definition.name) != 0)
        fail("'" + definition.name + "' is a value of the pattern", definition.term.place);
      if (!definitions_.insert(definition.name).second)
        fail("'" + definition.name + "' is defined twice", definition.term.place);
    }
    const std::set<std::string> results = resultsOf();
    bool has_unnamed = false;
    for (const Statement& statement : rule_.right) {
      operations_ += countOf(statement.expression);
      if (operations_ > kMostReplacement) {
        fail("more than " + std::to_string(kMostReplacement) + " operations and values",
             statement.place);
      }
      expression(statement.expression);
      has_unnamed = has_unnamed || statement.targets.empty();
      for (const std::string& target : statement.targets) {
        if (target == "_") continue;
        if (!locals_.insert(target).second)
          fail("'" + target + "' is defined twice", statement.place);
        if (names_.count(target) != 0 && results.count(target) == 0)
          fail("'" + target + "' is no result of the pattern", statement.place);
      }
    }
    if (has_unnamed) {
      if (results.size() > 1 || rule_.right.size() > 1)
        fail("expected a name and = before each value", rule_.right[0].place);
      return;
    }
    for (const std::string& name : results) {
      if (locals_.count(name) == 0)
        fail("nothing replaces the result '" + name + "'", rule_.right[0].place);
    }
    if (results.empty()) fail("the result of the pattern has no name", rule_.left[0].place);
  }

 private:
  [[noreturn]] void fail(const std::string& message, std::size_t place) const {
    failAt(file_, text_, place, message);
  }

  /// The names of the left side that it does not use itself.
  std::set<std::string> resultsOf() const {
    std::set<std::string> used;
    for (const Statement& statement : rule_.left) collectUses(statement.expression, &used);
    std::set<std::string> results;
    for (const Statement& statement : rule_.left) {
      for (const std::string& target : statement.targets) {
        if (target != "_" && used.count(target) == 0) results.insert(target);
      }
    }
    return results;
  }

  static void collectUses(const Expression& expression, std::set<std::string>* used) {
    if (expression.kind == Expression::kName) used->insert(expression.names[0]);
    for (const Expression& input : expression.inputs) collectUses(input, used);
    for (const Expression& other : expression.alternatives) collectUses(other, used);
  }

  void collectNames(const Expression& expression) {
    if (expression.starred) starred_.insert(expression.names[0]);
    for (const Expression& input : expression.inputs) collectNames(input);
    for (const Expression& other : expression.alternatives) collectNames(other);
  }

  void term(const Term& each, bool attribute) const {
    if (each.kind == Term::kCall) {
      const Function* function = functionNamed(each.text);
      if (function == nullptr) fail("unknown function '" + each.text + "'", each.place);
      if (each.children.size() < function->least || each.children.size() > function->most)
        fail("expected " + each.text + "(" + function->arguments + ")", each.place);
      for (const Term& child : each.children) {
        if (child.kind == Term::kStarred && each.text != "inputs" && each.text != "broadcast" &&
            each.text != "rank")
          fail("only inputs, rank and broadcast take a variadic input", child.place);
      }
    }
    if (each.kind == Term::kAttribute && variables_.count(each.text) == 0)
      fail("the pattern has no attribute $" + each.text, each.place);
    if (each.kind == Term::kStarred && starred_.count(each.text) == 0)
      fail("the pattern has no variadic input '" + each.text + "'", each.place);
    if (each.kind == Term::kName) name(each, attribute);
    for (const Term& child : each.children) term(child, false);
  }

  void name(const Term& each, bool attribute) const {
    const bool is_value = names_.count(each.text) != 0 && each.text != "opset";
    if (attribute && is_value)
      fail("'" + each.text + "' is a value, not a number: write value(" + each.text + ")",
           each.place);
    if (is_value || definitions_.count(each.text) != 0 || typeNamed(each.text) != 0 ||
        each.text == "true" || each.text == "false" || each.text == "opset")
      return;
    if (!attribute) fail("the pattern has no value '" + each.text + "'", each.place);
  }

  void expression(const Expression& each) const {
    for (const Setting& setting : each.settings) {
      if (setting.relation == Setting::kSpread) {
        if (names_.count(setting.name) == 0)
          fail("the pattern has no operation '" + setting.name + "'", setting.place);
      } else {
        term(setting.term, true);
      }
    }
    for (const Term& each_term : each.terms) term(each_term, false);
    if (each.kind == Expression::kOperation && each.names[0][0] == '@' &&
        names_.count(each.names[0].substr(1)) == 0)
      fail("the pattern has no operation '" + each.names[0].substr(1) + "'", each.place);
    if (each.kind == Expression::kName && each.names[0] != "_") {
      const std::string& name = each.names[0];
      if (each.starred && starred_.count(name) == 0)
        fail("the pattern has no variadic input '" + name + "'", each.place);
      if (!each.starred && starred_.count(name) != 0)
        fail("'" + name + "' is variadic: write *" + name, each.place);
      if (!each.starred && names_.count(name) == 0 && locals_.count(name) == 0)
        fail("the pattern has no value '" + name + "'", each.place);
    }
    for (const Expression& input : each.inputs) expression(input);
  }

  const Rule& rule_;
  const std::string& text_;
  const std::string& file_;
  std::set<std::string> names_;
  std::set<std::string> starred_;
  std::set<std::string> variables_;
  std::set<std::string> definitions_;
  std::set<std::string> locals_;
  std::size_t operations_ = 0;
};

}  // namespace

void checkRight(const Rule& rule, const std::vector<Alternative>& patterns, const std::string& text,
                const std::string& file) {
  RightCheck(rule, patterns, text, file).check();
}

}  // namespace passlib::rules
