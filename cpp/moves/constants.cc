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

/// Operators that rules::foldNatively computes exactly, and Split, which is several Slices.
const std::unordered_set<std::string_view> kFolded = {
    "Add",     "Cast", "Concat",    "Div",       "Expand",     "Gather", "Identity",
    "Max",     "Min",  "Mul",       "Neg",       "Reshape",    "Slice",  "Sqrt",
    "Squeeze", "Sub",  "Transpose", "Unsqueeze", "Reciprocal", "Split"};

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
    std::optional<Integers> content;  ///< as inference knows it
    const MXTensor* array = nullptr;  ///< once it is computed
  };

  struct Operator {
    std::optional<Settings> settings;  ///< if it is computed
    std::vector<Result> results;
  };

  /// Whether a value is a constant, or will be one.
  bool isKnown(const NodeEntry& value) const {
    return model_.array(value) != nullptr || operators_.count(value.node) != 0;
  }

  Result& resultOf(const NodeEntry& value) {
    return operators_.at(value.node).results[static_cast<std::size_t>(value.entry)];
  }

  void find() {
    int64_t total = 0;
    for (Node* node : model_.sorted()) {
      if (isVariable(*node) || !isFree(*node) || !isOwnDomain(*node) || isCopy(node)) continue;
      if (!node->subgraphs.empty() || isOneOf(*node, kStay)) continue;
      if (node->num_outputs > 1 && node->op != "Split") continue;
      if (!std::all_of(node->inputs.begin(), node->inputs.end(),
                       [this](const NodeEntry& input) { return isKnown(input); })) {
        continue;
      }
      Operator made;
      if (isOneOf(*node, kFolded)) made.settings = settingsOf(*node);
      int64_t sum = total;
      for (int i = 0; i < std::max(node->num_outputs, 1); ++i) {
        std::optional<Result> result = describe(NodeEntry(node, i), kMostBytes - sum);
        if (!result || (!made.settings && !result->content)) break;
        sum += result->bytes;
        made.results.push_back(*std::move(result));
      }
      if (made.results.size() != static_cast<std::size_t>(std::max(node->num_outputs, 1))) continue;
      total = sum;
      folded_.push_back(node);
      operators_[node] = std::move(made);
    }
  }

  /// A result that is not computed yet; nothing unless its size is known, and at most `most`.
  std::optional<Result> describe(const NodeEntry& value, int64_t most) {
    const std::optional<Integers> sizes = sizesOf(value);
    if (!sizes) return std::nullopt;
    Result result;
    result.content = model_.whole(value);
    result.type = rules::arrayType(model_.type(value));
    result.sizes = *sizes;
    const std::optional<int64_t> bytes = sizeOf(result.sizes, result.type);
    if (!bytes || rules::bytesOf(result.type) == 0 || *bytes > most) return std::nullopt;
    result.bytes = *bytes;
    return result;
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

  /// Whether an operator that stays, or an output, needs a value.
  bool isNeeded(const NodeEntry& value) const {
    if (model_.isOutput(value)) return true;
    const std::vector<NodeEntry> uses = model_.owner().usesOf(value.node, value.entry);
    return std::any_of(uses.begin(), uses.end(), [this](const NodeEntry& use) {
      return !model_.isGone(use.node) && operators_.count(use.node) == 0;
    });
  }

  /// The results of an operator that are needed.
  std::vector<NodeEntry> neededOf(Node* node) const {
    std::vector<NodeEntry> needed;
    for (std::size_t i = 0; i < operators_.at(node).results.size(); ++i) {
      const NodeEntry value(node, static_cast<int>(i));
      if (isNeeded(value)) needed.push_back(value);
    }
    return needed;
  }

  /// The operators of the largest results, if the results are too large together.
  std::vector<Node*> tooLarge(std::size_t count) {
    int64_t grown = 0;
    std::vector<NodeEntry> needed;
    std::unordered_set<Node*> weights;
    for (Node* node : folded_) {
      for (const NodeEntry& input : node->inputs) {
        if (isVariable(*input.node)) weights.insert(input.node);
      }
      for (const NodeEntry& value : neededOf(node)) {
        grown += resultOf(value).bytes;
        needed.push_back(value);
      }
    }
    for (Node* weight : weights) {
      if (isNeeded(NodeEntry(weight, 0))) continue;
      const MXTensor& array = *weight->tensor;
      grown -= array.size() * static_cast<int64_t>(rules::bytesOf(array.dtype));
    }
    if (grown <= max_growth_) return {};
    std::stable_sort(needed.begin(), needed.end(), [this](const auto& one, const auto& other) {
      return resultOf(one).bytes > resultOf(other).bytes;
    });
    std::vector<Node*> largest;
    for (std::size_t i = 0; i < std::min(needed.size(), count); ++i)
      largest.push_back(needed[i].node);
    return largest;
  }

  /// Computes the results; returns an operator that cannot be computed, or none.
  std::vector<Node*> failed() {
    for (Node* node : folded_) {
      Operator& made = operators_.at(node);
      if (made.results[0].array != nullptr) continue;
      std::vector<const MXTensor*> inputs;
      for (const NodeEntry& input : node->inputs) {
        const MXTensor* const constant = model_.array(input);
        inputs.push_back(constant != nullptr ? constant : resultOf(input).array);
      }
      const bool done = node->op == "Split"
                            ? split(*node, *inputs[0], &made.results)
                            : compute(node->op, made.settings, inputs, &made.results[0]);
      if (!done) return {node};
    }
    return {};
  }

  /// Computes parts of an array, whose sizes inference knows.
  bool split(const Node& node, const MXTensor& input, std::vector<Result>* results) {
    const auto rank = static_cast<int64_t>(input.shape.size());
    int64_t axis = integerOf(node, "axis", 0).value_or(0);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return false;
    int64_t start = 0;
    for (Result& result : *results) {
      if (static_cast<int64_t>(result.sizes.size()) != rank) return false;
      const int64_t end = start + result.sizes[static_cast<std::size_t>(axis)];
      const auto list = [](int64_t number) { return Value::of(std::vector<facts::Dim>{number}); };
      const Settings slice = {{"starts", list(start)}, {"ends", list(end)}, {"axes", list(axis)}};
      if (!compute("Slice", slice, {&input}, &result)) return false;
      start = end;
    }
    return start == input.shape[static_cast<std::size_t>(axis)];
  }

  bool compute(const std::string& op, const std::optional<Settings>& settings,
               const std::vector<const MXTensor*>& inputs, Result* result) {
    const auto allocate = [&](const Integers& shape, MXDType type) -> const MXTensor* {
      if (shape != result->sizes || type != result->type) return nullptr;
      buffers_.emplace_back(new char[static_cast<std::size_t>(result->bytes)]);
      arrays_.emplace_back(buffers_.back().get(), shape, type, 0, mxnet::ext::MXContext::CPU());
      result->array = &arrays_.back();
      return result->array;
    };
    if (settings && rules::foldNatively(op, *settings, inputs, allocate)) return true;
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
    for (const Node* node : nodes) operators_.erase(node);
    const auto stays = [this](const Node* each) {
      const auto isKnownInput = [this](const NodeEntry& input) { return isKnown(input); };
      if (!std::all_of(each->inputs.begin(), each->inputs.end(), isKnownInput))
        operators_.erase(each);
      return operators_.count(each) == 0;
    };
    folded_.erase(std::remove_if(folded_.begin(), folded_.end(), stays), folded_.end());
  }

  void replace() {
    std::vector<std::pair<NodeEntry, NodeEntry>> made;
    for (Node* node : folded_) {
      for (const NodeEntry& value : neededOf(node)) {
        if (node->op == "Identity" && isVariable(*node->inputs[0].node)) {
          made.emplace_back(value, node->inputs[0]);
          continue;
        }
        const Result& result = resultOf(value);
        const std::string end = node->num_outputs < 2 ? "" : "_" + std::to_string(value.entry);
        const NodeEntry constant =
            model_.addConstant(node->name + end + "_value", result.sizes, result.type);
        const auto bytes = static_cast<std::size_t>(result.bytes);
        if (bytes != 0) std::memcpy(constant.node->tensor->data_ptr, result.array->data_ptr, bytes);
        made.emplace_back(value, constant);
      }
    }
    for (const auto& [value, constant] : made) {
      model_.owner().replace(model_.graph(), value, constant);
    }
    model_.removeUnused(folded_);
  }

  Model& model_;
  int64_t max_growth_;
  std::vector<Node*> folded_;  ///< each after its inputs
  std::unordered_map<const Node*, Operator> operators_;
  std::vector<std::unique_ptr<char[]>> buffers_;
  std::deque<MXTensor> arrays_;
};

}  // namespace

void foldConstants(Model* model, int64_t max_growth) { Folding(model, max_growth).run(); }

bool compute(const Node& node, const std::vector<const MXTensor*>& inputs,
             const rules::Allocate& allocate) {
  if (!isOwnDomain(node) || !isFree(node) || node.num_outputs > 1) return false;
  const std::optional<Settings> settings = settingsOf(node);
  return settings && rules::foldNatively(node.op, *settings, inputs, allocate);
}

}  // namespace passlib::moves
