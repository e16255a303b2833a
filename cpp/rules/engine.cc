#include "rules/engine.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "graph/attributes.h"
#include "lib_patterns.h"
#include "rules/attributes.h"
#include "rules/compiled.h"
#include "rules/folding.h"
#include "rules/terms.h"

namespace passlib::rules {
namespace {

using mxnet::ext::Match;
using mxnet::ext::MXDType;
using mxnet::ext::MXTensor;
using mxnet::ext::Pattern;
using mxnet::ext::PatternSet;
using mxnet::ext::host::AttributeTexts;

using OperatorSets = std::map<std::string, int64_t>;

/// The version for which the patterns of a rule are checked when it is read.
constexpr int64_t kNewest = 1000;

/// The most bytes of constants that rules make: so many, and more for each byte of the model's
/// constants that they are made of.
constexpr int64_t kMostNewBytes = int64_t{1} << 26;
constexpr int64_t kMostTimes = 16;

/// The most axes of an array in Python.
constexpr std::size_t kMostArrayAxes = 32;

/// A replacement is counted once for so many new operators.
constexpr std::size_t kOperatorsAtOnce = 8;

/// The most inputs that a condition counts: patterns may ask about one value at each of its uses.
constexpr std::size_t kMostUses = 1000;

/// The number of users of a value that are tried as a later result of a rule: their pairs would
/// take time quadratic in the users.
constexpr std::size_t kMostUsers = 32;

/// Compiles a pattern; its errors are at their places in the text of all rules.
Pattern patternOf(const Alternative& alternative, const Rule& rule, const std::string& text,
                  const std::string& file) {
  try {
    return Pattern(alternative.text);
  } catch (const mxnet::ext::PatternError& error) {
    std::size_t place = 0;
    for (std::size_t line = 1; line < error.line; ++line)
      place = alternative.text.find('\n', place) + 1;
    place += error.column - 1;
    std::string message = error.what();
    const std::size_t start = message.find(": ");
    if (start != std::string::npos) message = message.substr(start + 2);
    failAt(file, text, place < alternative.places.size() ? alternative.places[place] : rule.place,
           message);
  }
}

}  // namespace

/// A rule for models of one version of ONNX's operators.
struct CompiledRule {
  const Rule* rule = nullptr;
  std::size_t number = 0;
  std::vector<Alternative> alternatives;
  std::vector<Pattern> patterns;  ///< of the alternatives; their functions ask the session at work
  std::set<std::string> names;    ///< of all alternatives
};

namespace {

bool isAbsent(const Node& node) { return node.op == "null" && node.name == "__absent__"; }

/// Thrown where a replacement has no form for a match; the match stays as it is.
struct Declined {
  std::string reason;
};

class Session;

/// The values of a rule's names in a match.
class MatchScope : public Scope {
 public:
  MatchScope(const Session& session, const CompiledRule& rule, const Alternative& alternative,
             const Match& match)
      : session_(session), rule_(rule), alternative_(alternative), match_(match) {}

  bool entries(const std::string& name, std::vector<NodeEntry>* found) const override {
    if (rule_.names.count(name) == 0) return false;
    const std::string known = nameOf(name);
    if (!has(known)) return true;  // a name of another alternative
    if (!match_.has(known)) return true;
    if (match_.isList(known)) {
      *found = match_.list(known);
    } else {
      found->push_back(match_[known]);
    }
    return true;
  }

  Value attribute(const std::string& name) const override {
    for (std::size_t pos = 0; pos < alternative_.variable_names.size(); ++pos) {
      if (alternative_.variable_names[pos] == name)
        return sourceValue(alternative_.variables[pos].front());
    }
    return Value::unknown("$" + name + " is absent");
  }

  bool definition(const std::string& name, Value* found) const override {
    const auto known = definitions_.find(name);
    if (known == definitions_.end()) return false;
    *found = known->second;
    return true;
  }
  void define(const std::string& name, Value value) {
    items_ += value.list.size();
    elements_ += value.numbers.size();
    if (items_ > 16 * kMostItems || elements_ > 2 * kMostElements)
      value = Value::unknown("the definitions of the rule hold too many items");
    definitions_[name] = std::move(value);
  }

  Known known(const NodeEntry& entry) const override;
  int64_t operatorSet(const std::string& domain) const override;
  bool isOutput(const NodeEntry& entry) const override;
  bool users(const NodeEntry& entry, std::size_t* count, bool* captured) const override;

  Node* nodeOf(const Source& source) const { return match_.nodes()[source.operation]; }
  Value sourceValue(const Source& source) const { return attributeOf(*nodeOf(source), source.key); }
  /// The value of an attribute of a node, from an input or its default if it is that.
  Value attributeOf(const Node& node, const std::string& key) const;
  bool states(const Node& node, const std::string& key) const;

  /// Whether the alternative lacks a name that another has.
  bool isAbsentName(const std::string& name) const {
    return rule_.names.count(name) != 0 && !has(nameOf(name));
  }
  bool has(const std::string& name) const {
    return std::find(alternative_.names.begin(), alternative_.names.end(), name) !=
           alternative_.names.end();
  }
  std::string nameOf(const std::string& name) const {
    const auto alias = alternative_.aliases.find(name);
    return alias == alternative_.aliases.end() ? name : alias->second;
  }

 private:
  const Session& session_;
  const CompiledRule& rule_;
  const Alternative& alternative_;
  const Match& match_;
  std::map<std::string, Value> definitions_;
  std::size_t items_ = 0;     ///< of the lists in definitions
  std::size_t elements_ = 0;  ///< of the constants in them
};

/// Rules while they are applied to a model.
class Session {
 public:
  Session(const std::string& text, Graph* graph, const Hooks& hooks, std::size_t rules)
      : text_(text), graph_(graph), hooks_(hooks), sets_(operatorSetsOf(*graph)) {
    applied_.counts.resize(rules);
    patterns_hooks_.add_node = hooks.add_node;
    patterns_hooks_.most_users = kMostUsers;
    patterns_hooks_.remove_node = [this](Graph* where, Node* node) {
      dead_.insert(node);
      for (const NodeEntry& input : node->inputs) {
        if (where == graph_ && input.node->op != "null" && left_.insert(input.node).second)
          applied_.left.push_back(input.node);
      }
      if (hooks_.remove_node) hooks_.remove_node(where, node);
    };
    graph->forEachGraph([this](Graph* each) {
      limits_[each] = 6 * each->nodes.size() + 500;
      for (std::size_t pos = 0; pos < each->outputs.size(); ++pos)
        heads_[each->outputs[pos].node].push_back(pos);
    });
  }

  const OperatorSets& operatorSets() const { return sets_; }

  void add(const CompiledRule& compiled) {
    rules_.push_back(&compiled);
    for (const Pattern& pattern : compiled.patterns) patterns_.add(pattern);
  }

  Applied apply() {
    const AtWork at_work(this);
    if (!rules_.empty()) patterns_.apply(graph_, patterns_hooks_);
    const auto is_gone = [this](const Node* node) { return dead_.count(node) != 0; };
    applied_.folds.erase(std::remove_if(applied_.folds.begin(), applied_.folds.end(), is_gone),
                         applied_.folds.end());
    const auto is_needed = [&](const Node* node) {
      return is_gone(node) || !node->outputs.empty() || !headsOf(node).empty();
    };
    applied_.left.erase(std::remove_if(applied_.left.begin(), applied_.left.end(), is_needed),
                        applied_.left.end());
    return std::move(applied_);
  }

  std::string why(Node* node) {
    const AtWork at_work(this);
    const std::string answer = patterns_.why(graph_, node);
    return answer.find("condition 1 is not met") == 0 && !reason_.empty() ? reason_ : answer;
  }

  Known known(const NodeEntry& entry) const { return hooks_.known(entry); }
  int64_t operatorSet(const std::string& domain) const {
    const auto found = sets_.find(domain);
    return found == sets_.end() ? 0 : found->second;
  }
  bool isDead(const Node* node) const { return dead_.count(node) != 0; }
  bool isFolding(const Node* node) const { return folding_.count(node) != 0; }
  const Hooks& hooks() const { return hooks_; }
  /// Whether a value is an output of its graph, of which there may be many.
  bool isOutput(const Graph& graph, const NodeEntry& value) const {
    const std::vector<std::size_t>& heads = headsOf(value.node);
    return std::any_of(heads.begin(), heads.end(),
                       [&](std::size_t head) { return graph.outputs[head] == value; });
  }
  const std::vector<std::size_t>& headsOf(const Node* node) const {
    static const std::vector<std::size_t> none;
    const auto heads = heads_.find(node);
    return heads == heads_.end() ? none : heads->second;
  }

  /// The session whose rules are applied by this thread.
  static Session& atWork() { return *at_work_; }
  bool meets(const CompiledRule& compiled, const Alternative& alternative, const Match& match);
  void rewrite(const CompiledRule& compiled, const Alternative& alternative, Match* match);

  void noteAdded(Graph* graph, Node* node) {
    if (hooks_.added) hooks_.added(graph, node);
  }
  /// Whether there is room for a constant of so many bytes, which it takes.
  bool takeRoom(int64_t bytes) {
    if (bytes > room_) return false;
    room_ -= bytes;
    return true;
  }
  /// Makes room for constants that are made of an array, once, if the model had it before.
  void noteRead(const MXTensor& array) {
    if (arrays_.insert(&array).second)
      room_ += kMostTimes * array.size() * static_cast<int64_t>(bytesOf(array.dtype));
  }
  void noteMade(const MXTensor& array) { arrays_.insert(&array); }
  void noteFold(Node* node) {
    applied_.folds.push_back(node);
    folding_.insert(node);
  }

 private:
  /// Compiled rules belong to no session, and ask the one of their thread.
  class AtWork {
   public:
    explicit AtWork(Session* session) : before_(at_work_) { at_work_ = session; }
    ~AtWork() { at_work_ = before_; }
    AtWork(const AtWork&) = delete;
    AtWork& operator=(const AtWork&) = delete;

   private:
    Session* before_;
  };
  static thread_local Session* at_work_;

  std::string snippet(const Term& term) const {
    std::string made = text_.substr(term.place, term.end - term.place);
    std::replace(made.begin(), made.end(), '\n', ' ');
    return made;
  }

  bool refuse(const std::string& reason) {
    if (reason_.empty()) reason_ = reason;
    return false;
  }

  bool refuse(const Term& term, const Value& value) {
    if (!reason_.empty()) return false;
    const std::string text = "'" + snippet(term) + "'";
    if (value.kind == Value::kTruth) return refuse("condition " + text + " is not met");
    return refuse("condition " + text + " is not known to be true: " + value.described());
  }

  bool meetsSetting(const MatchScope& scope, const Source& check) {
    const Setting& setting = *check.setting;
    const Node& node = *scope.nodeOf(check);
    const bool stated = scope.states(node, check.key);
    if (setting.relation == Setting::kAbsent) {
      return !stated || refuse("'" + node.name + "' (" + node.op + ") has " + check.key);
    }
    if (!stated && setting.optional) return true;
    const Value value = scope.sourceValue(check);
    if (!value.known() && !stated && setting.relation == Setting::kDifferent) return true;
    if (!value.known()) return refuse(value.text);
    bool is_one = false;
    for (const std::string& text : setting.texts) {
      is_one = is_one || areEqual(value, attributeValue(text));
    }
    if (is_one == (setting.relation == Setting::kEqual)) return true;
    return refuse("'" + node.name + "' (" + node.op + ") has " + check.key + "=" +
                  value.described() + ", which the rule does not allow");
  }

  bool meetsVariable(const MatchScope& scope, const std::vector<Source>& sources) {
    Value first;
    for (const Source& source : sources) {
      const Value value = scope.sourceValue(source);
      if (!value.known()) {
        if (source.setting->optional && !scope.states(*scope.nodeOf(source), source.key)) continue;
        return refuse(value.text);
      }
      if (!first.known()) {
        first = value;
        continue;
      }
      if (!areEqual(first, value)) {
        return refuse("$" + source.setting->name + " is " + first.described() +
                      " at one place and " + value.described() + " at another");
      }
    }
    return true;
  }

  /// Whether a number adds no axes to the result of its operation.
  bool fitsNumber(const Number& number, const Match& match) {
    const NodeEntry entry = match[number.name];
    const MXTensor* tensor = known(entry).constant;
    if (tensor == nullptr || tensor->shape.empty()) return true;
    for (const NodeEntry& input : match.nodes()[number.operation]->inputs) {
      const facts::Fact& fact = known(input).fact;
      if (!(input == entry) && fact.shape && fact.shape->size() >= tensor->shape.size())
        return true;
    }
    return refuse("'" + entry.node->name + "' has more axes than what it is joined with, or may");
  }

  /// Whether the terms of a replacement have values.
  bool isSayable(const Expression& expression, const MatchScope& scope) {
    for (const Setting& setting : expression.settings) {
      if (setting.relation == Setting::kSpread || isLeftOut(setting, scope)) continue;
      const Value value = evaluate(setting.term, scope);
      if (!value.attribute()) {
        return refuse("no value for " + setting.key + "=" + snippet(setting.term) + ": " +
                      value.described());
      }
    }
    for (const Term& term : expression.terms) {
      const Value value = evaluate(term, scope);
      if (!value.isNumeric())
        return refuse("no value for '" + snippet(term) + "': " + value.described());
    }
    for (const Expression& input : expression.inputs) {
      if (!isSayable(input, scope)) return false;
    }
    return true;
  }

  /// Whether an attribute is that of a match without it, so that the replacement has none either.
  static bool isLeftOut(const Setting& setting, const MatchScope& scope) {
    return setting.term.kind == Term::kAttribute && !scope.attribute(setting.term.text).known();
  }

  void count(const CompiledRule& compiled, const Graph* graph, std::size_t operators);

  friend class Builder;

  const std::string& text_;
  Graph* graph_;
  const Hooks& hooks_;
  OperatorSets sets_;
  mxnet::ext::PatternHooks patterns_hooks_;
  std::vector<const CompiledRule*> rules_;
  PatternSet patterns_;
  std::unordered_set<const Node*> dead_;
  std::unordered_set<const Node*> left_;     ///< operators that one used which is gone
  std::unordered_set<const Node*> folding_;  ///< operators on constants, computed later
  std::unordered_map<const Graph*, std::size_t> limits_;
  /// Numbers of the outputs that a node computed once; whether it still does, the graph tells.
  std::unordered_map<const Node*, std::vector<std::size_t>> heads_;
  std::vector<std::size_t> recent_;
  int64_t room_ = kMostNewBytes;  ///< bytes that new constants may still take
  std::unordered_set<const MXTensor*> arrays_;
  std::string reason_;
  Applied applied_;
};

thread_local Session* Session::at_work_ = nullptr;

bool Session::meets(const CompiledRule& compiled, const Alternative& alternative,
                    const Match& match) {
  for (const Node* node : match.nodes()) {
    if (folding_.count(node) != 0) return refuse("'" + node->name + "' becomes a constant");
    const bool stays = hooks_.kept != nullptr && hooks_.kept->count(node->name) != 0;
    if (stays) return refuse("'" + node->name + "' is to stay");
  }
  MatchScope scope(*this, compiled, alternative, match);
  for (const Source& check : alternative.checks) {
    if (!meetsSetting(scope, check)) return false;
  }
  for (const Number& number : alternative.numbers) {
    if (!fitsNumber(number, match)) return false;
  }
  for (std::size_t pos = 0; pos < alternative.variables.size(); ++pos) {
    if (!meetsVariable(scope, alternative.variables[pos])) return false;
  }
  for (const Definition& definition : compiled.rule->where) {
    Value value = evaluate(definition.term, scope);
    if (!definition.name.empty()) {
      scope.define(definition.name, std::move(value));
    } else if (!value.isTrue()) {
      return refuse(definition.term, value);
    }
  }
  for (const Statement& statement : compiled.rule->right) {
    if (!isSayable(statement.expression, scope)) return false;
  }
  return true;
}

Known MatchScope::known(const NodeEntry& entry) const { return session_.known(entry); }
int64_t MatchScope::operatorSet(const std::string& domain) const {
  return session_.operatorSet(domain);
}

bool MatchScope::isOutput(const NodeEntry& entry) const {
  return session_.isOutput(*match_.graph(), entry);
}

bool MatchScope::users(const NodeEntry& entry, std::size_t* count, bool* captured) const {
  if (entry.node->outputs.size() > kMostUses) return false;
  for (const NodeEntry& use : entry.node->outputs) {
    if (session_.isDead(use.node)) continue;
    if (use.node->inputs[static_cast<std::size_t>(use.entry)].entry != entry.entry) continue;
    ++*count;
    const std::string_view formal = passlib::attributeOf(*use.node, "__formal_inputs__");
    int64_t own = 0;
    std::from_chars(formal.data(), formal.data() + formal.size(), own);
    if (!use.node->subgraphs.empty() && formal.data() != nullptr && use.entry >= own)
      *captured = true;
  }
  return true;
}

bool MatchScope::states(const Node& node, const std::string& key) const {
  std::string text;
  if (AttributeTexts(node.attrs).get(key.c_str(), &text)) return true;
  const Moved* moved = movedInput(node.op, key, operatorSet(std::string()));
  return moved != nullptr && static_cast<std::size_t>(moved->input) < node.inputs.size() &&
         !isAbsent(*node.inputs[static_cast<std::size_t>(moved->input)].node);
}

Value MatchScope::attributeOf(const Node& node, const std::string& key) const {
  const int64_t opset = operatorSet(std::string());
  const Moved* moved = movedInput(node.op, key, opset);
  std::string stated;  // in files that are wrong, also where it is an input
  if (AttributeTexts(node.attrs).get(key.c_str(), &stated)) return attributeValue(stated);
  if (moved != nullptr && states(node, key)) {
    const NodeEntry& input = node.inputs[static_cast<std::size_t>(moved->input)];
    return contentOf(known(input), input.node->name);
  }
  const char* text = defaultOf(node.op, key, opset);
  const std::string missing =
      "'" + node.name + "' (" + node.op + ") has no attribute '" + key + "'";
  if (text == nullptr) return Value::unknown(missing);
  const bool reversed = std::string(text) == "reversed";
  if (!reversed && std::string(text) != "axes") return attributeValue(text);
  if (node.inputs.empty()) return Value::unknown(missing);
  if (!reversed && attributeOf(node, "noop_with_empty_axes").number() != 0)
    return Value::unknown(missing);
  const facts::Fact& fact = known(node.inputs[0]).fact;
  if (!fact.shape)
    return Value::unknown("the rank of '" + node.inputs[0].node->name + "' is unknown");
  std::vector<Dim> axes;
  const int64_t rank = static_cast<int64_t>(fact.shape->size());
  for (int64_t axis = 0; axis < rank; ++axis) axes.emplace_back(reversed ? rank - 1 - axis : axis);
  return Value::of(axes);
}

/// Makes what replaces a match.
class Builder {
 public:
  Builder(Session* session, const MatchScope& scope, const Alternative& alternative, Match* match)
      : session_(*session), scope_(scope), alternative_(alternative), match_(*match) {}

  void build(const Rule& rule) {
    for (const Statement& statement : rule.right) {
      std::size_t count = statement.targets.size();
      while (count > 0 && scope_.isAbsentName(statement.targets[count - 1])) --count;
      if (count == 0 && !statement.targets.empty()) continue;
      const int outputs = static_cast<int>(std::max<std::size_t>(count, 1));
      const NodeEntry made = value(statement.expression, outputs);
      if (made.node == nullptr) throw Declined{"an input that it would keep is absent"};
      if (statement.targets.empty()) results_.emplace_back(std::string(), made);
      for (std::size_t pos = 0; pos < count; ++pos) {
        const std::string& name = statement.targets[pos];
        const NodeEntry each(made.node, made.entry + static_cast<int>(pos));
        if (name == "_") continue;
        locals_[name] = each;
        if (scope_.nameOf(name) == name && scope_.has(name)) results_.emplace_back(name, each);
      }
    }
  }

  const std::vector<std::pair<std::string, NodeEntry>>& results() const { return results_; }
  const std::vector<Node*>& operations() const { return operations_; }
  const std::vector<Node*>& constants() const { return constants_; }

 private:
  NodeEntry value(const Expression& expression, int outputs, int type = 0) {
    switch (expression.kind) {
      case Expression::kNumber:
        return scalar(expression.number, type);
      case Expression::kName:
        return named(expression);
      case Expression::kConstructor:
        return constructed(expression, false);
      default:
        return operation(expression, outputs, false);
    }
  }

  NodeEntry named(const Expression& expression) {
    const std::string& name = expression.names[0];
    if (name == "_") return NodeEntry();
    const auto local = locals_.find(name);
    NodeEntry found;
    if (local != locals_.end()) {
      found = local->second;
    } else {
      std::vector<NodeEntry> entries;
      if (!scope_.entries(name, &entries) || entries.empty()) return NodeEntry();
      found = entries[0];
    }
    return expression.output < 0 ? found : NodeEntry(found.node, expression.output);
  }

  int typeOf(const NodeEntry& entry) const {
    const int type = session_.known(entry).fact.type;
    if (type == 0) throw Declined{"the element type of '" + entry.node->name + "' is unknown"};
    return type;
  }

  // ---- constants ----

  Node* parameter(const std::vector<int64_t>& shape, MXDType type) {
    if (type == mxnet::ext::kUNSET) throw Declined{"models have no arrays of this element type"};
    Dim bytes(static_cast<int64_t>(bytesOf(type)));
    for (const int64_t size : shape) bytes = bytes * Dim(size);
    if (shape.size() > kMostArrayAxes || !bytes.isNumber() || !session_.takeRoom(bytes.number()))
      throw Declined{"a constant that is much larger than what it is made of"};
    Node* node = match_.parameterVariable("value");
    session_.hooks().allocate(node, shape, type);
    session_.noteMade(*node->tensor);
    constants_.push_back(node);
    return node;
  }

  NodeEntry scalar(double number, int type) {
    if (type == 0) throw Declined{"the element type of a number is unknown"};
    Node* node = parameter({}, arrayType(type));
    set(node, 0, number);
    return NodeEntry(node, 0);
  }

  /// Refuses results of a folded operation that are too large, or whose size nobody knows.
  void requireRoom(const NodeEntry& made) {
    const facts::Fact& fact = session_.known(made).fact;
    Dim bytes = fact.shape ? facts::product(*fact.shape) : Dim();
    bytes = bytes * Dim(std::max<int64_t>(static_cast<int64_t>(bytesOf(arrayType(fact.type))), 1));
    if (!bytes.isNumber() || !session_.takeRoom(bytes.number()))
      throw Declined{"a constant of unknown size, or much larger than what it is made of"};
  }

  /// Sets an element to a number that its type has, real ones rounded.
  static void set(Node* node, std::size_t pos, double number) {
    if (!fits(number, onnxType(node->tensor->dtype)))
      throw Declined{"a number that its element type does not have"};
    setElementAt(*node->tensor, pos, number);
  }

  NodeEntry integers(const std::vector<int64_t>& numbers, bool is_list, MXDType type) {
    std::vector<int64_t> shape;
    if (is_list) shape.push_back(static_cast<int64_t>(numbers.size()));
    Node* node = parameter(shape, type);
    for (std::size_t pos = 0; pos < numbers.size(); ++pos) {
      if (type == mxnet::ext::kInt64) {
        std::memcpy(static_cast<char*>(node->tensor->data_ptr) + 8 * pos, &numbers[pos], 8);
      } else {
        set(node, pos, exactly(numbers[pos]));
      }
    }
    return NodeEntry(node, 0);
  }

  NodeEntry constant(const Value& value, int type) {
    const std::vector<Value> items =
        value.kind == Value::kList ? value.list : std::vector<Value>(1, value);
    std::vector<int64_t> numbers;
    for (const Value& item : items) {
      if (item.number()) numbers.push_back(*item.number());
    }
    const bool is_list = value.kind == Value::kList;
    if (numbers.size() == items.size()) return integers(numbers, is_list, arrayType(type));
    std::vector<int64_t> shape;
    if (is_list) shape.push_back(static_cast<int64_t>(items.size()));
    Node* node = parameter(shape, arrayType(type));
    for (std::size_t pos = 0; pos < items.size(); ++pos) {
      const Value& item = items[pos];
      if (item.kind != Value::kReal && !item.number())
        throw Declined{"a constant without a number"};
      set(node, pos, item.kind == Value::kReal ? item.real : exactly(*item.number()));
    }
    return NodeEntry(node, 0);
  }

  static double exactly(int64_t number) {
    const double made = static_cast<double>(number);
    if (std::fabs(made) > 9007199254740992.0) throw Declined{"a whole number of more than 53 bits"};
    return made;
  }

  const MXTensor& arrayOf(const NodeEntry& entry) const {
    const MXTensor* tensor = session_.known(entry).constant;
    if (tensor == nullptr) throw Declined{"'" + entry.node->name + "' is no constant"};
    return *tensor;
  }

  /// Computes a movement of a constant.
  NodeEntry moved(const std::string& op, const std::string& key,
                  const std::vector<int64_t>& numbers, const NodeEntry& input) {
    const std::vector<Dim> dims(numbers.begin(), numbers.end());
    NodeEntry made;
    if (!folded(op, {{key, Value::of(dims)}}, {&arrayOf(input)}, &made))
      throw Declined{"the array of '" + input.node->name + "' is not dense"};
    return made;
  }

  bool folded(const std::string& op, const std::map<std::string, Value>& settings,
              const std::vector<const MXTensor*>& inputs, NodeEntry* made) {
    for (const MXTensor* input : inputs) session_.noteRead(*input);
    const bool is_made =
        foldNatively(op, settings, inputs,
                     [&](const std::vector<int64_t>& shape, MXDType type) -> const MXTensor* {
                       *made = NodeEntry(parameter(shape, type), 0);
                       return made->node->tensor;
                     });
    // Other operators with attributes only move elements, which stay finite.
    if (is_made && (settings.empty() || op == "ReduceSum") && !isFinite(*made->node->tensor))
      throw Declined{"a constant of the replacement would not be finite"};
    return is_made;
  }

  /// `fold`: inside of fold(...).
  NodeEntry constructed(const Expression& expression, bool fold) {
    const std::string& name = expression.names[0];
    if (const int type = typeNamed(name))
      return constant(evaluate(expression.terms[0], scope_), type);
    if (name == "fold") return foldedValue(expression.inputs[0], 0);
    const auto part = [&](std::size_t pos) {
      return fold ? foldedValue(expression.inputs[pos], 0) : value(expression.inputs[pos], 1);
    };
    const NodeEntry input = part(0);
    if (name == "either") return input.node != nullptr ? input : part(1);
    if (input.node == nullptr) return input;
    if (name == "shape_of") return shapeOf(input);
    if (name == "like") {
      const int type = typeOf(input);
      const Value number = evaluate(expression.terms[0], scope_);
      if (number.kind == Value::kList) throw Declined{"no single number"};
      return constant(number, type);
    }
    const std::vector<int64_t>& shape = arrayOf(input).shape;
    if (name == "transposed") {
      std::vector<int64_t> order;
      for (std::size_t axis = 0; axis < shape.size(); ++axis)
        order.push_back(static_cast<int64_t>(axis));
      if (order.size() < 2) throw Declined{"a matrix has two axes"};
      std::swap(order[order.size() - 1], order[order.size() - 2]);
      return moved("Transpose", "perm", order, input);
    }
    const int64_t size = arrayOf(input).size();
    if (name == "flat") {
      const NodeEntry flat = moved("Reshape", "shape", {size}, input);
      if (expression.terms.empty()) return flat;
      const std::optional<int64_t> wanted = evaluate(expression.terms[0], scope_).number();
      if (!wanted) throw Declined{"the number of elements is unknown"};
      if (*wanted == size) return flat;
      if (size != 1) throw Declined{"no constant of one element"};
      return moved("Expand", "shape", {*wanted}, flat);
    }
    const std::optional<int64_t> axis = evaluate(expression.terms[0], scope_).number();
    const std::optional<int64_t> rank = evaluate(expression.terms[1], scope_).number();
    if (!axis || !rank || *rank < 0 || *rank > 1024 || *axis < 0 || *axis >= *rank)
      throw Declined{"no axis to align with"};
    std::vector<int64_t> aligned(static_cast<std::size_t>(*rank), 1);
    aligned[static_cast<std::size_t>(*axis)] = size;
    return moved("Reshape", "shape", aligned, input);
  }

  NodeEntry shapeOf(const NodeEntry& input) {
    const facts::Fact& fact = session_.known(input).fact;
    if (fact.shape && facts::isStatic(*fact.shape)) {
      std::vector<int64_t> numbers;
      for (const Dim& each : *fact.shape) numbers.push_back(each.number());
      return integers(numbers, true, mxnet::ext::kInt64);
    }
    return added("Shape", {input}, {}, 1);
  }

  /// The value of operations on constants: computed at once, or an operation that is noted.
  NodeEntry foldedValue(const Expression& expression, int type) {
    if (expression.kind == Expression::kOperation) return operation(expression, 1, true);
    if (expression.kind == Expression::kConstructor) return constructed(expression, true);
    return value(expression, 1, type);
  }

  // ---- operations ----

  NodeEntry operation(const Expression& expression, int outputs, bool fold) {
    std::vector<NodeEntry> inputs(expression.inputs.size());
    std::vector<NodeEntry> all;
    int type = 0;
    const auto is_number = [](const Expression& each) { return each.kind == Expression::kNumber; };
    for (std::size_t pos = 0; pos < inputs.size(); ++pos) {
      const Expression& each = expression.inputs[pos];
      if (is_number(each) || each.starred) continue;
      inputs[pos] = fold ? foldedValue(each, 0) : value(each, 1);
      if (fold && inputs[pos].node == nullptr) return NodeEntry();  // absent, as its input
      if (inputs[pos].node != nullptr && type == 0) type = session_.known(inputs[pos]).fact.type;
    }
    for (std::size_t pos = 0; pos < inputs.size(); ++pos) {
      const Expression& each = expression.inputs[pos];
      if (each.starred) {
        std::vector<NodeEntry> list;
        scope_.entries(each.names[0], &list);
        if (fold && list.empty()) return NodeEntry();
        all.insert(all.end(), list.begin(), list.end());
        continue;
      }
      all.push_back(is_number(each) ? scalar(each.number, type) : inputs[pos]);
    }
    return finish(expression, std::move(all), outputs, fold, type);
  }

  NodeEntry finish(const Expression& expression, std::vector<NodeEntry> inputs, int outputs,
                   bool fold, int type) {
    std::string op = expression.names[0];
    std::unordered_map<std::string, std::string> attributes;
    if (op[0] == '@') {
      const std::string name = scope_.nameOf(op.substr(1));
      spread(name, &attributes);
      const Node& node = *match_.node(name);
      std::string domain;
      AttributeTexts(node.attrs).get("__domain__", &domain);
      op = (domain.empty() ? "" : domain + "::") + node.op;
    }
    std::map<std::string, Value> settings;
    const int64_t opset = scope_.operatorSet(std::string());
    for (const Setting& setting : expression.settings) {
      if (setting.relation == Setting::kSpread) spread(scope_.nameOf(setting.name), &attributes);
    }
    const bool spreads = !attributes.empty();
    for (const Setting& setting : expression.settings) {
      if (setting.relation == Setting::kSpread) continue;
      const Value given = evaluate(setting.term, scope_);
      const std::optional<std::string> text = given.attribute();
      if (!text) continue;  // a match without it, whose default is that of the new operation
      settings[setting.key] = given;
      if (movedInput(op, setting.key, opset) == nullptr) attributes[setting.key] = *text;
    }
    if (fold && !spreads) {
      std::vector<const MXTensor*> arrays;
      for (const NodeEntry& input : inputs)
        arrays.push_back(input.node == nullptr ? nullptr : session_.known(input).constant);
      NodeEntry made;
      if (std::find(arrays.begin(), arrays.end(), nullptr) == arrays.end() &&
          folded(op, settings, arrays, &made))
        return made;
    }
    for (const auto& setting : settings) {
      if (const Moved* each = movedInput(op, setting.first, opset))
        place(*each, setting.second, type, &inputs);
    }
    int count = std::max(outputs, expression.output + 1);
    const NodeEntry made = added(op, inputs, attributes, count);
    if (fold) {
      for (const NodeEntry& input : inputs) {
        const MXTensor* array = input.node == nullptr ? nullptr : session_.known(input).constant;
        if (array != nullptr) session_.noteRead(*array);
      }
      requireRoom(made);
      session_.noteFold(made.node);
    }
    return NodeEntry(made.node, std::max(expression.output, 0));
  }

  /// Makes an attribute an input, which it is in the model's operator set.
  void place(const Moved& moved, const Value& given, int type, std::vector<NodeEntry>* inputs) {
    const std::size_t number = static_cast<std::size_t>(moved.input);
    if (inputs->size() <= number) inputs->resize(number + 1);
    if ((*inputs)[number].node != nullptr) return;
    switch (moved.form) {
      case Moved::kIntegers:
        (*inputs)[number] = constant(
            given.kind == Value::kList ? given : Value::of(std::vector<Value>(1, given)), 7);
        return;
      case Moved::kInteger:
        (*inputs)[number] = constant(given, 7);
        return;
      case Moved::kScalar:
        if (type == 0) throw Declined{"the element type of a number is unknown"};
        (*inputs)[number] = constant(given, type);
        return;
      default:
        (*inputs)[number] = constant(given, 1);
    }
  }

  void spread(const std::string& name, std::unordered_map<std::string, std::string>* attributes) {
    if (std::find(alternative_.names.begin(), alternative_.names.end(), name) ==
        alternative_.names.end())
      throw Declined{"there is no operation '" + name + "'"};
    for (const auto& each : match_.attributes(name)) attributes->insert(each);
  }

  NodeEntry added(const std::string& op, const std::vector<NodeEntry>& inputs,
                  const std::unordered_map<std::string, std::string>& attributes, int outputs) {
    const NodeEntry made = match_.op(op, inputs, attributes, outputs);
    operations_.push_back(made.node);
    session_.noteAdded(match_.graph(), made.node);
    return made;
  }

  Session& session_;
  const MatchScope& scope_;
  const Alternative& alternative_;
  Match& match_;
  std::map<std::string, NodeEntry> locals_;
  std::vector<std::pair<std::string, NodeEntry>> results_;
  std::vector<Node*> operations_;
  std::vector<Node*> constants_;
};

/// The cost of nodes, as far as facts tell.
class Cost {
 public:
  Cost(const Session& session, std::string what) : session_(session), what_(std::move(what)) {}

  Dim of(const Node& node) const {
    if (what_ == "nodes") return Dim(1);
    if (what_ == "traffic") {
      Dim total = outputs(node);
      for (const NodeEntry& input : node.inputs) {
        if (!isAbsent(*input.node)) total = total + elements(input);
      }
      return total;
    }
    if (what_ != "flops") return Dim(0);
    const Dim made = outputs(node);
    if (node.inputs.size() < 2) return made;
    if (node.op == "MatMul" || node.op == "Gemm") {
      const facts::Fact& fact = session_.known(node.inputs[0]).fact;
      if (!fact.shape || fact.shape->empty()) return Dim();
      std::string text;
      const bool turned = AttributeTexts(node.attrs).get("transA", &text) && text != "0";
      return made * (turned ? fact.shape->front() : fact.shape->back());
    }
    if (node.op == "Conv") {
      const facts::Fact& fact = session_.known(node.inputs[1]).fact;
      if (!fact.shape || fact.shape->empty()) return Dim();
      return made * facts::product(std::vector<Dim>(fact.shape->begin() + 1, fact.shape->end()));
    }
    return made;
  }

  Dim elements(const NodeEntry& entry) const {
    const facts::Fact& fact = session_.known(entry).fact;
    return fact.shape ? facts::product(*fact.shape) : Dim();
  }

 private:
  Dim outputs(const Node& node) const { return elements(NodeEntry(const_cast<Node*>(&node), 0)); }

  const Session& session_;
  std::string what_;
};

/// Whether a replacement lowers what its rule says. `dying`: the operations that go.
bool isCheaper(const Session& session, const Builder& builder, const std::vector<Node*>& dying,
               int64_t copies, const std::string& what) {
  Dim before(0);
  Dim after(what == "nodes" ? copies : 0);
  if (what == "bytes") {
    std::set<const Node*> weights;
    for (const Node* node : dying) {
      for (const NodeEntry& input : node->inputs) {
        const MXTensor* array = session.known(input).constant;
        if (array == nullptr || !weights.insert(input.node).second) continue;
        const bool stays = std::any_of(
            input.node->outputs.begin(), input.node->outputs.end(), [&](const NodeEntry& use) {
              return !session.isDead(use.node) && !session.isFolding(use.node) &&
                     std::find(dying.begin(), dying.end(), use.node) == dying.end();
            });
        if (!stays)
          before = before + Dim(array->size() * static_cast<int64_t>(bytesOf(array->dtype)));
      }
    }
    // Constants that only folded steps use go with the steps.
    const auto stays = [&](const Node* node) {
      return std::any_of(node->outputs.begin(), node->outputs.end(),
                         [&](const NodeEntry& use) { return !session.isFolding(use.node); });
    };
    for (const Node* node : builder.constants()) {
      if (!stays(node)) continue;
      after =
          after + Dim(node->tensor->size() * static_cast<int64_t>(bytesOf(node->tensor->dtype)));
    }
    for (Node* node : builder.operations()) {
      if (!session.isFolding(node) || !stays(node)) continue;
      const facts::Fact& fact = session.known(NodeEntry(node, 0)).fact;
      const Dim count = fact.shape ? facts::product(*fact.shape) : Dim();
      after = after + count * Dim(static_cast<int64_t>(bytesOf(arrayType(fact.type))));
    }
    return facts::atLeast(before - after, 0);
  }
  const Cost cost(session, what);
  for (const Node* node : dying) before = before + cost.of(*node);
  for (const Node* node : builder.operations()) {
    if (!session.isFolding(node)) after = after + cost.of(*node);
  }
  return before != after && facts::atLeast(before - after, 0);
}

/// Counts outputs of the graph that would be one of its inputs, or another output: a file needs an
/// Identity for each.
int64_t countCopies(const Session& session, const Match& match, const Builder& builder) {
  int64_t count = 0;
  const auto is_output = [&](const NodeEntry& value) {
    return session.isOutput(*match.graph(), value);
  };
  for (const auto& result : builder.results()) {
    const NodeEntry from = result.first.empty() ? match.results()[0] : match[result.first];
    const std::vector<Node*>& made = builder.operations();
    if (std::find(made.begin(), made.end(), result.second.node) != made.end()) continue;
    if (is_output(from) && (result.second.node->op == "null" || is_output(result.second))) ++count;
  }
  return count;
}

/// The operations of a match that nothing else needs once its results are replaced.
std::vector<Node*> dyingOf(const Session& session, const Match& match) {
  std::vector<Node*> dying;
  const std::vector<NodeEntry> results = match.results();
  const std::vector<Node*>& nodes = match.nodes();
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    bool stays = false;
    for (const NodeEntry& use : (*node)->outputs) {
      if (stays) break;
      if (session.isDead(use.node)) continue;
      const int output = use.node->inputs[static_cast<std::size_t>(use.entry)].entry;
      const bool replaced =
          std::find(results.begin(), results.end(), NodeEntry(*node, output)) != results.end();
      stays = !replaced && std::find(dying.begin(), dying.end(), use.node) == dying.end();
    }
    for (const std::size_t head : session.headsOf(*node)) {
      const NodeEntry& output = match.graph()->outputs[head];
      stays = stays || (output.node == *node &&
                        std::find(results.begin(), results.end(), output) == results.end());
    }
    if (!stays) dying.push_back(*node);
  }
  return dying;
}

void Session::count(const CompiledRule& compiled, const Graph* graph, std::size_t operators) {
  ++applied_.counts[compiled.number];
  recent_.push_back(compiled.number);
  std::size_t& left = limits_.emplace(graph, 500).first->second;
  const std::size_t times = 1 + operators / kOperatorsAtOnce;
  if (left >= times) {
    left -= times;
    return;
  }
  const std::size_t last = std::min<std::size_t>(recent_.size(), 64);
  const std::set<std::size_t> circle(recent_.end() - static_cast<std::ptrdiff_t>(last),
                                     recent_.end());
  std::string names;
  for (const auto& each : rules_) {
    if (circle.count(each->number) != 0) names += (names.empty() ? "" : ", ") + each->rule->name;
  }
  throw std::runtime_error(
      (circle.size() > 1 ? "rules go in a circle: " : "a rule applies to what it makes: ") + names);
}

/// Returns the rules that made the nodes of a match, and a rule as the last, as a JSON list.
std::string rulesBehind(const Match& match, const std::string& rule) {
  std::vector<std::string> names;
  const auto add = [&names](const std::string& name) {
    names.erase(std::remove(names.begin(), names.end(), name), names.end());
    names.push_back(name);
  };
  std::string text;
  for (const Node* node : match.nodes()) {
    if (!AttributeTexts(node->attrs).get(MX_STR_RULES, &text)) continue;
    try {
      for (const mxnet::ext::JsonVal& each : mxnet::ext::JsonVal::parse(text).list) add(each.str);
    } catch (const mxnet::ext::JsonError&) {  // an attribute of the file
    }
  }
  add(rule);
  mxnet::ext::JsonVal list(mxnet::ext::LIST);
  for (const std::string& name : names) list.list.emplace_back(name);
  return list.dump();
}

void Session::rewrite(const CompiledRule& compiled, const Alternative& alternative, Match* match) {
  const Rule& rule = *compiled.rule;
  MatchScope scope(*this, compiled, alternative, *match);
  for (const Definition& definition : rule.where) {
    if (!definition.name.empty()) scope.define(definition.name, evaluate(definition.term, scope));
  }
  Builder builder(this, scope, alternative, match);
  try {
    builder.build(rule);
    if (!rule.enables) {
      const std::vector<Node*> dying = dyingOf(*this, *match);
      const int64_t copies = countCopies(*this, *match, builder);
      for (const std::string& what : rule.lowers) {
        if (!isCheaper(*this, builder, dying, copies, what))
          throw Declined{what + " would not fall"};
      }
    }
  } catch (const Declined&) {
    return;  // no result is replaced
  }
  const std::vector<NodeEntry> results = match->results();
  for (const auto& result : builder.results()) {
    const NodeEntry from = result.first.empty() ? results[0] : (*match)[result.first];
    const std::vector<std::size_t> heads = headsOf(from.node);
    if (!heads.empty()) {
      std::vector<std::size_t>& own = heads_[result.second.node];
      own.insert(own.end(), heads.begin(), heads.end());
    }
    const facts::Fact& before = known(from).fact;
    const facts::Fact& after = known(result.second).fact;
    bool contradicts = before.type != 0 && after.type != 0 && before.type != after.type;
    if (before.shape && after.shape) {
      contradicts = contradicts || before.shape->size() != after.shape->size();
      for (std::size_t axis = 0; !contradicts && axis < before.shape->size(); ++axis)
        contradicts = facts::differ((*before.shape)[axis], (*after.shape)[axis]);
    }
    if (contradicts) {
      throw std::runtime_error("rule '" + rule.name + "' is wrong at '" + from.node->name + "' (" +
                               from.node->op + "): the result is " + facts::print(before) +
                               ", and what replaces it " + facts::print(after));
    }
  }
  if (results.size() == 1 && builder.results().size() == 1) {
    match->replace(builder.results()[0].second);
  } else {
    for (const auto& result : builder.results()) match->replace(result.first, result.second);
  }
  if (!builder.operations().empty()) {
    const std::string made_by = rulesBehind(*match, rule.name);
    for (Node* node : builder.operations()) node->attrs[MX_STR_RULES] = made_by;
  }
  count(compiled, match->graph(), builder.operations().size());
}

}  // namespace

std::map<std::string, int64_t> operatorSetsOf(const Graph& graph) {
  std::map<std::string, int64_t> sets;
  const auto found = graph.attrs.find("opset_import");
  if (found != graph.attrs.end() && found->second.type == mxnet::ext::MAP) {
    for (const auto& set : found->second.map) {
      int64_t version = 0;
      if (set.second.toInteger(&version))
        sets[set.first.str == "ai.onnx" ? std::string() : set.first.str] = version;
    }
  }
  sets.emplace("", 1);  // files of the first versions import nothing
  return sets;
}

class Book::Compiled {
 public:
  /// Returns a rule for a version of ONNX's operators; patterns are compiled once for each.
  const CompiledRule& of(const Book& book, std::size_t number, int64_t opset) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::unique_ptr<CompiledRule>& made = rules_[{opset, number}];
    if (made == nullptr) made = compile(book, number, opset);
    return *made;
  }

 private:
  static std::unique_ptr<CompiledRule> compile(const Book& book, std::size_t number,
                                               int64_t opset) {
    const Rule& rule = book.rules_.at(number);
    auto made = std::make_unique<CompiledRule>();
    made->rule = &rule;
    made->number = number;
    made->alternatives = compileLeft(rule, book.text_, book.file_, opset);
    for (const Alternative& each : made->alternatives) {
      made->names.insert(each.names.begin(), each.names.end());
      for (const auto& alias : each.aliases) made->names.insert(alias.first);
      const CompiledRule& own = *made;
      Pattern pattern = patternOf(each, rule, book.text_, book.file_);
      pattern.where(
          [&own, &each](const Match& match) { return Session::atWork().meets(own, each, match); });
      pattern.rewrite(
          [&own, &each](Match& match) { Session::atWork().rewrite(own, each, &match); });
      made->patterns.push_back(pattern);
    }
    return made;
  }

  std::mutex mutex_;
  std::map<std::pair<int64_t, std::size_t>, std::unique_ptr<CompiledRule>> rules_;
};

Book::Book(std::string text, const std::string& file)
    : text_(std::move(text)),
      file_(file),
      rules_(readRules(text_, file_)),
      compiled_(std::make_unique<Compiled>()) {
  for (std::size_t number = 0; number < rules_.size(); ++number) {
    const Rule& rule = rules_[number];
    int64_t opset = kNewest;
    for (const OperatorSet& set : rule.sets) {
      if (set.domain.empty() && set.last != 0) opset = set.last;
    }
    checkRight(rule, compiled_->of(*this, number, opset).alternatives, text_, file_);
  }
}

Book::~Book() = default;

Applied Book::apply(Graph* graph, const std::vector<std::size_t>& chosen,
                    const Hooks& hooks) const {
  Session session(text_, graph, hooks, rules_.size());
  for (const std::size_t number : chosen) {
    if (isFor(rules_.at(number), session.operatorSets()))
      session.add(compiled_->of(*this, number, session.operatorSet(std::string())));
  }
  return session.apply();
}

std::string Book::why(Graph* graph, Node* node, std::size_t number, const Hooks& hooks) const {
  Session session(text_, graph, hooks, rules_.size());
  const int64_t opset = session.operatorSet(std::string());
  if (!isFor(rules_.at(number), session.operatorSets())) {
    return "the rule is for other operator sets than the model's, of ONNX " + std::to_string(opset);
  }
  session.add(compiled_->of(*this, number, opset));
  return session.why(node);
}

}  // namespace passlib::rules
