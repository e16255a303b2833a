#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/attributes.h"
#include "moves/moves.h"
#include "rules/folding.h"
#include "rules/known.h"

namespace passlib::moves {
namespace {

using rules::Value;
using Settings = std::map<std::string, Value>;

/// Operators that rules::foldNatively computes exactly.
const std::unordered_set<std::string_view> kFolded = {
    "Add",     "Cast", "Concat",    "Div",       "Expand",    "Gather", "Identity",
    "Max",     "Min",  "Mul",       "Neg",       "Reshape",   "Slice",  "Sqrt",
    "Squeeze", "Sub",  "Transpose", "Unsqueeze", "Reciprocal"};

/// Operators that keep weights small, or whose results are no facts.
const std::unordered_set<std::string_view> kStay = {"DequantizeLinear", "Dropout",
                                                    "DynamicQuantizeLinear", "QuantizeLinear"};

/// The limit of the bytes of all results together, intermediate ones included.
constexpr int64_t kMostBytes = int64_t{1} << 30;

/// The attributes of an operator; nothing unless all are integers, and lists of them.
std::optional<Settings> settingsOf(const Node& node) {
  Settings made;
  bool known = true;
  forEachAttribute(node, [&](std::string_view key, std::string_view) {
    if (key.substr(0, 2) == "__") return;
    if (const auto number = integerOf(node, key, 0)) {
      made[std::string(key)] = Value::of(*number);
    } else if (const auto numbers = integersOf(node, key)) {
      made[std::string(key)] = Value::of(std::vector<facts::Dim>(numbers->begin(), numbers->end()));
    } else {
      known = false;
    }
  });
  return known ? std::optional(std::move(made)) : std::nullopt;
}

/// The bytes of an array; nothing if they are too many to count.
std::optional<int64_t> sizeOf(const Integers& shape, MXDType type) {
  auto bytes = static_cast<int64_t>(rules::bytesOf(type));
  for (const int64_t size : shape) {
    if (__builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
  }
  return bytes;
}

/// Computes operators on constants, as long as the weights grow by no more than a limit.
class Folding {
 public:
  Folding(Model* model, int64_t max_growth) : model_(*model), max_growth_(max_growth) {}

  void run() {
    find();
    for (std::size_t round = 0; !folded_.empty(); ++round) {
      // One at a time, because its inputs may be needed then; many if that would take long.
      std::vector<Node*> stay = tooLarge(1 + round / 32);
      if (stay.empty()) stay = failed();
      if (stay.empty()) break;
      drop(stay);
    }
    replace();
  }

 private:
  struct Result {
    MXDType type = mxnet::ext::kUNSET;
    Integers sizes;
    int64_t bytes = 0;
    std::optional<Settings> settings;  ///< of an operator that is computed
    std::optional<Integers> content;   ///< as inference knows it
    const MXTensor* array = nullptr;   ///< once it is computed
  };

  /// Whether a value is a constant, or will be one.
  bool isKnown(const NodeEntry& value) const {
    return model_.array(value) != nullptr || results_.count(value.node) != 0;
  }

  void find() {
    int64_t total = 0;
    for (Node* node : model_.sorted()) {
      if (isVariable(*node) || !isFree(*node) || !isOwnDomain(*node) || isCopy(node)) continue;
      if (!node->subgraphs.empty() || node->num_outputs > 1 || isOneOf(*node, kStay)) continue;
      if (!std::all_of(node->inputs.begin(), node->inputs.end(),
                       [this](const NodeEntry& input) { return isKnown(input); })) {
        continue;
      }
      Result result;
      if (isOneOf(*node, kFolded)) result.settings = settingsOf(*node);
      const NodeEntry value(node, 0);
      result.content = model_.whole(value);
      const std::optional<Integers> sizes = sizesOf(value);
      if (!sizes || (!result.settings && !result.content)) continue;
      result.type = rules::arrayType(model_.type(value));
      result.sizes = *sizes;
      const std::optional<int64_t> bytes = sizeOf(result.sizes, result.type);
      if (!bytes || rules::bytesOf(result.type) == 0 || *bytes > kMostBytes - total) continue;
      total += *bytes;
      result.bytes = *bytes;
      folded_.push_back(node);
      results_[node] = std::move(result);
    }
  }

  /// Whether an operator gives a constant the name of an output, and has no other use.
  bool isCopy(Node* node) const {
    return node->op == "Identity" && isVariable(*node->inputs[0].node) &&
           model_.users(node).empty();
  }

  /// The sizes of a result; nothing unless all are known.
  std::optional<Integers> sizesOf(const NodeEntry& value) {
    const std::optional<facts::Shape> shape = model_.shape(value);
    if (!shape) return std::nullopt;
    Integers sizes;
    for (const facts::Dim& size : *shape) {
      if (!size.isNumber()) return std::nullopt;
      sizes.push_back(size.number());
    }
    return sizes;
  }

  /// Whether an operator that stays, or an output, needs a result.
  bool isNeeded(Node* node) const {
    if (model_.computesOutput(node)) return true;
    const std::vector<Node*> users = model_.users(node);
    return std::any_of(users.begin(), users.end(),
                       [this](Node* user) { return results_.count(user) == 0; });
  }

  /// The operators of the largest results, if the results are too large together.
  std::vector<Node*> tooLarge(std::size_t count) const {
    int64_t grown = 0;
    std::vector<Node*> needed;
    std::unordered_set<Node*> weights;
    for (Node* node : folded_) {
      for (const NodeEntry& input : node->inputs) {
        if (isVariable(*input.node)) weights.insert(input.node);
      }
      if (!isNeeded(node)) continue;
      grown += results_.at(node).bytes;
      needed.push_back(node);
    }
    for (Node* weight : weights) {
      if (isNeeded(weight)) continue;
      const MXTensor& array = *weight->tensor;
      grown -= array.size() * static_cast<int64_t>(rules::bytesOf(array.dtype));
    }
    if (grown <= max_growth_) return {};
    std::stable_sort(needed.begin(), needed.end(), [this](const Node* one, const Node* other) {
      return results_.at(one).bytes > results_.at(other).bytes;
    });
    needed.resize(std::min(needed.size(), count));
    return needed;
  }

  /// Computes the results; returns an operator that cannot be computed, or none.
  std::vector<Node*> failed() {
    for (Node* node : folded_) {
      Result& result = results_.at(node);
      if (result.array == nullptr && !compute(node, &result)) return {node};
    }
    return {};
  }

  bool compute(Node* node, Result* result) {
    std::vector<const MXTensor*> inputs;
    for (const NodeEntry& input : node->inputs) {
      const MXTensor* const constant = model_.array(input);
      inputs.push_back(constant != nullptr ? constant : results_.at(input.node).array);
    }
    const auto allocate = [&](const Integers& shape, MXDType type) -> const MXTensor* {
      if (shape != result->sizes || type != result->type) return nullptr;
      buffers_.emplace_back(new char[static_cast<std::size_t>(result->bytes)]);
      arrays_.emplace_back(buffers_.back().get(), shape, type, 0, mxnet::ext::MXContext::CPU());
      result->array = &arrays_.back();
      return result->array;
    };
    if (result->settings && rules::foldNatively(node->op, *result->settings, inputs, allocate))
      return true;
    if (!result->content) return false;
    const MXTensor* const made = allocate(result->sizes, result->type);
    if (made == nullptr || made->size() != static_cast<int64_t>(result->content->size()))
      return false;
    for (std::size_t pos = 0; pos < result->content->size(); ++pos)
      rules::setIntegerAt(*made, pos, (*result->content)[pos]);
    return true;
  }

  /// Lets operators stay, and those that need their results.
  void drop(const std::vector<Node*>& nodes) {
    for (const Node* node : nodes) results_.erase(node);
    const auto stays = [this](const Node* each) {
      const auto isKnownInput = [this](const NodeEntry& input) { return isKnown(input); };
      if (!std::all_of(each->inputs.begin(), each->inputs.end(), isKnownInput))
        results_.erase(each);
      return results_.count(each) == 0;
    };
    folded_.erase(std::remove_if(folded_.begin(), folded_.end(), stays), folded_.end());
  }

  void replace() {
    std::vector<std::pair<Node*, NodeEntry>> made;
    for (Node* node : folded_) {
      if (!isNeeded(node)) continue;
      if (node->op == "Identity" && isVariable(*node->inputs[0].node)) {
        made.emplace_back(node, node->inputs[0]);
        continue;
      }
      const MXTensor& array = *results_.at(node).array;
      const NodeEntry value = model_.addConstant(node->name + "_value", array.shape, array.dtype);
      const auto bytes = static_cast<std::size_t>(results_.at(node).bytes);
      if (bytes != 0) std::memcpy(value.node->tensor->data_ptr, array.data_ptr, bytes);
      made.emplace_back(node, value);
    }
    for (const auto& [node, value] : made) {
      model_.owner().replace(model_.graph(), NodeEntry(node, 0), value);
    }
    model_.removeUnused(folded_);
  }

  Model& model_;
  int64_t max_growth_;
  std::vector<Node*> folded_;  ///< each after its inputs
  std::unordered_map<const Node*, Result> results_;
  std::vector<std::unique_ptr<char[]>> buffers_;
  std::deque<MXTensor> arrays_;
};

}  // namespace

void foldConstants(Model* model, int64_t max_growth) { Folding(model, max_growth).run(); }

}  // namespace passlib::moves
