#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "moves/moves.h"

namespace passlib::moves {
namespace {

using facts::Dim;
using facts::Shape;
using Roots = std::vector<NodeEntry>;

/// The operator set from which on Shape can return a part of the shape.
constexpr int64_t kWithRange = 15;
/// Longer lists are not taken apart in all ways.
constexpr std::size_t kLongestList = 8;

/// Orders lists of known sizes.
struct IsListBefore {
  bool operator()(const Shape& one, const Shape& other) const {
    return std::lexicographical_compare(one.begin(), one.end(), other.begin(), other.end(), isLess);
  }
  static bool isLess(const Dim& one, const Dim& other) {
    if (one.isSymbolic() != other.isSymbolic()) return other.isSymbolic();
    return one.isSymbolic() ? one.terms() < other.terms() : one.number() < other.number();
  }
};

/// Whether a value is a shape tensor used by an operator that computes no shape.
bool isRoot(Model* model, const NodeEntry& value) {
  if (isVariable(*value.node) || model->isOutput(value)) return false;
  const std::optional<std::vector<Dim>> content = model->content(value);
  if (!content || content->empty() || content->size() > kLongestList || facts::isStatic(*content))
    return false;
  if (model->shape(value)->size() != 1 || model->type(value) != facts::kInt64) return false;
  const std::vector<NodeEntry> uses = model->owner().usesOf(value.node, value.entry);
  return std::any_of(uses.begin(), uses.end(), [model](const NodeEntry& use) {
    return !model->content(NodeEntry(use.node, 0));
  });
}

/// Makes lists of sizes, equal ones once.
class Building {
 public:
  explicit Building(Model* model) : model_(model) {}

  /// Records the values that the model needs for more than these roots. `order`: all nodes.
  void takeSources(const std::vector<Node*>& order, const Roots& roots);
  /// Returns a value equal to a root, made of existing and new operators; nothing if there is none.
  std::optional<NodeEntry> make(const NodeEntry& root);

 private:
  /// Axes of a value, and the place of the value in the order of the graph.
  struct Source {
    NodeEntry value;
    int64_t start;
    int64_t place;
  };
  /// A value, its first axis and the end of its axes.
  using Part = std::tuple<const Node*, int, int64_t, int64_t>;
  using Plan = std::vector<Shape>;

  static Part partOf(const NodeEntry& value, int64_t start, int64_t end) {
    return {value.node, value.entry, start, end};
  }
  int64_t rankOf(const NodeEntry& value) {
    return static_cast<int64_t>(model_->shape(value)->size());
  }
  /// Whether Shape returns a part without a Slice.
  bool isOneShape(const Part& part, int64_t rank) const {
    return model_->opset() >= kWithRange || (std::get<2>(part) == 0 && std::get<3>(part) == rank);
  }
  std::unordered_set<const Node*> findNeeded(const Roots& roots) const;
  void takeRuns(const NodeEntry& value, int64_t place);
  void takeShape(Node* node);
  bool isThere(const Shape& run, int64_t place) const;
  /// Splits a list into as few available runs as possible.
  std::optional<Plan> planOf(const Shape& sizes, int64_t place);
  /// The numbers of new operators and of runs.
  std::pair<std::size_t, std::size_t> priceOf(const Plan& plan);
  NodeEntry makeRun(const std::string& wish, const Shape& run);
  NodeEntry makePart(const std::string& wish, const NodeEntry& value, int64_t start, int64_t end);

  Model* model_;
  std::map<Shape, Source, IsListBefore> sources_;  ///< the first one of each run of sizes
  std::unordered_map<const Node*, int64_t> places_;
  std::map<Part, NodeEntry> parts_;
  std::map<Shape, std::pair<NodeEntry, int64_t>, IsListBefore> lists_;  ///< with their places
};

std::unordered_set<const Node*> Building::findNeeded(const Roots& roots) const {
  std::set<std::pair<const Node*, int>> left;
  for (const NodeEntry& root : roots) left.emplace(root.node, root.entry);
  std::unordered_set<const Node*> needed;
  std::vector<const Node*> pending;
  for (const NodeEntry& output : model_->graph()->outputs) pending.push_back(output.node);
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    if (!needed.insert(node).second) continue;
    for (const NodeEntry& input : node->inputs) {
      if (left.count({input.node, input.entry}) == 0) pending.push_back(input.node);
    }
  }
  return needed;
}

void Building::takeSources(const std::vector<Node*>& order, const Roots& roots) {
  const std::unordered_set<const Node*> needed = findNeeded(roots);
  std::vector<Node*> nodes = order;
  std::stable_partition(nodes.begin(), nodes.end(),
                        [](const Node* node) { return isVariable(*node); });
  for (Node* node : nodes) {
    const auto place = isVariable(*node) ? -1 : static_cast<int64_t>(places_.size());
    places_.emplace(node, place);
    const bool is_needed = needed.count(node) != 0;
    if (is_needed || (isVariable(*node) && node->tensor == nullptr)) {
      const int count = model_->owner().knownOutputs(*model_->graph(), node);
      for (int output = 0; output < count; ++output) takeRuns(NodeEntry(node, output), place);
    }
    if (is_needed && isOperator(*node, "Shape") && !node->inputs.empty()) takeShape(node);
  }
}

void Building::takeRuns(const NodeEntry& value, int64_t place) {
  const std::optional<Shape> shape = model_->shape(value);
  if (!shape || facts::isStatic(*shape)) return;
  for (std::size_t start = 0; start < shape->size(); ++start) {
    Shape run;
    for (std::size_t end = start; end < shape->size() && run.size() < kLongestList; ++end) {
      if (!(*shape)[end].isKnown()) break;
      run.push_back((*shape)[end]);
      sources_.try_emplace(run, Source{value, static_cast<int64_t>(start), place});
    }
  }
}

void Building::takeShape(Node* node) {
  const std::optional<Shape> shape = model_->shape(node->inputs[0]);
  if (!shape) return;
  const auto rank = static_cast<int64_t>(shape->size());
  const std::optional<int64_t> start = integerOf(*node, "start", 0);
  const std::optional<int64_t> end = integerOf(*node, "end", rank);
  if (!start || !end) return;
  const auto within = [rank](int64_t axis) {
    return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  };
  parts_[partOf(node->inputs[0], within(*start), within(*end))] = NodeEntry(node, 0);
}

std::optional<NodeEntry> Building::make(const NodeEntry& root) {
  const Shape sizes = *model_->content(root);
  const int64_t place = places_.at(root.node);
  const auto known = lists_.find(sizes);
  if (known != lists_.end() && known->second.second <= place) return known->second.first;
  const std::optional<Plan> plan = planOf(sizes, place);
  if (!plan) return std::nullopt;
  std::vector<NodeEntry> values;
  for (const Shape& run : *plan) values.push_back(makeRun(root.node->name + "_sizes", run));
  const NodeEntry made =
      values.size() > 1 ? model_->addLike(root, "Concat", values, {{"axis", "0"}}) : values.front();
  lists_[sizes] = {made, place};
  return made;
}

std::optional<Building::Plan> Building::planOf(const Shape& sizes, int64_t place) {
  std::vector<std::optional<Plan>> best{Plan()};
  for (auto end = sizes.begin(); end != sizes.end();) {
    ++end;
    std::optional<Plan> found;
    for (auto start = sizes.begin(); start != end; ++start) {
      const std::optional<Plan>& before = best[static_cast<std::size_t>(start - sizes.begin())];
      const Shape run(start, end);
      if (!before || !isThere(run, place)) continue;
      Plan plan = *before;
      plan.push_back(run);
      if (!found || priceOf(plan) < priceOf(*found)) found = std::move(plan);
    }
    best.push_back(std::move(found));
  }
  return best.back();
}

std::pair<std::size_t, std::size_t> Building::priceOf(const Plan& plan) {
  std::size_t made = 0;
  for (const Shape& run : plan) {
    if (facts::isStatic(run)) continue;
    const Source& source = sources_.at(run);
    const int64_t rank = rankOf(source.value);
    const Part part =
        partOf(source.value, source.start, source.start + static_cast<int64_t>(run.size()));
    if (parts_.count(part) == 0) ++made;
    if (!isOneShape(part, rank) && parts_.count(partOf(source.value, 0, rank)) == 0) ++made;
  }
  return {made, plan.size()};
}

bool Building::isThere(const Shape& run, int64_t place) const {
  if (facts::isStatic(run)) return true;
  const auto found = sources_.find(run);
  return found != sources_.end() && found->second.place < place;
}

NodeEntry Building::makeRun(const std::string& wish, const Shape& run) {
  if (facts::isStatic(run)) {
    Integers numbers;
    for (const Dim& size : run) numbers.push_back(size.number());
    return model_->addConstant(wish, numbers);
  }
  const Source& source = sources_.at(run);
  return makePart(wish, source.value, source.start,
                  source.start + static_cast<int64_t>(run.size()));
}

NodeEntry Building::makePart(const std::string& wish, const NodeEntry& value, int64_t start,
                             int64_t end) {
  const Part part = partOf(value, start, end);
  const auto known = parts_.find(part);
  if (known != parts_.end()) return known->second;
  const int64_t rank = rankOf(value);
  NodeEntry made;
  if (start == 0 && end == rank) {
    made = model_->add(wish, "Shape", {value});
  } else if (isOneShape(part, rank)) {
    made = model_->add(wish, "Shape", {value},
                       {{"start", std::to_string(start)}, {"end", std::to_string(end)}});
  } else {
    // The whole shape needs no Slice: this recursion ends.
    std::vector<NodeEntry> inputs{makePart(wish, value, 0, rank)};
    Model::Attributes attributes;
    if (model_->opset() < 10) {
      attributes = {{"starts", textOf({start})}, {"ends", textOf({end})}, {"axes", "[0]"}};
    } else {
      inputs.push_back(model_->addConstant(wish, {start}));
      inputs.push_back(model_->addConstant(wish, {end}));
    }
    made = model_->add(wish, "Slice", inputs, attributes);
  }
  parts_.emplace(part, made);
  return made;
}

}  // namespace

void rebuildShapes(Model* model) {
  const std::vector<Node*> order = model->sorted();
  Roots roots;
  for (Node* node : order) {
    const int count = model->owner().knownOutputs(*model->graph(), node);
    for (int output = 0; output < count; ++output) {
      if (isRoot(model, NodeEntry(node, output))) roots.emplace_back(node, output);
    }
  }
  if (roots.empty()) return;
  Building building(model);
  building.takeSources(order, roots);
  std::vector<Node*> unused;
  for (const NodeEntry& root : roots) {
    const std::optional<NodeEntry> made = building.make(root);
    if (!made || *made == root) continue;
    model->owner().replace(model->graph(), root, *made);
    unused.push_back(root.node);
  }
  std::reverse(unused.begin(), unused.end());
  model->removeUnused(std::move(unused));
}

}  // namespace passlib::moves
