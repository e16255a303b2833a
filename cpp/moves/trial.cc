#include "moves/trial.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "graph/attributes.h"

namespace passlib::moves {
namespace {

/// Operators whose result has the axes of their first input.
const std::unordered_set<std::string_view> kSame = {
    "Identity", "Relu", "Sigmoid", "Tanh", "Cast",    "Neg",     "Abs",      "Sqrt",
    "Exp",      "Log",  "Erf",     "Clip", "Softmax", "Dropout", "LeakyRelu"};

/// The number of axes that an operator needs of its first input.
const std::unordered_map<std::string_view, int64_t> kWanted = {
    {"LSTM", 3}, {"GRU", 3}, {"RNN", 3}, {"Gemm", 2}};

/// Ranks, and numbers that follow from them, as they would be.
class Trial {
 public:
  Trial(Model* model, const NodeEntry& value, int64_t rank) : model_(*model) {
    ranks_[key(value)] = rank;
  }

  /// Follows one node of the main graph; returns whether it fails.
  bool run(Node* node) {
    const auto concerns = [this](const NodeEntry& input) {
      return find(ranks_, input) || find(numbers_, input) || find(lengths_, input);
    };
    if (!std::any_of(node->inputs.begin(), node->inputs.end(), concerns)) return false;
    if (fails(*node)) return true;
    follow(node);
    return false;
  }

 private:
  using Key = std::pair<const Node*, int>;
  using Numbers = std::map<Key, int64_t>;
  /// Values by the variables of a nested graph that stand for them.
  using Outer = std::unordered_map<const Node*, NodeEntry>;
  /// A branch on the way through it, or at the bottom one node of the main graph.
  struct Level {
    std::vector<Node*> nodes;
    std::size_t next = 0;
    Outer outer;
    const Node* choice = nullptr;  ///< the If
    const Graph* branch = nullptr;
  };

  static Key key(const NodeEntry& value) { return {value.node, value.entry}; }
  static std::optional<int64_t> find(const Numbers& numbers, const NodeEntry& value) {
    const auto found = numbers.find(key(value));
    return found == numbers.end() ? std::nullopt : std::optional(found->second);
  }
  static const NodeEntry& seen(const Outer& outer, const NodeEntry& value) {
    const auto found = outer.find(value.node);
    return found == outer.end() ? value : found->second;
  }

  bool fails(const Node& node) {
    const std::optional<int64_t> have = find(ranks_, node.inputs[0]);
    if (!have || !isOwnDomain(node)) return false;
    if (isOperator(node, "Conv") || isOperator(node, "ConvTranspose")) {
      const auto weights = node.inputs.size() > 1 ? model_.shape(node.inputs[1]) : std::nullopt;
      return weights && *have != static_cast<int64_t>(weights->size());
    }
    const auto wanted = kWanted.find(node.op);
    return wanted != kWanted.end() && *have != wanted->second;
  }

  void follow(Node* node) {
    std::vector<Level> levels(1);
    levels.back().nodes = {node};
    while (!levels.empty()) {
      Level& level = levels.back();
      if (level.next == level.nodes.size()) {
        leave(level);
        levels.pop_back();
        continue;
      }
      Node* const next = level.nodes[level.next++];
      if (!isOperator(*next, "If")) {
        note(next, level.outer);
      } else if (std::optional<Level> branch = taken(*next, level.outer)) {
        levels.push_back(*std::move(branch));
      }
    }
  }

  /// Notes what is known of the result of a node.
  void note(Node* node, const Outer& outer) {
    std::optional<int64_t> rank;
    std::vector<std::optional<int64_t>> numbers;
    for (const NodeEntry& input : node->inputs) numbers.push_back(number(seen(outer, input)));
    if (!node->inputs.empty()) rank = find(ranks_, seen(outer, node->inputs[0]));
    const bool all = std::all_of(numbers.begin(), numbers.end(),
                                 [](const auto& each) { return each.has_value(); });
    const Key result{node, 0};
    const bool adds = isOperator(*node, "Unsqueeze");
    if (isOneOf(*node, kSame)) {
      if (rank) ranks_[result] = *rank;
    } else if (adds || isOperator(*node, "Squeeze")) {
      const std::optional<int64_t> count = rank ? countAxes(*node, outer) : std::nullopt;
      if (count) ranks_[result] = *rank + (adds ? *count : -*count);
    } else if (isOperator(*node, "Shape")) {
      const bool whole = attributeOf(*node, "start").data() == nullptr &&
                         attributeOf(*node, "end").data() == nullptr;
      if (rank && whole) lengths_[result] = *rank;
    } else if (isOperator(*node, "Size") && !node->inputs.empty()) {
      const std::optional<int64_t> length = find(lengths_, seen(outer, node->inputs[0]));
      if (length) numbers_[result] = *length;
    } else if (isOperator(*node, "Equal") && all && numbers.size() == 2) {
      numbers_[result] = *numbers[0] == *numbers[1] ? 1 : 0;
    } else if (isOperator(*node, "Not") && all && !numbers.empty()) {
      numbers_[result] = *numbers[0] == 0 ? 1 : 0;
    }
  }

  std::optional<int64_t> number(const NodeEntry& value) {
    if (const std::optional<int64_t> found = find(numbers_, value)) return found;
    const std::optional<Integers> content = model_.whole(value);
    return content && content->size() == 1 ? std::optional(content->front()) : std::nullopt;
  }

  std::optional<int64_t> countAxes(const Node& node, const Outer& outer) {
    std::optional<Integers> axes = integersOf(node, "axes");
    const NodeEntry* const listed = given(node, 1);
    if (!axes && listed != nullptr) {
      if (outer.count(listed->node) == 0) axes = model_.nestedNumbers(*listed->node);
      if (!axes) axes = model_.whole(seen(outer, *listed));
    }
    return axes ? std::optional(static_cast<int64_t>(axes->size())) : std::nullopt;
  }

  /// The branch that an If takes; nothing if that is unknown.
  std::optional<Level> taken(const Node& node, const Outer& outer) {
    const auto condition = node.inputs.empty() ? std::nullopt : number(seen(outer, node.inputs[0]));
    if (!condition) return std::nullopt;
    const auto place = branchOf(node, *condition != 0 ? "then_branch" : "else_branch");
    if (!place) return std::nullopt;
    Graph* const branch = node.subgraphs[*place];
    Level level;
    level.choice = &node;
    level.branch = branch;
    const std::vector<Node*>& nodes = model_.owner().nodes(branch);
    for (Node* inner : mxnet::ext::sortNodes(nodes, NodeTable(nodes))) {
      if (!isVariable(*inner)) {
        level.nodes.push_back(inner);
      } else if (const NodeEntry* source = outerValue(*inner, node)) {
        level.outer.emplace(inner, seen(outer, *source));
      }
    }
    return level;
  }

  void leave(const Level& level) {
    if (level.branch == nullptr) return;
    for (std::size_t i = 0; i < level.branch->outputs.size(); ++i) {
      const std::optional<int64_t> rank = find(ranks_, seen(level.outer, level.branch->outputs[i]));
      if (rank) ranks_[{level.choice, static_cast<int>(i)}] = *rank;
    }
  }

  Model& model_;
  Numbers ranks_;
  Numbers lengths_;
  Numbers numbers_;
};

}  // namespace

std::optional<std::size_t> branchOf(const Node& node, std::string_view key) {
  constexpr std::string_view kStart = "subgraph[";
  const std::string_view text = attributeOf(node, key);
  if (text.substr(0, kStart.size()) != kStart || text.back() != ']') return std::nullopt;
  std::size_t place = 0;
  const std::string_view digits = text.substr(kStart.size(), text.size() - kStart.size() - 1);
  if (!onnx::parsePosition(digits, &place) || place >= node.subgraphs.size()) return std::nullopt;
  return place;
}

bool failsWithRank(Model* model, const NodeEntry& value, int64_t rank,
                   const std::vector<Node*>& order) {
  Trial trial(model, value, rank);
  return std::any_of(order.begin(), order.end(),
                     [&](Node* node) { return node != value.node && trial.run(node); });
}

}  // namespace passlib::moves
