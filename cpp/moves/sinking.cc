#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/attributes.h"
#include "moves/kernels.h"
#include "moves/moves.h"
#include "rules/folding.h"
#include "rules/known.h"

namespace passlib::moves {
namespace {

using Names = std::unordered_set<std::string_view>;
using Nodes = std::unordered_set<const Node*>;

/// Operators on each element of their first input.
const Names kUnary{"Abs",
                   "Cast",
                   "Ceil",
                   "Clip",
                   "DequantizeLinear",
                   "Elu",
                   "Erf",
                   "Exp",
                   "Floor",
                   "Gelu",
                   "HardSigmoid",
                   "HardSwish",
                   "LeakyRelu",
                   "Log",
                   "Mish",
                   "Neg",
                   "QuantizeLinear",
                   "Reciprocal",
                   "Relu",
                   "Round",
                   "Selu",
                   "Sigmoid",
                   "Sign",
                   "Softplus",
                   "Sqrt",
                   "Tanh"};
const Names kBinary{"Add", "Div", "Max", "Min", "Mul", "Pow", "Sub", "Sum"};
/// Reductions that may end a region, because no axis is left that would be in another place.
const Names kSums{"ReduceMean", "ReduceSum"};

/// Element types have smaller numbers.
constexpr int64_t kEndOfTypes = 128;

/// How many inputs have the axes of the result.
std::size_t countData(const Node& node) {
  return kBinary.count(node.op) != 0 || node.op == "Concat" ? node.inputs.size() : 1;
}

/// The order of a Transpose that states one; nothing for other nodes, and where it changes nothing.
std::optional<Integers> orderOf(const Node& node) {
  if (!isFreeOperator(node, "Transpose")) return std::nullopt;
  const std::optional<Integers> stated = integersOf(node, "perm");
  if (!stated || isSorted(*stated)) return std::nullopt;
  return permutationOf(node, stated->size());
}

Integers inverse(const Integers& order) {
  Integers made(order.size());
  for (std::size_t place = 0; place < order.size(); ++place)
    made[static_cast<std::size_t>(order[place])] = static_cast<int64_t>(place);
  return made;
}

/// The Transposes of each order, and the places of operators that they may go through.
struct Sorted {
  explicit Sorted(const Model& model) {
    for (Node* node : model.sorted({"Transpose"})) {
      const std::optional<Integers> order = orderOf(*node);
      if (!order) continue;
      const auto [found, fresh] = turning.try_emplace(*order);
      if (fresh) orders.push_back(*order);
      found->second.push_back(node);
    }
    if (orders.empty()) return;
    for (Node* node : model.sorted(passable())) places.emplace(node, places.size());
  }

  static const Names& passable() {
    static const Names made = [] {
      Names all{"Concat", "Pad"};
      all.insert(kUnary.begin(), kUnary.end());
      all.insert(kBinary.begin(), kBinary.end());
      return all;
    }();
    return made;
  }

  std::vector<Integers> orders;  ///< in the order of their first Transposes
  std::map<Integers, std::vector<Node*>> turning;
  std::unordered_map<Node*, std::size_t> places;
};

/// Operators whose inputs have all been transposed to one order, directly or by others.
class Region {
 public:
  using Part = std::vector<Node*>;

  Region(Model* model, const Integers& order, bool reorder_sums, const Sorted& sorted)
      : model_(*model), order_(order), reorder_sums_(reorder_sums), places_(sorted.places) {
    const auto found = sorted.turning.find(order);
    if (found == sorted.turning.end()) return;
    turning_.insert(found->second.begin(), found->second.end());
    // An operator is looked at after its inputs, and only if one of them is turned.
    using Place = std::pair<std::size_t, Node*>;
    std::priority_queue<Place, std::vector<Place>, std::greater<Place>> pending;
    Nodes seen;
    const auto look = [&](Node* node) {
      for (Node* user : model_.users(node)) {
        const auto place = places_.find(user);
        if (place != places_.end() && seen.insert(user).second)
          pending.emplace(place->second, user);
      }
    };
    for (Node* node : found->second) look(node);
    while (!pending.empty()) {
      Node* node = pending.top().second;
      pending.pop();
      if (!fits(*node)) continue;
      inside_.insert(node);
      listed_.push_back(node);
      look(node);
    }
  }

  bool canMove(const Part& part) {
    return std::all_of(part.begin(), part.end(),
                       [this](Node* node) { return !model_.isGone(node) && fits(*node); });
  }

  /// Returns the operators that are connected, each after its inputs.
  std::vector<Part> parts() {
    std::vector<Part> found;
    Nodes left = inside_;
    Nodes looked;
    for (Node* start : listed_) {
      Part part;
      std::vector<Node*> pending{start};
      while (!pending.empty()) {
        Node* node = pending.back();
        pending.pop_back();
        if (left.erase(node) == 0) continue;
        part.push_back(node);
        for (std::size_t place = 0; place < countData(*node); ++place) {
          Node* source = node->inputs[place].node;
          if (inside_.count(source) != 0) {
            pending.push_back(source);
          } else if (turning_.count(source) != 0 && looked.insert(source).second) {
            // Once, as many may take what one Transpose returns.
            const std::vector<Node*> users = model_.users(source);
            pending.insert(pending.end(), users.begin(), users.end());
          }
        }
        const std::vector<Node*> users = model_.users(node);
        pending.insert(pending.end(), users.begin(), users.end());
      }
      if (part.empty()) continue;
      std::sort(part.begin(), part.end(),
                [this](Node* one, Node* other) { return places_.at(one) < places_.at(other); });
      found.push_back(std::move(part));
    }
    return found;
  }

  /// Returns how many operators fewer there are if Transposes go behind a part.
  int64_t gain(const Part& part) {
    const Nodes inside(part.begin(), part.end());
    const auto is_inside = [&inside](const Node* node) { return inside.count(node) != 0; };
    int64_t total = 0;
    Nodes entrances;
    for (const Node* node : part) {
      for (std::size_t place = 0; place < countData(*node); ++place) {
        Node* source = node->inputs[place].node;
        if (is_inside(source) || !entrances.insert(source).second) continue;
        if (orderOf(*source) != order_ || model_.isOutput(NodeEntry(source, 0))) continue;
        const std::vector<Node*> users = model_.users(source);
        total += std::all_of(users.begin(), users.end(), is_inside) ? 1 : 0;
      }
    }
    for (Node* node : part) {
      bool stays = model_.isOutput(NodeEntry(node, 0));
      for (Node* user : model_.users(node)) {
        if (is_inside(user)) continue;
        if (const std::optional<Integers> behind = orderBehind(*user)) {
          total += isSorted(*behind) && !model_.isOutput(NodeEntry(user, 0)) ? 1 : 0;
        } else if (!axesBefore(*user)) {
          stays = true;
        }
      }
      total -= stays ? 1 : 0;
    }
    return total;
  }

  /// Lets the operators of a part work on what the Transposes before them take.
  void move(const Part& part) {
    for (Node* node : part) made_.emplace(node, again(*node));
    Nodes inside(part.begin(), part.end());
    std::vector<Node*> unused;
    for (Node* node : part) {
      const NodeEntry value(node, 0);
      const NodeEntry made = made_.at(node);
      bool stays = model_.isOutput(value);
      for (Node* user : model_.users(node)) {
        if (inside.count(user) != 0) continue;
        if (letTake(user, made)) {
          unused.push_back(user);
          inside.insert(user);
        } else {
          stays = true;
        }
      }
      if (stays) turnBehind(value, made, inside);
    }
    unused.insert(unused.end(), part.rbegin(), part.rend());
    for (const Node* node : part) {
      for (const NodeEntry& input : node->inputs) unused.push_back(input.node);
    }
    model_.removeUnused(std::move(unused));
  }

 private:
  bool isTurned(const NodeEntry& value) const {
    return inside_.count(value.node) != 0 || turning_.count(value.node) != 0;
  }

  /// Whether an operator works on what is turned, and may work on what is not.
  bool fits(const Node& node) {
    if (!node.control_deps.empty() || node.num_outputs != 1 || !node.subgraphs.empty() ||
        node.inputs.empty()) {
      return false;
    }
    const auto data_end = node.inputs.begin() + static_cast<std::ptrdiff_t>(countData(node));
    const auto is_turned = [this](const NodeEntry& value) { return isTurned(value); };
    if (std::none_of(node.inputs.begin(), data_end, is_turned)) return false;
    const auto rank = static_cast<int64_t>(order_.size());
    if (node.op == "Cast") return turnsType(integerOf(node, "to", 0));
    if (node.op == "QuantizeLinear" || node.op == "DequantizeLinear") {
      const std::optional<int64_t> type = integerOf(node, "output_dtype", 0);
      return std::all_of(node.inputs.begin() + 1, node.inputs.end(),
                         [this](const NodeEntry& value) { return model_.isOneNumber(value); }) &&
             (type == 0 || turnsType(type));
    }
    if (node.op == "Pad") {
      const NodeEntry* pads = given(node, 1);
      const MXTensor* array = pads == nullptr ? nullptr : model_.array(*pads);
      return array != nullptr && array->dtype == mxnet::ext::kInt64 && given(node, 3) == nullptr &&
             array->size() == 2 * rank;
    }
    if (node.op == "Concat") {
      const std::optional<int64_t> axis = integerOf(node, "axis", 1);
      return axis && *axis >= -rank && *axis < rank &&
             std::all_of(node.inputs.begin(), data_end, is_turned);
    }
    if (kBinary.count(node.op) == 0) return true;
    return !isOldBroadcast(node) &&
           std::all_of(node.inputs.begin(), data_end, [&](const NodeEntry& value) {
             const MXTensor* array = model_.array(value);
             return isTurned(value) || (array != nullptr && array->shape.size() <= order_.size());
           });
  }

  /// Whether ONNX Runtime transposes an element type, by its number.
  bool turnsType(std::optional<int64_t> type) const {
    return type && *type > 0 && *type < kEndOfTypes &&
           hasKernel("Transpose", static_cast<int>(*type), model_.opset()) &&
           hasKernel("Identity", static_cast<int>(*type), model_.opset());
  }

  /// Returns the order of a Transpose and the one before it together.
  std::optional<Integers> orderBehind(const Node& user) const {
    std::optional<Integers> order = orderOf(user);
    if (!order || order->size() != order_.size()) return std::nullopt;
    for (int64_t& axis : *order) axis = order_[static_cast<std::size_t>(axis)];
    return order;
  }

  /// Returns the axes of a reduction before the Transpose; nothing if it is none, or turns.
  std::optional<Integers> axesBefore(const Node& user) const {
    if (!reorder_sums_ || !isOneOf(user, kSums) || !user.control_deps.empty()) return std::nullopt;
    std::optional<Integers> axes = integersOf(user, "axes");
    const NodeEntry* listed = given(user, 1);
    const MXTensor* array = listed == nullptr ? nullptr : model_.array(*listed);
    if (!axes && array != nullptr && array->dtype == mxnet::ext::kInt64) {
      axes.emplace();
      for (int64_t place = 0; place < array->size(); ++place)
        axes->push_back(rules::integerAt(*array, static_cast<std::size_t>(place)));
    }
    const auto rank = static_cast<int64_t>(order_.size());
    if (!axes || axes->empty() || integerOf(user, "keepdims", 1) != 0) return std::nullopt;
    std::vector<char> gone(order_.size());
    for (const int64_t axis : *axes) {
      if (axis < -rank || axis >= rank) return std::nullopt;
      gone[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)] = 1;
    }
    Integers kept;
    Integers before;
    for (std::size_t axis = 0; axis < order_.size(); ++axis)
      (gone[axis] != 0 ? before : kept).push_back(order_[axis]);
    if (!isSorted(kept)) return std::nullopt;
    return before;
  }

  /// Lets a Transpose or a reduction behind the region take a value that is not transposed. What
  /// it is replaced by is all that uses it then; removing it would take the part with it.
  bool letTake(Node* user, const NodeEntry& made) {
    const NodeEntry result(user, 0);
    NodeEntry by = made;
    if (const std::optional<Integers> behind = orderBehind(*user)) {
      if (!isSorted(*behind)) {
        by = model_.add(user->name, "Transpose", {made}, {{"perm", textOf(*behind)}});
      } else if (model_.isOutput(result)) {
        by = model_.add(user->name, "Identity", {made});
      }
    } else if (const std::optional<Integers> axes = axesBefore(*user)) {
      std::vector<NodeEntry> inputs{made};
      Model::Attributes attributes{{"keepdims", "0"}};
      if (given(*user, 1) == nullptr) {
        attributes.emplace_back("axes", textOf(*axes));
      } else {
        inputs.push_back(model_.addConstant(user->name + "_axes", *axes));
      }
      by = model_.add(user->name, user->op, inputs, attributes);
    } else {
      return false;
    }
    model_.owner().replace(model_.graph(), result, by);
    return true;
  }

  /// Adds a Transpose behind a new operator, for uses of the old one outside the region.
  void turnBehind(const NodeEntry& value, const NodeEntry& made, const Nodes& inside) {
    EditedGraph& owner = model_.owner();
    const NodeEntry turned =
        model_.add(value.node->name + "_turned", "Transpose", {made}, {{"perm", textOf(order_)}});
    for (const NodeEntry& use : owner.usesOf(value.node, value.entry)) {
      if (inside.count(use.node) == 0) owner.connect(model_.graph(), turned, use.node, use.entry);
    }
    if (model_.isOutput(value)) owner.replace(model_.graph(), value, turned);
  }

  /// Returns the result of an operator on inputs that are not transposed.
  NodeEntry again(const Node& node) {
    std::vector<NodeEntry> inputs = node.inputs;
    for (std::size_t place = 0; place < countData(node); ++place)
      inputs[place] = sourceOf(inputs[place]);
    Model::Attributes attributes;
    forEachAttribute(node, [&](std::string_view key, std::string_view text) {
      if (key.substr(0, 2) != "__") attributes.emplace_back(key, text);
    });
    if (node.op == "Concat") {
      const auto rank = static_cast<int64_t>(order_.size());
      const int64_t axis = (*integerOf(node, "axis", 1) + rank) % rank;
      attributes.emplace_back("axis", std::to_string(order_[static_cast<std::size_t>(axis)]));
    } else if (node.op == "Pad") {
      inputs[1] = model_.addConstant(node.name + "_pads", padsBefore(*model_.array(inputs[1])));
    }
    const NodeEntry made = model_.add(node.name, node.op, inputs, attributes);
    model_.noteOrigin(made.node, node);
    return made;
  }

  Integers padsBefore(const MXTensor& pads) const {
    const std::size_t rank = order_.size();
    Integers made(2 * rank);
    for (std::size_t place = 0; place < rank; ++place) {
      const auto axis = static_cast<std::size_t>(order_[place]);
      made[axis] = rules::integerAt(pads, place);
      made[rank + axis] = rules::integerAt(pads, rank + place);
    }
    return made;
  }

  /// Returns a value before it was transposed.
  NodeEntry sourceOf(const NodeEntry& value) {
    const auto made = made_.find(value.node);
    if (made != made_.end()) return made->second;
    if (orderOf(*value.node) == order_) return value.node->inputs[0];
    const MXTensor& array = *model_.array(value);
    if (array.size() == 1) return value;
    MXTensor full = array;
    full.shape.insert(full.shape.begin(), order_.size() - full.shape.size(), 1);
    std::vector<facts::Dim> back;
    for (const int64_t axis : inverse(order_)) back.emplace_back(axis);
    NodeEntry turned = value;
    rules::foldNatively("Transpose", {{"perm", rules::Value::of(back)}}, {&full},
                        [&](const std::vector<int64_t>& shape, MXDType type) {
                          turned = model_.addConstant(value.node->name + "_turned", shape, type);
                          return turned.node->tensor;
                        });
    return turned;
  }

  Model& model_;
  Integers order_;
  bool reorder_sums_;
  const std::unordered_map<Node*, std::size_t>& places_;
  Nodes turning_;
  Nodes inside_;
  Part listed_;  ///< what is inside, each after its inputs
  std::unordered_map<const Node*, NodeEntry> made_;
};

}  // namespace

bool isPassable(const Node& node) { return node.op != "Pad" && isOneOf(node, Sorted::passable()); }

void sinkTransposes(Model* model, bool reorder_sums) {
  Sorted sorted(*model);
  const std::vector<Integers> orders = sorted.orders;
  for (const Integers& order : orders) {
    bool changed = false;
    {
      Region region(model, order, reorder_sums, sorted);
      for (const Region::Part& part : region.parts()) {
        // The Transposes in front of a part are gone if they met those of the part before it.
        if (!region.canMove(part) || region.gain(part) <= 0) continue;
        region.move(part);
        changed = true;
      }
    }
    if (changed) sorted = Sorted(*model);
  }
}

}  // namespace passlib::moves
