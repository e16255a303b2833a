#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/attributes.h"
#include "moves/moves.h"
#include "moves/trial.h"
#include "rules/known.h"

namespace passlib::moves {
namespace {

using Given = std::vector<std::pair<Node*, NodeEntry>>;

/// The parameters of a nested graph in their order.
std::vector<Node*> parametersOf(const std::vector<Node*>& nodes) {
  constexpr std::string_view kInput = ".input";
  std::map<std::size_t, Node*> found;
  for (Node* node : nodes) {
    if (!isVariable(*node)) continue;
    const std::string_view id = attributeOf(*node, "__id__");
    const std::size_t dot = id.rfind('.');
    std::size_t number = 0;
    if (dot == id.npos || dot < kInput.size()) continue;
    if (id.substr(dot - kInput.size(), kInput.size()) != kInput) continue;
    if (onnx::parsePosition(id.substr(dot + 1), &number)) found.emplace(number, node);
  }
  std::vector<Node*> parameters;
  for (const auto& [number, node] : found) parameters.push_back(node);
  return parameters;
}

class Resolving {
 public:
  explicit Resolving(Model* model) : model_(*model) {}

  void run() {
    std::vector<Node*> pending = model_.sorted();
    while (!pending.empty()) {
      Node* const node = pending.back();
      pending.pop_back();
      if (!node->subgraphs.empty() && !model_.isGone(node)) resolve(node, &pending);
    }
  }

 private:
  /// Replaces one node if that is possible; appends the nodes with nested graphs that it had.
  void resolve(Node* node, std::vector<Node*>* inside) {
    if (isOperator(*node, "If") && !node->inputs.empty()) {
      const auto one = branchOf(*node, "then_branch");
      const auto other = branchOf(*node, "else_branch");
      if (!one || !other) return;
      const std::optional<int64_t> condition = scalar(&node->inputs[0]);
      if (condition || mustSqueeze(*node, *one, *other))
        replace(node, absorb(node, condition == 0 ? *other : *one, {}, inside));
    } else if (isOperator(*node, "Loop") && node->subgraphs[0]->outputs.size() > 0) {
      const std::optional<int64_t> count = roundsOf(*node);
      if (count == 0) skip(node);
      if (count == 1) runOnce(node, inside);
    }
  }

  /// The element of a constant with one element.
  std::optional<int64_t> scalar(const NodeEntry* value) const {
    const MXTensor* const array = value == nullptr ? nullptr : model_.array(*value);
    if (array == nullptr || array->size() != 1) return std::nullopt;
    const int type = rules::onnxType(array->dtype);
    if (!rules::isWhole(type) && type != facts::kBool) return std::nullopt;
    return rules::integerAt(*array, 0);
  }

  /// Whether a model fails if an axis is not squeezed, which is so if its size is not 1. Exporters
  /// write this for squeezing an axis of an open size. If all that the axis leads to fails, the
  /// Squeeze without the condition fails just as well.
  bool mustSqueeze(Node& node, std::size_t one, std::size_t other) {
    const NodeEntry result(&node, 0);
    if (node.num_outputs != 1 || model_.owner().usesOf(&node, 0).empty()) return false;
    const NodeEntry* const squeezed = argumentOf(node, one, "Squeeze");
    const NodeEntry* const same = argumentOf(node, other, "Identity");
    if (squeezed == nullptr || same == nullptr || squeezed->node != same->node ||
        squeezed->entry != same->entry) {
      return false;
    }
    const std::optional<facts::Shape> shape = model_.shape(*squeezed);
    if (!shape) return false;
    if (order_.empty()) order_ = model_.sorted();
    return failsWithRank(&model_, result, static_cast<int64_t>(shape->size()), order_);
  }

  /// The outer value that is the first input of the only operator of a branch.
  const NodeEntry* argumentOf(const Node& node, std::size_t branch, std::string_view op) const {
    Graph* const graph = node.subgraphs[branch];
    const std::vector<Node*>& nodes = model_.owner().nodes(graph);
    const auto operators = std::count_if(nodes.begin(), nodes.end(),
                                         [](const Node* each) { return !isVariable(*each); });
    if (operators != 1 || graph->outputs.empty()) return nullptr;
    const Node& made = *graph->outputs[0].node;
    if (!isOperator(made, op) || made.inputs.empty()) return nullptr;
    return outerValue(*made.inputs[0].node, node);
  }

  /// How often a loop is run if that is known to be 0 or 1.
  std::optional<int64_t> roundsOf(const Node& node) const {
    const NodeEntry* const most = given(node, 0);
    const NodeEntry* const going_on = given(node, 1);
    const std::optional<int64_t> bound = scalar(most);
    if (going_on != nullptr) {
      const std::optional<int64_t> start = scalar(going_on);
      if (!start) return bound && *bound <= 0 ? std::optional<int64_t>(0) : std::nullopt;
      if (*start == 0) return 0;
    }
    if (bound && *bound <= 1) return std::max<int64_t>(*bound, 0);
    const auto again = model_.nestedNumbers(*node.subgraphs[0]->outputs[0].node);
    const bool once = again && again->size() == 1 && again->front() == 0;
    return once && (most == nullptr || bound) ? std::optional<int64_t>(1) : std::nullopt;
  }

  /// The inputs of a Loop that it carries from round to round.
  static std::vector<NodeEntry> carriedOf(const Node& node) {
    const auto count = static_cast<int64_t>(node.inputs.size());
    const int64_t own = integerOf(node, "__formal_inputs__", count).value_or(count);
    if (own <= 2) return {};
    return {node.inputs.begin() + 2, node.inputs.begin() + std::min(own, count)};
  }

  /// The results of a Loop that it collects in all rounds.
  std::vector<NodeEntry> collectedOf(Node* node, std::size_t carried) const {
    std::vector<NodeEntry> results;
    for (int i = static_cast<int>(carried); i < model_.owner().knownOutputs(*model_.graph(), node);
         ++i) {
      results.emplace_back(node, i);
    }
    return results;
  }

  void skip(Node* node) {
    const std::vector<NodeEntry> carried = carriedOf(*node);
    for (const NodeEntry& result : collectedOf(node, carried.size())) {
      // The sizes of empty collected results are not known.
      if (!model_.owner().usesOf(node, result.entry).empty() || model_.isOutput(result)) return;
    }
    replace(node, carried);
  }

  void runOnce(Node* node, std::vector<Node*>* inside) {
    const std::vector<NodeEntry> carried = carriedOf(*node);
    const std::vector<Node*> parameters = parametersOf(model_.owner().nodes(node->subgraphs[0]));
    if (parameters.size() != carried.size() + 2) return;
    for (std::size_t i = 0; i < carried.size(); ++i) {
      if (given(*node, 2 + i) == nullptr) return;
    }
    for (const NodeEntry& result : collectedOf(node, carried.size())) {
      if (!model_.runs("Unsqueeze", result)) return;
    }
    const std::string name = node->name;
    Given values = {
        {parameters[0], addScalar(name + "_round", *parameters[0], mxnet::ext::kInt64, 0)},
        {parameters[1], addScalar(name + "_condition", *parameters[1], mxnet::ext::kBool, 1)}};
    for (std::size_t i = 0; i < carried.size(); ++i)
      values.emplace_back(parameters[2 + i], carried[i]);
    std::vector<NodeEntry> results = absorb(node, 0, values, inside);
    // Listed before the loop goes, and with it perhaps one of them.
    std::vector<Node*> unused = {results[0].node};
    for (const auto& [parameter, value] : values) unused.push_back(value.node);
    results.erase(results.begin());
    for (std::size_t i = carried.size(); i < results.size(); ++i)
      results[i] = asList(name, results[i]);
    replace(node, results);
    model_.removeUnused(unused);
  }

  /// Adds a constant for a parameter of one element, with as many axes as its type states.
  NodeEntry addScalar(const std::string& wish, const Node& parameter, MXDType type,
                      int64_t number) {
    const facts::Fact stated = model_.nestedFact(parameter);
    const std::size_t rank = stated.isTensor() && stated.shape ? stated.rank() : 0;
    const NodeEntry made = model_.addConstant(wish, Integers(rank, 1), type);
    rules::setIntegerAt(*made.node->tensor, 0, number);
    return made;
  }

  /// The result of one round as the list of the results of all rounds.
  NodeEntry asList(const std::string& name, const NodeEntry& value) {
    if (model_.opset() < 13)
      return model_.add(name + "_list", "Unsqueeze", {value}, {{"axes", "[0]"}});
    const NodeEntry axes = model_.addConstant(name + "_axes", {0});
    return model_.add(name + "_list", "Unsqueeze", {value, axes});
  }

  /// Moves a nested graph out of a node; returns its results, and appends its nodes with graphs.
  std::vector<NodeEntry> absorb(Node* node, std::size_t number, Given values,
                                std::vector<Node*>* inside) {
    std::unordered_set<const Node*> known;
    for (const auto& [parameter, value] : values) known.insert(parameter);
    for (Node* inner : model_.owner().nodes(node->subgraphs[number])) {
      if (!isVariable(*inner) || known.count(inner) != 0) continue;
      if (const NodeEntry* source = outerValue(*inner, *node)) {
        values.emplace_back(inner, *source);
      } else if (isAbsent(*inner)) {
        values.emplace_back(inner, model_.absent());
      }
    }
    std::vector<Node*> moved;
    std::vector<NodeEntry> results =
        model_.owner().absorb(model_.graph(), node, number, values, &moved);
    model_.noteMoved(moved);
    for (Node* each : moved) {
      if (!each->subgraphs.empty()) inside->push_back(each);
    }
    return results;
  }

  void replace(Node* node, const std::vector<NodeEntry>& values) {
    order_.clear();
    model_.forgetFacts();
    model_.replace(node, values);
  }

  Model& model_;
  std::vector<Node*> order_;  ///< the nodes, each after its inputs, until one is replaced
};

}  // namespace

void resolveIf(Model* model) { Resolving(model).run(); }

}  // namespace passlib::moves
