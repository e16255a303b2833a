#include "facts/facts.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>
#include <stdexcept>
#include <unordered_set>

#include "facts/node_view.h"
#include "facts/table.h"
#include "graph/attributes.h"

namespace passlib::facts {
namespace {

constexpr std::size_t kDeepest = 48;          // nested graphs and functions within each other
constexpr std::size_t kMostVisits = 4000000;  // of nodes in nested graphs and functions, in all
constexpr const char* kAbsent = "__absent__";

const Fact& nothing() {
  static const Fact fact;
  return fact;
}

/// Reads the number at the end of `12.body.input.3`; false for other identifiers.
bool inputNumber(std::string_view id, std::size_t* number) {
  constexpr std::string_view kMark = "input.";
  const std::size_t at = id.rfind(kMark);
  if (at == std::string_view::npos || (at > 0 && id[at - 1] != '.')) return false;
  const std::string_view digits = id.substr(at + kMark.size());
  if (digits.empty() || digits.size() > 9) return false;
  *number = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') return false;
    *number = *number * 10 + static_cast<std::size_t>(digit - '0');
  }
  return true;
}

bool parseNumber(std::string_view text, std::size_t* number) {
  return inputNumber("input." + std::string(text), number);
}

std::string_view domainOf(const Node& node) {
  const std::string_view domain = attributeOf(node, "__domain__");
  return domain.data() == nullptr || domain == "ai.onnx" ? std::string_view("") : domain;
}

struct Bounds {
  int64_t low;
  uint64_t high;
};

std::optional<Bounds> boundsOf(Type type) {
  switch (type) {
    case kBool:
      return Bounds{0, 1};
    case kUint8:
      return Bounds{0, 255};
    case kInt8:
      return Bounds{-128, 127};
    case kUint16:
      return Bounds{0, 65535};
    case kInt16:
      return Bounds{-32768, 32767};
    case kInt32:
      return Bounds{INT32_MIN, INT32_MAX};
    case kUint32:
      return Bounds{0, UINT32_MAX};
    case kInt64:
      return Bounds{INT64_MIN, INT64_MAX};
    case kUint64:
      return Bounds{0, UINT64_MAX};
    case kInt4:
      return Bounds{-8, 7};
    case kUint4:
      return Bounds{0, 15};
    default:
      return std::nullopt;
  }
}

bool isRandom(std::string_view op) {
  return op == "RandomNormal" || op == "RandomUniform" || op == "RandomNormalLike" ||
         op == "RandomUniformLike" || op == "Bernoulli" || op == "Multinomial" || op == "Dropout";
}

}  // namespace

namespace {

/// Leaves of a type and a shape what another fact says, too.
void meet(const Fact& other, Fact* fact) {
  if (fact->type != other.type || fact->key != other.key || fact->wrappers != other.wrappers) {
    *fact = Fact();
    return;
  }
  if (!fact->shape || !other.shape || fact->shape->size() != other.shape->size()) {
    fact->shape.reset();
    return;
  }
  for (std::size_t i = 0; i < fact->shape->size(); ++i) {
    if ((*fact->shape)[i] != (*other.shape)[i]) (*fact->shape)[i] = Dim();
  }
}

}  // namespace

bool same(const Fact& left, const Fact& right) {
  if (left.type != right.type || left.present != right.present || left.key != right.key ||
      left.constant != right.constant || left.least != right.least ||
      left.wrappers != right.wrappers || left.shape.has_value() != right.shape.has_value()) {
    return false;
  }
  if (left.shape && *left.shape != *right.shape) return false;
  if (left.content == right.content) return true;
  if (left.content == nullptr || right.content == nullptr) return false;
  const std::vector<Dim>& items = left.content->items;
  const std::vector<Dim>& others = right.content->items;
  if (items.size() != others.size() || left.content->divisors != right.content->divisors ||
      left.content->reals.size() != right.content->reals.size()) {
    return false;
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i] != others[i] && (items[i].isKnown() || others[i].isKnown())) return false;
  }
  return std::equal(left.content->reals.begin(), left.content->reals.end(),
                    right.content->reals.begin(),
                    [](double a, double b) { return a == b || (a != a && b != b); });
}

class Facts::Inference : public Surroundings {
 public:
  Inference(const Graph* graph, Settings settings)
      : graph_(graph), settings_(std::move(settings)) {}

  void infer() {
    positive_.clear();
    inferAll();
    if (!positive_.empty()) inferAll();  // with what is positive known from the start
  }

  const Fact& of(const Node* node, std::size_t output) const {
    const int64_t place = index_->find(node);
    if (place < 0) return nothing();
    const std::vector<Fact>& own = facts_[static_cast<std::size_t>(place)];
    return output < own.size() ? own[output] : nothing();
  }

  void update(const std::vector<const Node*>& changed) {
    std::deque<const Node*> pending(changed.begin(), changed.end());
    std::unordered_set<const Node*> queued(changed.begin(), changed.end());
    for (const Node* node : changed) fixed_.erase(node);
    enterMain();
    std::size_t left = 4 * graph_->nodes.size() + 64;
    while (!pending.empty()) {
      const Node* const node = pending.front();
      if (const Node* const before = missingInput(*node)) {
        if (left-- == 0) return infer();
        pending.push_front(before);
        queued.insert(before);
        continue;
      }
      pending.pop_front();
      queued.erase(node);
      if (left-- == 0) return infer();  // an order that visits nodes again and again, or a cycle
      std::vector<Fact> former;
      if (index_->find(node) >= 0) former = slot(*node);
      visit(*node);
      const std::vector<Fact>& now = slot(*node);
      const bool unchanged = former.size() == now.size() &&
                             std::equal(former.begin(), former.end(), now.begin(), same);
      if (unchanged) continue;
      for (const NodeEntry& use : node->outputs) {
        if (index_->find(use.node) >= 0 && queued.insert(use.node).second) {
          pending.push_back(use.node);
        }
      }
    }
    frames_.clear();
  }

  void set(const Node* node, std::size_t output, Fact fact) {
    std::vector<Fact>& own = slot(*node);
    if (output >= own.size()) own.resize(output + 1);
    own[output] = std::move(fact);
    fixed_[node] = own;
    std::vector<const Node*> users;
    for (const NodeEntry& use : node->outputs) users.push_back(use.node);
    update(users);
  }

  const std::map<const Node*, bool>& wide() const { return wide_; }

  const std::map<std::pair<std::string, std::string>, Calls>& calls() const {
    static const std::map<std::pair<std::string, std::string>, Calls> none;
    return cut_ ? none : calls_;
  }

  // Surroundings.

  std::string_view attribute(const Node& node, std::string_view key) override {
    const std::string_view text = attributeOf(node, key);
    if (text.size() < 2 || text.front() != '@') return text;
    return resolve(text.substr(1), text);
  }

  void need(const Dim& dim) override {
    const bool runs = frames_.size() == 1;  // nested graphs may not
    if (!settings_.empty_errors && runs && dim.name() != nullptr) positive_.insert(*dim.name());
  }

  bool isPositive(const Dim& dim) const override {
    if (atLeast(dim, 1)) return true;
    if (positive_.empty() || !dim.isSymbolic() || !atLeast(dim, 0)) return false;
    const auto is_named = [this](const std::string& name) { return positive_.count(name) != 0; };
    return std::any_of(dim.terms().begin(), dim.terms().end(), [&](const auto& term) {
      return std::all_of(term.first.begin(), term.first.end(), is_named);
    });
  }

  int64_t opset(std::string_view domain) override {
    const Opsets& sets = *frames_.back().opsets;
    auto found = sets.find(domain);
    if (found == sets.end() && domain.empty()) found = sets.find("ai.onnx");
    return found == sets.end() ? 1 : found->second;
  }

  std::vector<Fact> inferBody(const Graph& graph, const std::vector<Fact>& formals) override {
    const Frame& around = frames_.back();
    Frame frame;
    frame.opsets = around.opsets;
    frame.describe = around.describe;
    frame.attributes = around.attributes;
    frame.defaults = around.defaults;
    frame.owner = current_;
    frame.inputs = &owner_inputs_;
    frame.formals = &formals;
    frame.prefix = within(around.prefix, *current_);
    return run(graph, std::move(frame));
  }

 private:
  /// The graph that is inferred now.
  struct Frame {
    const Opsets* opsets = nullptr;
    const Node* owner = nullptr;  ///< of a nested graph, or the call of a function
    const std::vector<const Fact*>* inputs = nullptr;  ///< of the owner, with captured ones
    const std::vector<Fact>* formals = nullptr;        ///< of the graph's own inputs
    /// Texts of the attributes of a function's call.
    const std::map<std::string, std::string, std::less<>>* attributes = nullptr;
    const std::map<std::string, std::string, std::less<>>* defaults = nullptr;
    const Function* function = nullptr;
    const std::function<Fact(const Node&)>* describe = nullptr;  ///< of its variables
    std::string prefix;                                          ///< of names of unknown sizes
  };

  void inferAll() {
    index_.emplace(graph_->nodes.size());
    facts_.clear();
    wide_.clear();
    frames_.clear();
    visits_ = 0;
    facts_.reserve(graph_->nodes.size());
    enterMain();
    for (const Node* node : graph_->sorted()) visit(*node);
    frames_.clear();
  }

  void enterMain() {
    frames_.clear();
    Frame main;
    main.opsets = &settings_.opsets;
    main.describe = &settings_.describe;
    frames_.push_back(std::move(main));
  }

  std::string_view resolve(std::string_view name, std::string_view text) {
    const Frame& frame = frames_.back();
    if (frame.attributes == nullptr) return text;  // a string that begins like this
    for (const auto* table : {frame.attributes, frame.defaults}) {
      const auto found = table->find(name);
      if (found != table->end()) return found->second;
    }
    return {};
  }

  std::vector<Fact>& slot(const Node& node) {
    const int64_t place = index_->find(&node);
    if (place >= 0) return facts_[static_cast<std::size_t>(place)];
    // Both or none: rules may run out of memory, and inference goes on.
    if (facts_.size() == facts_.capacity()) facts_.reserve(2 * facts_.size() + 1);
    index_->add(&node);
    return facts_.emplace_back();
  }

  const Node* missingInput(const Node& node) const {
    for (const NodeEntry& input : node.inputs) {
      if (input.node != nullptr && index_->find(input.node) < 0) return input.node;
    }
    return nullptr;
  }

  /// Infers a graph in a frame and returns the facts of its outputs.
  std::vector<Fact> run(const Graph& graph, Frame frame) {
    std::vector<Fact> made(graph.outputs.size());
    if (frames_.size() > kDeepest || visits_ > kMostVisits) {
      cut_ = true;
      widen(frame.owner == nullptr ? *current_ : *frame.owner, false);
      return made;
    }
    visits_ += graph.nodes.size();
    // Rules go on after this with their own node.
    const Node* const node = current_;
    std::vector<const Fact*> inputs = owner_inputs_;
    frames_.push_back(std::move(frame));
    // The inputs of a frame must outlive changes of owner_inputs_.
    if (frames_.back().inputs == &owner_inputs_) frames_.back().inputs = &inputs;
    for (const Node* each : graph.sorted()) visit(*each);
    frames_.pop_back();
    for (std::size_t i = 0; i < made.size(); ++i)
      made[i] = of(graph.outputs[i].node, static_cast<std::size_t>(graph.outputs[i].entry));
    current_ = node;
    owner_inputs_ = std::move(inputs);
    return made;
  }

  void visit(const Node& node) {
    std::vector<Fact> made(static_cast<std::size_t>(std::clamp(node.num_outputs, 1, 1 << 20)));
    if (node.op == "null") {
      made[0] = variable(node);
      name(node, 0, &made[0]);
    } else {
      operate(node, &made);
    }
    slot(node) = std::move(made);
  }

  Fact variable(const Node& node) {
    Fact fact;
    if (node.name == kAbsent) {
      fact.present = false;
      return fact;
    }
    const Frame& frame = frames_.back();
    if (frame.owner != nullptr) {
      std::size_t number = 0;
      const std::string_view outer = attributeOf(node, "__outer__");
      if (outer.data() != nullptr) {
        if (parseNumber(outer, &number) && frame.inputs != nullptr &&
            number < frame.inputs->size()) {
          return *(*frame.inputs)[number];
        }
        return fact;
      }
      if (inputNumber(attributeOf(node, "__id__"), &number)) {
        if (*frame.describe) fact = (*frame.describe)(node);
        if (frame.formals != nullptr && number < frame.formals->size()) {
          const Fact stated = std::move(fact);
          fact = (*frame.formals)[number];
          fill(stated, &fact);
        }
        return fact;
      }
    }
    if (*frame.describe) fact = (*frame.describe)(node);
    return fact;
  }

  /// Fills in what is open in a fact by what is stated.
  void fill(const Fact& stated, Fact* fact) const {
    if (fact->type == kUnknownType && fact->wrappers.empty()) {
      fact->type = stated.type;
      fact->key = stated.key;
      fact->wrappers = stated.wrappers;
    }
    if (fact->wrappers != stated.wrappers || !stated.shape) return;
    // A name within a nested graph may stand for another size than the same name outside.
    const bool inner = frames_.size() > 1;
    if (!fact->shape) {
      fact->shape.emplace(stated.shape->size());
    }
    if (fact->shape->size() != stated.shape->size()) {
      if (settings_.believe_stated) fact->shape = stated.shape;
      return;
    }
    for (std::size_t i = 0; i < fact->shape->size(); ++i) {
      Dim& dim = (*fact->shape)[i];
      const Dim& other = (*stated.shape)[i];
      const bool open = !dim.isKnown() || (settings_.believe_stated && other.isNumber());
      if (open && (!inner || other.isNumber())) dim = other;
    }
  }

  void operate(const Node& node, std::vector<Fact>* made) {
    const auto fixed = fixed_.find(&node);
    if (fixed != fixed_.end() && frames_.size() == 1) {
      *made = fixed->second;
      return;
    }
    std::vector<const Fact*>& inputs = owner_inputs_;
    inputs.clear();
    bool constant = !node.inputs.empty() && node.subgraphs.empty();
    for (const NodeEntry& input : node.inputs) {
      inputs.push_back(&of(input.node, static_cast<std::size_t>(input.entry)));
      constant = constant && (inputs.back()->constant || !inputs.back()->present);
    }
    std::vector<const Fact*> own = inputs;
    std::size_t formal = 0;
    const std::string_view stated_formal = attributeOf(node, "__formal_inputs__");
    if (stated_formal.data() != nullptr && parseNumber(stated_formal, &formal) &&
        formal < own.size()) {
      own.resize(formal);
    }
    const std::string_view domain = domainOf(node);
    current_ = &node;
    if (listsMany(node)) widen(node, false);
    const bool follows = settings_.function && attributeOf(node, "__overload__").empty();
    const Function* function = follows ? settings_.function(domain, node.op) : nullptr;
    Rule rule = nullptr;
    bool told = false;
    if (function != nullptr) {
      call(node, *function, made);
    } else if ((rule = findRule(domain, node.op)) != nullptr) {
      NodeView view(node, domain, std::move(own), made, this);
      try {
        rule(view);
      } catch (const Unknowable&) {
        forget(made);
      } catch (const std::out_of_range&) {
        forget(made);
      } catch (const std::length_error&) {
        forget(made);
      } catch (const std::bad_alloc&) {
        forget(made);
      }
      constant = constant && !isRandom(node.op);
    } else {
      constant = false;
      if (settings_.of_others) {
        std::vector<Fact> known = settings_.of_others(node, own);
        told = !known.empty();
        for (std::size_t i = 0; i < std::min(known.size(), made->size()); ++i) {
          (*made)[i] = std::move(known[i]);
        }
      }
    }
    for (std::size_t i = 0; i < made->size(); ++i) {
      Fact& fact = (*made)[i];
      fact.constant = fact.constant || constant;
      if (fact.shape && fact.shape->size() > kMostAxes) widen(node, true);
      settle(&fact);
      const bool ours = rule != nullptr || function != nullptr || (!domain.empty() && !told);
      if (ours && settings_.stated && frames_.back().describe == &settings_.describe) {
        const Fact* stated = settings_.stated(node, i);
        if (stated != nullptr) fill(*stated, &fact);
      }
      name(node, i, &fact);
    }
  }

  /// Whether a node has a list of axes or sizes that is too long to be followed.
  bool listsMany(const Node& node) const {
    const std::string_view op = node.op;
    const std::size_t place = op == "ConstantOfShape" ? 0 : 1;
    if (op != "Expand" && op != "Reshape" && op != "Unsqueeze" && op != "ConstantOfShape") {
      return false;
    }
    if (place >= owner_inputs_.size()) return false;
    const std::optional<Shape>& list = owner_inputs_[place]->shape;
    return list && list->size() == 1 && list->front().isNumber() &&
           list->front().number() > static_cast<int64_t>(kMostElements);
  }

  /// Notes a node whose results have too many axes, or may have; for one of a function, the call.
  void widen(const Node& node, bool certain) {
    const Node* place = &node;
    for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
      if (frame->function != nullptr) place = frame->owner;
    }
    bool& noted = wide_[place];
    noted = noted || certain;
  }

  static void forget(std::vector<Fact>* facts) {
    for (Fact& fact : *facts) {
      fact.shape.reset();
      fact.content.reset();
      fact.least = -1;
    }
  }

  /// Drops what cannot be, and contents that do not fit.
  void settle(Fact* fact) const {
    if (fact->shape) {
      if (fact->shape->size() > kMostAxes) {
        fact->shape.reset();
      } else {
        for (Dim& dim : *fact->shape) {
          if (dim.isNumber() && dim.number() < 0) dim = Dim();
        }
      }
    }
    if (fact->content == nullptr) return;
    if (!fits(*fact)) fact->content.reset();
  }

  bool fits(const Fact& fact) const {
    if (!fact.isTensor() || !fact.shape) return false;
    const auto count = fewElements(*fact.shape);
    const Content& content = *fact.content;
    if (!count || (!content.reals.empty() && content.reals.size() != *count) ||
        (content.reals.empty() && content.items.size() != *count) ||
        (!content.divisors.empty() && content.divisors.size() != content.items.size())) {
      return false;
    }
    if (isReal(fact.type)) {
      if (content.divisors.size() != content.items.size()) return false;
      if (!settings_.large_sizes) return true;
      return std::none_of(content.items.begin(), content.items.end(),
                          [](const Dim& item) { return item.isSymbolic(); });
    }
    if (!content.divisors.empty() || !content.reals.empty()) return false;
    const auto bounds = boundsOf(fact.type);
    if (!bounds) return false;
    for (const Dim& item : content.items) {
      if (!item.isNumber()) continue;
      const int64_t number = item.number();
      if (number < bounds->low) return false;
      if (number > 0 && static_cast<uint64_t>(number) > bounds->high) return false;
    }
    return true;
  }

  /// Names unknown dimensions after the operator they come from. Those of the elements of a
  /// sequence have no name, since elements may differ.
  void name(const Node& node, std::size_t output, Fact* fact) const {
    if (!fact->shape || !fact->isTensor()) return;
    for (std::size_t axis = 0; axis < fact->shape->size(); ++axis) {
      Dim& dim = (*fact->shape)[axis];
      if (dim.isKnown()) continue;
      std::string text = within(frames_.back().prefix, node);
      text.append(std::to_string(output)).append(":").append(std::to_string(axis));
      dim = Dim::named(text);
    }
  }

  /// Returns a prefix for what is in a node, which no other prefix and node have. Sizes that a file
  /// names have no '/' in their names: see OnnxSource.
  static std::string within(const std::string& prefix, const Node& node) {
    return prefix + node.name + "/" + std::to_string(prefix.size()) + "/";
  }

  void call(const Node& node, const Function& function, std::vector<Fact>* made) {
    for (const Frame& frame : frames_) {
      if (frame.function == &function) return;  // it calls itself
    }
    const Frame& around = frames_.back();
    std::map<std::string, std::string, std::less<>> given;
    forEachAttribute(node, [&](std::string_view key, std::string_view text) {
      if (!text.empty() && text.front() == '@') text = resolve(text.substr(1), text);
      if (text.data() != nullptr) given.emplace(key, text);
    });
    std::vector<Fact> formals;
    for (const Fact* input : owner_inputs_) formals.push_back(*input);
    noteCall(node, formals);
    // An input that the call leaves out.
    Fact absent;
    absent.present = false;
    formals.resize(std::max(formals.size(), function.graph->inputs.size()), absent);
    Frame frame;
    frame.opsets = &function.opsets;
    frame.function = &function;
    frame.describe = &function.describe;
    frame.owner = &node;
    frame.formals = &formals;
    frame.attributes = &given;
    frame.defaults = &function.defaults;
    frame.prefix = within(around.prefix, node);
    std::vector<Fact> found = run(*function.graph, std::move(frame));
    for (std::size_t i = 0; i < made->size() && i < found.size(); ++i) (*made)[i] = found[i];
  }

  void noteCall(const Node& node, const std::vector<Fact>& formals) {
    Calls& calls = calls_[{std::string(domainOf(node)), node.op}];
    const bool first = calls.nodes.empty();
    calls.nodes.insert(&node);
    if (first) calls.inputs = formals;
    if (formals.size() < calls.inputs.size()) calls.inputs.resize(formals.size());
    for (std::size_t i = 0; i < calls.inputs.size(); ++i) meet(formals[i], &calls.inputs[i]);
  }

  const Graph* graph_;
  Settings settings_;
  std::optional<mxnet::ext::host::AddressTable> index_{std::in_place};  ///< places in facts_
  std::vector<std::vector<Fact>> facts_;
  std::unordered_map<const Node*, std::vector<Fact>> fixed_;
  std::map<const Node*, bool> wide_;
  std::unordered_set<std::string> positive_;  ///< names of sizes for which 0 makes the model fail
  std::deque<Frame> frames_;
  const Node* current_ = nullptr;
  std::vector<const Fact*> owner_inputs_;  ///< of the current node, with captured ones
  std::size_t visits_ = 0;
  bool cut_ = false;  ///< whether something was too deep or too large to follow
  std::map<std::pair<std::string, std::string>, Calls> calls_;
};

Facts::Facts(const Graph* graph, Settings settings)
    : inference_(std::make_unique<Inference>(graph, std::move(settings))) {}
Facts::~Facts() = default;
Facts::Facts(Facts&&) noexcept = default;
void Facts::infer() { inference_->infer(); }
const Fact& Facts::of(const Node* node, std::size_t output) const {
  return inference_->of(node, output);
}
void Facts::update(const std::vector<const Node*>& changed) { inference_->update(changed); }
void Facts::set(const Node* node, std::size_t output, Fact fact) {
  inference_->set(node, output, std::move(fact));
}
const std::map<const Node*, bool>& Facts::wide() const { return inference_->wide(); }
const std::map<std::pair<std::string, std::string>, Calls>& Facts::calls() const {
  return inference_->calls();
}

}  // namespace passlib::facts
