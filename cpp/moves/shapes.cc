#include <algorithm>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/attributes.h"
#include "moves/moves.h"
#include "rules/known.h"

namespace passlib::moves {
namespace {

using facts::Dim;
using facts::Shape;
using Nodes = std::unordered_set<const Node*>;

/// Returns the operators whose results are used only by conditions of If.
Nodes findConditions(Model* model) {
  Nodes found;
  if (model->sorted({"If"}).empty()) return found;
  std::vector<Node*> nodes = model->sorted();
  const EditedGraph& owner = model->owner();
  for (auto each = nodes.rbegin(); each != nodes.rend(); ++each) {
    const std::vector<NodeEntry>& uses = model->owner().consumersOf(*each);
    const auto is_condition = [&found](const NodeEntry& use) {
      return found.count(use.node) != 0 || (isOperator(*use.node, "If") && use.entry == 0);
    };
    if (owner.isUsed(*model->graph(), *each) && !model->computesOutput(*each) &&
        std::all_of(uses.begin(), uses.end(), is_condition)) {
      found.insert(*each);
    }
  }
  return found;
}

/// Whether a node gives a variable the name of an output, and has no other use.
bool isCopy(Model* model, Node* node) {
  return isOperator(*node, "Identity") && !node->inputs.empty() &&
         isVariable(*node->inputs[0].node) && model->users(node).empty();
}

/// A value whose elements are all known.
struct Known {
  NodeEntry value;
  std::vector<int64_t> shape;
  MXDType type;
  Integers items;
};

std::optional<Known> knownOf(Model* model, const NodeEntry& value) {
  const std::optional<Integers> items = model->whole(value);
  const MXDType type = rules::arrayType(model->type(value));
  const std::optional<Shape> shape = model->shape(value);
  if (!items || !shape || type == mxnet::ext::kUNSET) return std::nullopt;
  Known known{value, {}, type, *items};
  for (const Dim& size : *shape) known.shape.push_back(size.number());
  return known;
}

/// Returns a constant shape with the same effect on every input of a Reshape; nothing if there is
/// none, or it is constant already.
std::optional<Integers> targetOf(Model* model, const Node& node) {
  const NodeEntry* stated = given(node, 1);
  if (stated == nullptr || model->array(*stated) != nullptr) return std::nullopt;
  const std::optional<std::vector<Dim>> target = model->content(*stated);
  const std::optional<Shape> shape = model->shape(node.inputs[0]);
  if (!target || !shape) return std::nullopt;
  const auto is_zero = [](const Dim& item) { return item.is(0); };
  if (integerOf(node, "allowzero", 0) != 0 && std::any_of(target->begin(), target->end(), is_zero))
    return std::nullopt;
  Integers found;
  Dim others(1);
  const Dim* rest = nullptr;
  for (std::size_t place = 0; place < target->size(); ++place) {
    const Dim& wanted = (*target)[place];
    if (wanted.isNumber()) {
      found.push_back(wanted.number());
    } else if (place < shape->size() && (*shape)[place] == wanted) {
      found.push_back(0);
    } else if (rest == nullptr) {
      found.push_back(-1);
      rest = &wanted;
      continue;
    } else {
      return std::nullopt;
    }
    others = others * Dim(found.back());
  }
  if (rest == nullptr) return found;
  // With another size of 0 there is no size that -1 could stand for.
  const auto is_size = [](int64_t size) { return size > 0; };
  if (std::count_if(found.begin(), found.end(), is_size) + 1 !=
      static_cast<std::ptrdiff_t>(found.size())) {
    return std::nullopt;
  }
  if (facts::quotient(facts::product(*shape), others) != *rest || !facts::atLeast(*rest, 0))
    return std::nullopt;
  return found;
}

/// Lets Reshapes take constant shapes. Appends what they took to `unused`.
void setTargets(Model* model, const std::vector<std::pair<Node*, Integers>>& targets,
                std::vector<Node*>* unused) {
  for (const auto& [node, target] : targets) {
    unused->push_back(node->inputs[1].node);
    model->connect(model->addConstant(node->name + "_shape", target), node, 1);
    // Open sizes of 0 stay 0 either way, and now 0 stands for what is copied.
    dropAttributes(node, {"allowzero"});
  }
}

}  // namespace

void foldShapes(Model* model, bool conditions) {
  const Nodes left = conditions ? Nodes() : findConditions(model);
  std::vector<Known> constants;
  std::set<std::pair<const Node*, int>> known;
  Nodes inside;
  for (Node* node : model->nodes()) {
    if (isVariable(*node) || left.count(node) != 0 || isCopy(model, node)) continue;
    for (int output = 0; output < std::max(node->num_outputs, 1); ++output) {
      std::optional<Known> constant = knownOf(model, NodeEntry(node, output));
      if (!constant) continue;
      constants.push_back(std::move(*constant));
      known.emplace(node, output);
      inside.insert(node);
    }
  }
  std::vector<std::pair<Node*, Integers>> targets;
  if (model->opset() >= 5) {
    for (Node* node : model->sorted({"Reshape"})) {
      if (left.count(node) != 0) continue;
      std::optional<Integers> target = targetOf(model, *node);
      const bool folds = target && known.count({node->inputs[1].node, node->inputs[1].entry}) != 0;
      if (target && !folds) targets.emplace_back(node, std::move(*target));
    }
  }
  std::vector<Node*> unused;
  setTargets(model, targets, &unused);
  // Values that only values like them need are not made.
  for (const Known& constant : constants) {
    Node* node = constant.value.node;
    unused.push_back(node);
    const std::vector<NodeEntry> uses = model->owner().usesOf(node, constant.value.entry);
    const auto is_inside = [&inside](const NodeEntry& use) { return inside.count(use.node) != 0; };
    if (!model->isOutput(constant.value) && std::all_of(uses.begin(), uses.end(), is_inside))
      continue;
    const NodeEntry made = model->addConstant(node->name + "_value", constant.shape, constant.type);
    for (std::size_t pos = 0; pos < constant.items.size(); ++pos)
      rules::setIntegerAt(*made.node->tensor, pos, constant.items[pos]);
    model->owner().replace(model->graph(), constant.value, made);
  }
  std::reverse(unused.begin(), unused.end());
  model->removeUnused(std::move(unused));
}

}  // namespace passlib::moves
