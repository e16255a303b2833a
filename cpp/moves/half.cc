#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "facts/node_view.h"
#include "graph/attributes.h"
#include "graph/name_source.h"
#include "moves/half_types.h"
#include "moves/moves.h"
#include "moves/report.h"
#include "onnx/text/strings.h"
#include "rules/known.h"

namespace passlib::moves {
namespace {

using Ops = std::unordered_set<std::string_view>;

/// Operators that half precision is for, whatever casts they need.
const Ops kHeavy = {"Attention", "Conv", "ConvTranspose", "DeformConv", "Einsum",
                    "GRU",       "Gemm", "LSTM",          "MatMul",     "RNN"};
/// Operators with a constant of so many elements are in half precision as well.
constexpr std::size_t kLarge = 1024;
/// Operators whose results, or their bits, have the type of an attribute.
const Ops kByAttribute = {"Bernoulli",    "BitCast",          "EyeLike",       "Multinomial",
                          "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"};
/// Operators that ONNX Runtime does not load in half precision: the body has float32 constants.
const Ops kRefused = {"MeanVarianceNormalization"};
/// Operators whose reductions ONNX Runtime's CPU kernels have in wider types only.
const Ops kReducing = {"ScatterElements", "ScatterND"};
/// Operators whose rounding grows with the length of an axis.
const Ops kSumming = {"CumProd", "CumSum"};
/// Operators that read either type alike.
const Ops kAnyType = {"Cast", "IsInf", "IsNaN", "Shape", "Size"};
const Ops kBounds = {"Clip", "Max", "Min"};
const Ops kMasks = {"Add", "Mul", "Pad", "Sub", "Where"};
/// A summand, or another result of a choice, beyond this one stands for infinity.
constexpr double kInfinite = 1e6;
/// The domain of operators that only the body of a function has, while it is changed.
constexpr std::string_view kReferring = "referring";
/// The value of ConstantOfShape where none is stated.
constexpr const char* kZero = R"({"shape": [1], "data": [0.0], "dtype": ")";

/// Before the element type of a tensor, as passlib writes it.
constexpr std::string_view kTypeKey = "\"dtype\":";

struct Operation;

/// A graph, and where it is nested.
struct Scope {
  Graph* graph;
  Scope* parent;
  Node* owner;
};

/// A value as its producer, or the main graph, holds it: captured ones are the same source.
struct Source {
  NodeEntry value;
  Scope* scope;
  Operation* producer;
  std::optional<NestedElements> elements{};  ///< of a constant in float32, of the main graph too
  std::size_t count = 0;                     ///< of elements
  /// Computed from integers and constants alone, such as positions and sizes.
  bool is_counted = false;
  /// Computed from truth values and constants alone, such as masks.
  bool is_flag = false;
  bool fixed_half = false;
  bool follows = false;             ///< half if the producer is
  bool is_used = false;             ///< of a result
  bool is_replaced = false;         ///< a user has other elements instead
  std::optional<double> extreme{};  ///< of a constant: see extremeOf
  std::optional<float> least{};     ///< of a constant: see leastOf
  /// Operators that read one of the types only, and null for each output of a graph.
  std::vector<Operation*> users{};
  std::size_t half_users = 0;  ///< how many of them read half precision
  std::size_t group = 0;       ///< the last one whose casts were counted

  bool isConstant() const { return elements.has_value(); }
  bool isHalf() const;
  bool isReadAsHalf() const { return half_users > 0; }
  bool isReadAsFloat() const { return users.size() > half_users; }
  /// The number of casts that the value needs.
  std::size_t casts() const {
    if (isConstant()) return 0;
    return (isHalf() ? isReadAsFloat() : isReadAsHalf()) ? 1 : 0;
  }
};

/// The elements that an operator gets in place of those of a constant.
enum class Instead { kClamped, kLeast };

using Slots = std::vector<std::pair<std::size_t, Source*>>;

/// A node, and what of it would be in half precision.
struct Operation {
  Node* node;
  Scope* scope;
  std::string_view op;  ///< that of ONNX's own domain, or empty
  Slots half_inputs{};
  Slots float_inputs{};
  std::vector<Source*> results{};
  bool has_half_outputs = false;
  bool is_half = false;
  bool is_heavy = false;  ///< half precision pays for it alone
  bool reads_small = false;
  std::size_t group = 0;
  std::map<std::size_t, Instead> instead{};  ///< by input

  /// Chooses the type that the node computes in.
  void choose(bool half) {
    if (is_half == half) return;
    is_half = half;
    for (const auto& [slot, source] : half_inputs) {
      if (half) {
        ++source->half_users;
      } else {
        --source->half_users;
      }
    }
  }
  /// Whether the node is in half precision, but may be in float32 to spare casts.
  bool isLight() const { return is_half && !is_heavy && instead.empty(); }
};

bool Source::isHalf() const {
  return producer == nullptr ? fixed_half : producer->is_half && follows;
}

float floatAt(const char* data, std::size_t pos) {
  float value = 0;
  std::memcpy(&value, data + pos * sizeof(value), sizeof(value));
  return value;
}

/// A letter of halfTypes as a bit of a set.
uint32_t bitOf(char letter) {
  return letter == kNoLetter ? 0 : uint32_t{1} << static_cast<unsigned>(letter - 'a');
}

class Conversion {
 public:
  Conversion(Model* model, const Options& options)
      : model_(*model),
        options_(options),
        half_(options.dtype == "bfloat16" ? facts::kBfloat16 : facts::kFloat16),
        half_name_(half_ == facts::kFloat16 ? "float16" : "bfloat16"),
        largest_(half_ == facts::kFloat16 ? 65504.0F : 3.3895313892515355e38F),
        smallest_(std::ldexp(1.0F, half_ == facts::kFloat16 ? -24 : -133)),
        keep_ops_(options.keep_ops.begin(), options.keep_ops.end()),
        keep_nodes_(options.keep_nodes.begin(), options.keep_nodes.end()) {}

  /// Chooses the operators, then changes the graph.
  void run() {
    scopes_.push_back({model_.graph(), nullptr, nullptr});
    main_ = &scopes_.front();
    read();
    for (Operation& each : operations_) each.choose(canBeHalf(&each));
    spareCasts();
    write();
    report();
  }

 private:
  // Reading.

  /// Reads all nodes, those of nested graphs at the place of the node that has them.
  void read() {
    struct Walk {
      Scope* scope;
      std::vector<Node*> nodes;
      std::size_t next;
    };
    std::vector<Walk> pending;
    pending.push_back({main_, sortedIn(main_->graph), 0});
    while (!pending.empty()) {
      Walk& walk = pending.back();
      Scope* const scope = walk.scope;
      if (walk.next == walk.nodes.size()) {
        pending.pop_back();
        readOutputs(scope);
        continue;
      }
      Node* const node = walk.nodes[walk.next++];
      if (isVariable(*node)) {
        readVariable(scope, node);
        continue;
      }
      readOperator(scope, node);
      for (Graph* nested : node->subgraphs) {
        scopes_.push_back({nested, scope, node});
        pending.push_back({&scopes_.back(), sortedIn(nested), 0});
      }
    }
  }

  std::vector<Node*> sortedIn(Graph* graph) const {
    const std::vector<Node*>& nodes = model_.owner().nodes(graph);
    return mxnet::ext::sortNodes(nodes, NodeTable(nodes));
  }

  void note(const NodeEntry& value, Source* source) {
    if (value.entry == 0) first_[value.node] = values_.size();
    values_.push_back({value.node, source});
    names_.use(value.node->name);
  }

  /// The source of a value; null for those that were not there at first.
  Source* sourceOf(const NodeEntry& value) const {
    const auto first = first_.find(value.node);
    if (first == first_.end()) return nullptr;
    const std::size_t place = first->second + static_cast<std::size_t>(value.entry);
    return place < values_.size() && values_[place].first == value.node ? values_[place].second
                                                                        : nullptr;
  }

  /// The element type of a value, by ONNX's number; 0 if arrays have none like it.
  int typeOf(const NodeEntry& value) {
    const int type = model_.type(value);
    return rules::arrayType(type) == mxnet::ext::kUNSET ? 0 : type;
  }

  bool isFloat(const NodeEntry& value) {
    return !isAbsent(*value.node) && typeOf(value) == facts::kFloat;
  }

  void readVariable(Scope* scope, Node* node) {
    const NodeEntry value(node, 0);
    if (isAbsent(*node)) return;
    if (scope->owner != nullptr && attributeOf(*node, "__outer__").data() != nullptr) {
      const NodeEntry* const outer = outerValue(*node, *scope->owner);
      Source* const source = outer == nullptr ? nullptr : sourceOf(*outer);
      if (source == nullptr) return;
      note(value, source);
      captured_.push_back({scope, source, value});
      return;
    }
    sources_.push_back({value, scope, nullptr});
    Source& source = sources_.back();
    note(value, &source);
    if (typeOf(value) != facts::kFloat) return;
    if (scope != main_) {
      source.elements = model_.nestedElements(*node);
    } else if (const MXTensor* const array = model_.array(value)) {
      source.elements =
          NestedElements{facts::kFloat, array->shape, {}, static_cast<char*>(array->data_ptr)};
    } else if (!isConstant(*node) && attributeOf(*node, "__default__").data() == nullptr) {
      source.fixed_half = !options_.keep_io;
    }
    if (source.elements && source.elements->type != facts::kFloat) source.elements.reset();
    if (!source.elements) return;
    source.count = 1;
    for (const int64_t size : source.elements->dims) source.count *= static_cast<std::size_t>(size);
  }

  void readOperator(Scope* scope, Node* node) {
    const std::string_view op = isOwnDomain(*node) ? std::string_view(node->op) : "";
    operations_.push_back({node, scope, op});
    Operation& made = operations_.back();
    const int count = model_.owner().knownOutputs(*scope->graph, node);
    for (int i = 0; i < count; ++i) {
      const NodeEntry value(node, i);
      sources_.push_back({value, scope, &made});
      note(value, &sources_.back());
      made.results.push_back(&sources_.back());
    }
    noteUsed(made);
    const auto inputs = static_cast<int64_t>(node->inputs.size());
    const int64_t captured = integerOf(*node, "__captured_inputs__", 0).value_or(0);
    const auto own = static_cast<std::size_t>(std::clamp<int64_t>(inputs - captured, 0, inputs));
    Slots floats;
    for (std::size_t slot = 0; slot < own; ++slot) {
      Source* const source = isFloat(node->inputs[slot]) ? sourceOf(node->inputs[slot]) : nullptr;
      if (source != nullptr) floats.emplace_back(slot, source);
    }
    followIntegers(&made, floats);
    const std::optional<std::string_view> letters = lettersOf(made);
    const std::string_view formal = letters ? letters->substr(0, letters->find('>')) : "";
    const uint32_t flips = letters ? halfLetters(&made, floats, *letters) : 0;
    for (const auto& [slot, source] : floats) {
      const bool is_half = (bitOf(letterAt(formal, slot)) & flips) != 0;
      if (is_half && kAnyType.count(op) != 0) continue;
      (is_half ? made.half_inputs : made.float_inputs).emplace_back(slot, source);
      source->users.push_back(&made);
    }
    made.is_heavy = kHeavy.count(op) != 0 ||
                    std::any_of(made.half_inputs.begin(), made.half_inputs.end(),
                                [](const auto& each) { return each.second->count >= kLarge; });
  }

  /// Notes results that are computed from integers, and from truth values.
  void followIntegers(Operation* made, const Slots& floats) {
    bool is_counted = false;
    bool is_flag = false;
    if (made->op == "Cast") {
      const int type = made->node->inputs.empty() ? 0 : typeOf(made->node->inputs[0]);
      is_counted = rules::isWhole(type) && type != facts::kInt8 && type != facts::kUint8;
      is_flag = type == facts::kBool;
    } else if (made->op == "Range") {
      is_counted = true;
    } else if (made->node->subgraphs.empty()) {
      bool any = false;
      bool all = true;
      for (const auto& [slot, source] : floats) {
        if (source->isConstant()) continue;
        any = true;
        all = all && (source->is_counted || source->is_flag);
        is_counted = is_counted || source->is_counted;
      }
      is_counted = is_counted && all;
      is_flag = any && all && !is_counted;
    }
    for (Source* each : made->results) {
      each->is_counted = is_counted;
      each->is_flag = is_flag;
    }
  }

  std::optional<std::string_view> lettersOf(const Operation& made) const {
    return made.op.empty() ? std::nullopt : halfTypes(made.op, model_.opset(), half_);
  }

  /// Returns the letters of the inputs that are half if the node is, by ONNX's definition, as bits,
  /// and notes such outputs.
  uint32_t halfLetters(Operation* made, const Slots& floats, std::string_view letters) {
    const Node& node = *made->node;
    if (!node.subgraphs.empty() || kByAttribute.count(made->op) != 0) return 0;
    const std::size_t end = std::min(letters.find('>'), letters.size());
    const std::string_view inputs = letters.substr(0, end);
    const std::string_view outputs = letters.substr(std::min(end + 1, letters.size()));
    uint32_t flips = 0;
    uint32_t doubtful = made->op == "Resize" ? bitOf('b') : 0;  // coordinates
    auto next = floats.begin();
    for (std::size_t slot = 0; slot < node.inputs.size(); ++slot) {
      const uint32_t bit = bitOf(letterAt(inputs, slot));
      if (next != floats.end() && next->first == slot) {
        flips |= bit;
        ++next;
      } else if (!isAbsent(*node.inputs[slot].node)) {
        doubtful |= bit;
      }
    }
    flips &= ~doubtful;
    std::vector<Source*> results;
    for (std::size_t place = 0; place < made->results.size(); ++place) {
      Source* const result = made->results[place];
      const bool is_used = result->is_used;
      if (is_used && typeOf(result->value) == 0) return 0;  // of unknown type, or a sequence
      char letter = letterAt(outputs, place);
      // The type of an attribute, or else of the scale.
      if (made->op == "DequantizeLinear" && letter == 'b' &&
          attributeOf(node, "output_dtype").data() == nullptr) {
        letter = 'a';
      }
      if ((bitOf(letter) & flips) != 0 && is_used) results.push_back(result);
    }
    const bool is_cast = made->op == "Cast";
    if ((is_cast || made->op == "ConstantOfShape") && !made->results.empty() &&
        typeOf(made->results[0]->value) == facts::kFloat) {
      const int from = is_cast && !node.inputs.empty() ? typeOf(node.inputs[0]) : 0;
      if (is_cast && (from == 0 || from == facts::kFloat)) return 0;
      results.push_back(made->results[0]);
    }
    for (Source* each : results) each->follows = true;
    made->has_half_outputs = !results.empty();
    return flips;
  }

  /// Notes which results of an operator something uses.
  void noteUsed(const Operation& made) const {
    const Graph& graph = *made.scope->graph;
    for (Source* result : made.results) {
      result->is_used = model_.owner().isOutput(graph, result->value);
    }
    for (const NodeEntry& use : model_.owner().consumersOf(made.node)) {
      if (model_.isGone(use.node)) continue;
      const auto output =
          static_cast<std::size_t>(use.node->inputs[static_cast<std::size_t>(use.entry)].entry);
      if (output < made.results.size()) made.results[output]->is_used = true;
    }
  }

  void readOutputs(Scope* scope) {
    const bool is_half = scope == main_ && !options_.keep_io;
    const std::vector<NodeEntry>& outputs = scope->graph->outputs;
    for (std::size_t place = 0; place < outputs.size(); ++place) {
      Source* const source = sourceOf(outputs[place]);
      if (source == nullptr || !isFloat(outputs[place])) continue;
      source->users.push_back(nullptr);
      source->half_users += is_half ? 1 : 0;
      outputs_.push_back({scope, place, source, is_half});
    }
  }

  // The choice of operators.

  bool canBeHalf(Operation* made) {
    const Node& node = *made->node;
    if (made->half_inputs.empty() && !made->has_half_outputs) {
      return made->float_inputs.empty() ? false : keep(*made, whyTyped(*made));
    }
    if (keep_ops_.count(std::string(made->op)) != 0) return keep(*made, "listed in keep_ops");
    if (keep_nodes_.count(node.name) != 0) return keep(*made, "listed in keep_nodes");
    if (made->reads_small) return keep(*made, "reads numbers that are too small");
    if (!node.control_deps.empty()) return keep(*made, "has control dependencies");
    const std::string_view reduction = attributeOf(node, "reduction");
    const bool reduces = reduction.data() != nullptr && reduction != "none";
    if (kRefused.count(made->op) != 0 || (kReducing.count(made->op) != 0 && reduces))
      return keep(*made, "ONNX Runtime lacks it in half precision");
    if (kSumming.count(made->op) != 0)
      return keep(*made, "its rounding grows with the length of the axis");
    for (const auto& [slot, source] : made->half_inputs) {
      if (!fits(made, slot, source)) return false;
    }
    if (!attributeFits(*made)) return false;
    const bool is_counted =
        made->op != "Cast" && std::any_of(made->results.begin(), made->results.end(),
                                          [](const Source* each) { return each->is_counted; });
    if (is_counted && made->instead.empty())
      return keep(*made, "computes with integers, such as positions and sizes");
    return true;
  }

  std::string whyTyped(const Operation& made) {
    if (!made.node->subgraphs.empty()) return "its results and parameters keep their types";
    if (kByAttribute.count(made.op) != 0) return "the type of its results is an attribute";
    if (!lettersOf(made)) return "a local function, or not an operator of ONNX";
    for (const Source* each : made.results) {
      if (each->is_used && typeOf(each->value) == 0)
        return "its results are sequences, or of unknown type";
    }
    return "operator set " + std::to_string(model_.opset()) + " does not have it in " + half_name_;
  }

  bool keep(const Operation& made, const std::string& reason) {
    ++reasons_[{fullOperator(*made.node), reason}];
    return false;
  }

  /// Whether a constant fits; if not, the operator may have one of its own instead.
  bool fits(Operation* made, std::size_t slot, Source* source) {
    if (!source->isConstant() || source->count == 0) return true;
    if (!source->extreme) source->extreme = extremeOf(*source);
    const double extreme = *source->extreme;
    const std::string_view op = made->op;
    if (std::fabs(extreme) > static_cast<double>(largest_)) {
      bool stands =
          kBounds.count(op) != 0 || (kMasks.count(op) != 0 && std::fabs(extreme) >= kInfinite);
      if (op == "Mul") {
        for (const auto& [other, each] : made->half_inputs)
          stands = stands && (each == source || each->is_counted || each->is_flag);
      }
      if (!(options_.clamp && stands)) {
        say(*made, *source, shortNumber(extreme, 4) + " is out of range; stays in float32");
        return keep(*made, "a constant is out of range");
      }
      made->instead[slot] = Instead::kClamped;
      source->is_replaced = true;
      const auto kept = static_cast<double>(extreme < 0 ? -largest_ : largest_);
      say(*made, *source, shortNumber(extreme, 4) + " becomes " + shortNumber(kept, 5));
      return true;
    }
    const bool is_bound = isBound(*made, slot, *source);
    return (!is_bound && !isSensitive(op, slot)) || isNoZero(made, slot, source, is_bound);
  }

  /// The number of the largest magnitude; the largest finite one if it is infinite, and 0 if there
  /// is none.
  static double extremeOf(const Source& source) {
    const char* const data = source.elements->data;
    // Magnitudes have the order of their bits. Without a branch the loop takes many at once.
    int32_t most = 0;
    for (std::size_t pos = 0; pos < source.count; ++pos) {
      int32_t bits = 0;
      std::memcpy(&bits, data + pos * sizeof(bits), sizeof(bits));
      bits &= 0x7fffffff;
      most = std::max(most, bits > 0x7f800000 ? 0 : bits);
    }
    float size = 0;
    std::memcpy(&size, &most, sizeof(size));
    if (size <= 65504.0F) return static_cast<double>(size);  // the sign does not matter
    const bool is_finite = std::isfinite(size);
    float low = 0;
    float high = 0;
    float first = 0;
    for (std::size_t pos = 0; pos < source.count; ++pos) {
      const float value = floatAt(data, pos);
      if (!std::isfinite(value)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
      if (std::fabs(value) > std::fabs(first)) first = value;
    }
    return static_cast<double>(is_finite ? (high >= -low ? high : low) : first);
  }

  /// Whether a number keeps results from 0, as in `Log(Add(x, 1e-10))`.
  static bool isBound(const Operation& made, std::size_t slot, const Source& source) {
    const std::string_view op = made.op;
    return source.count == 1 && (op == "Add" || op == "Max" || (op == "Clip" && slot == 1));
  }

  /// Whether zeros, or few digits, in a constant change results beyond rounding.
  static bool isSensitive(std::string_view op, std::size_t slot) {
    if (op == "Div" || op == "DequantizeLinear" || op == "QuantizeLinear") return slot == 1;
    return op == "Mul" || (op == "BatchNormalization" && slot == 4);
  }

  /// The least magnitude of a number that is not 0; infinity if there is none.
  static float leastOf(const Source& source) {
    float found = std::numeric_limits<float>::infinity();
    for (std::size_t pos = 0; pos < source.count; ++pos) {
      const float size = std::fabs(floatAt(source.elements->data, pos));
      if (size > 0) found = std::min(found, size);
    }
    return found;
  }

  bool isNoZero(Operation* made, std::size_t slot, Source* source, bool is_bound) {
    const bool is_scale = made->op == "DequantizeLinear" || made->op == "QuantizeLinear";
    const float least = is_scale && half_ == facts::kFloat16 ? std::ldexp(1.0F, -14) : smallest_;
    if (!source->least) source->least = leastOf(*source);
    const float found = *source->least;
    if (!(found < least)) return true;
    bool has_logarithms = false;
    for (const Source* result : made->results) {
      for (Operation* user : result->users) {
        if (user == nullptr || user->op != "Log") continue;
        user->reads_small = true;
        has_logarithms = true;
      }
    }
    const std::string text = shortNumber(static_cast<double>(found), 4);
    if (is_bound && !has_logarithms) {
      made->instead[slot] = Instead::kLeast;
      source->is_replaced = true;
      say(*made, *source, text + " becomes " + shortNumber(static_cast<double>(smallest_), 4));
      return true;
    }
    if (source->count > 1 && made->op == "Mul") return true;
    say(*made, *source, text + " is too small; stays in float32");
    return keep(*made, "a constant is too small");
  }

  void say(const Operation& made, const Source& source, const std::string& text) {
    if (++constants_ > kMostLines) return;
    lines_.push_back("constant " + onnx::shown(source.value.node->name) + " of " +
                     std::string(made.op) + " " + onnx::shown(made.node->name) + ": " + text);
  }

  /// Whether the elements that ConstantOfShape has in an attribute fit.
  bool attributeFits(const Operation& made) const {
    if (made.op != "ConstantOfShape") return true;
    const std::string_view text = attributeOf(*made.node, "value");
    if (text.data() == nullptr) return true;
    const std::optional<facts::Fact> stated = facts::parseTensor(text);
    const bool has_type = text.find(kTypeKey) != std::string_view::npos;  // see withType
    if (!stated || stated->content == nullptr || !has_type) return false;
    const std::vector<double>& reals = stated->content->reals;
    return std::all_of(reals.begin(), reals.end(), [this](double each) {
      return std::fabs(each) <= static_cast<double>(largest_) || std::isinf(each);
    });
  }

  /// Leaves groups of light operators in float32 where that needs fewer casts.
  void spareCasts() {
    std::vector<std::vector<Operation*>> groups;
    for (Operation& start : operations_) {
      if (!start.isLight() || start.group != 0) continue;
      std::vector<Operation*>& group = groups.emplace_back();
      std::vector<Operation*> pending = {&start};
      const auto push = [&](Operation* near) {
        if (near == nullptr || !near->isLight() || near->group != 0) return;
        near->group = groups.size();
        pending.push_back(near);
      };
      start.group = groups.size();
      while (!pending.empty()) {
        Operation* const each = pending.back();
        pending.pop_back();
        group.push_back(each);
        for (const auto& [slot, source] : each->half_inputs) push(source->producer);
        for (const Source* source : each->results) {
          for (Operation* user : source->users) push(user);
        }
      }
    }
    for (const std::vector<Operation*>& group : groups) tryFloat(group);
    for (int round = 0; round < 2; ++round) {
      for (Operation& each : operations_) {
        if (each.isLight()) tryFloat({&each});
      }
    }
  }

  void tryFloat(const std::vector<Operation*>& group) {
    std::vector<const Source*> near;
    std::size_t before = 0;
    ++tried_;
    const auto count = [&](Source* source) {
      if (std::exchange(source->group, tried_) == tried_) return;
      before += source->casts();
      near.push_back(source);
    };
    for (const Operation* each : group) {
      for (const auto& [slot, source] : each->half_inputs) count(source);
      for (Source* source : each->results) count(source);
    }
    for (Operation* each : group) each->choose(false);
    std::size_t after = 0;
    for (const Source* source : near) after += source->casts();
    if (after < before) return;
    for (Operation* each : group) each->choose(true);
  }

  // The changes.

  void write() {
    for (Source& source : sources_) retype(&source);
    for (const auto& [scope, source, value] : captured_)
      local_[{scope, source, source->isHalf()}] = value;
    for (Operation& made : operations_) rewrite(&made);
    for (const Output& each : outputs_) {
      const NodeEntry value = as(each.scope, each.source, each.is_half);
      const NodeEntry& present = each.scope->graph->outputs[each.place];
      if (present.node == value.node && present.entry == value.entry) continue;
      std::vector<NodeEntry> values = each.scope->graph->outputs;
      values[each.place] = value;
      model_.owner().setOutputs(each.scope->graph, values);
    }
    joinCasts();
    removeUnused();
  }

  /// Converts an input, and a constant that is used in half precision only.
  void retype(Source* source) {
    Node* const node = source->value.node;
    if (!source->isConstant()) {
      if (!source->fixed_half) return;
      node->attrs["__dtype__"] = std::to_string(static_cast<int>(rules::arrayType(half_)));
      model_.owner().noteChange();
      return;
    }
    if (source->scope != main_ || source->isReadAsFloat() || source->users.empty()) return;
    if (source->is_replaced) return;
    setHalf(node, *source, std::nullopt);
    source->fixed_half = true;
  }

  /// Sets the array of a variable to the elements of a constant, or others instead of them.
  void setHalf(Node* node, const Source& source, std::optional<Instead> instead) {
    model_.allocate(node, source.elements->dims, rules::arrayType(half_));
    const char* const data = source.elements->data;
    if (!instead) return rules::roundToHalf(data, *node->tensor);
    std::vector<float> numbers(source.count);
    for (std::size_t pos = 0; pos < source.count; ++pos) {
      const float number = floatAt(data, pos);
      numbers[pos] = *instead == Instead::kLeast ? std::copysign(smallest_, number)
                     : std::isfinite(number)     ? std::clamp(number, -largest_, largest_)
                                                 : number;
    }
    rules::roundToHalf(reinterpret_cast<const char*>(numbers.data()), *node->tensor);
  }

  void rewrite(Operation* made) {
    Node* const node = made->node;
    std::vector<NodeEntry> inputs = node->inputs;
    for (const auto& [slot, source] : made->half_inputs) {
      const auto instead = made->instead.find(slot);
      inputs[slot] = made->is_half && instead != made->instead.end()
                         ? weight(made->scope, *source, instead->second)
                         : as(made->scope, source, made->is_half);
    }
    for (const auto& [slot, source] : made->float_inputs)
      inputs[slot] = as(made->scope, source, false);
    // New captured values may have joined the inputs meanwhile.
    inputs.insert(inputs.end(), node->inputs.begin() + static_cast<std::ptrdiff_t>(inputs.size()),
                  node->inputs.end());
    const bool is_same = std::equal(inputs.begin(), inputs.end(), node->inputs.begin(),
                                    [](const NodeEntry& left, const NodeEntry& right) {
                                      return left.node == right.node && left.entry == right.entry;
                                    });
    if (!is_same) model_.owner().setInputs(made->scope->graph, node, inputs);
    if (!made->is_half) return;
    if (made->op == "Cast" && made->has_half_outputs) {
      node->attrs["to"] = std::to_string(half_);
      model_.owner().noteChange();
    } else if (made->op == "ConstantOfShape") {
      const std::string stated(attributeOf(*node, "value"));
      node->attrs["value"] = stated.empty() ? kZero + half_name_ + "\"}" : withType(stated);
      model_.owner().noteChange();
    }
  }

  /// The text of a tensor with another element type.
  std::string withType(const std::string& text) const {
    const std::size_t from = text.find('"', text.find(kTypeKey) + kTypeKey.size()) + 1;
    return text.substr(0, from) + half_name_ + text.substr(text.find('"', from));
  }

  /// Returns a value in a graph, in float32 or half, which may need a cast or a capture.
  NodeEntry as(Scope* scope, Source* source, bool is_half) {
    std::vector<Scope*> steps;
    Scope* const home = source->isConstant() && is_half ? main_ : source->scope;
    auto known = local_.find({scope, source, is_half});
    while (known == local_.end()) {
      if (scope == home) {
        known = local_.insert({{scope, source, is_half}, own(source, is_half)}).first;
        break;
      }
      steps.push_back(scope);
      scope = outside(*scope);
      known = local_.find({scope, source, is_half});
    }
    NodeEntry value = known->second;
    for (auto inner = steps.rbegin(); inner != steps.rend(); ++inner) {
      value = capture(**inner, value);
      local_[{*inner, source, is_half}] = value;
    }
    return value;
  }

  static Scope* outside(const Scope& scope) {
    if (scope.parent == nullptr) throw std::logic_error("a value is used outside of its graph");
    return scope.parent;
  }

  /// Returns a value in the graph that has it.
  NodeEntry own(Source* source, bool is_half) {
    if (source->isHalf() == is_half) return source->value;
    if (source->isConstant()) return parameterOf(*source, std::nullopt);
    Node* const node = source->value.node;
    const std::string name = names_.fresh(node->name + "_" + (is_half ? half_name_ : "float32"));
    const bool is_cast = isOperator(*node, "Cast");
    ++casts_;
    Node* const made = model_.owner().addNode(source->scope->graph, "Cast", name,
                                              {is_cast ? node->inputs[0] : source->value}, 1);
    made->attrs["to"] = std::to_string(is_half ? half_ : facts::kFloat);
    return NodeEntry(made, 0);
  }

  NodeEntry parameterOf(const Source& source, std::optional<Instead> instead) {
    const std::string name = names_.fresh(source.value.node->name + "_" + half_name_);
    Node* const made = model_.owner().addNode(main_->graph, "null", name, {}, 0);
    setHalf(made, source, instead);
    return NodeEntry(made, 0);
  }

  /// Returns a constant of an operator alone, which is held by the main graph.
  NodeEntry weight(Scope* scope, const Source& source, Instead instead) {
    NodeEntry value = parameterOf(source, instead);
    std::vector<Scope*> around;
    for (; scope != main_; scope = outside(*scope)) around.push_back(scope);
    for (auto inner = around.rbegin(); inner != around.rend(); ++inner)
      value = capture(**inner, value);
    return value;
  }

  /// Makes a value of the graph around a nested graph known in it.
  NodeEntry capture(const Scope& scope, const NodeEntry& value) {
    return model_.capture(outside(scope)->graph, scope.owner, scope.graph, value,
                          names_.fresh(value.node->name));
  }

  /// Removes casts of the model between equal types.
  void joinCasts() {
    for (const Operation& made : operations_) {
      if (made.op != "Cast" || made.node->inputs.empty()) continue;
      const NodeEntry value = made.node->inputs[0];
      const NodeEntry result(made.node, 0);
      const Source* const source = sourceOf(value);
      const int before = source != nullptr && source->isHalf() ? half_ : typeOf(value);
      if (before == 0 || integerOf(*made.node, "to", 0) != before) continue;
      if (model_.owner().isOutput(*made.scope->graph, result)) continue;
      model_.owner().replace(made.scope->graph, result, value);
      model_.owner().remove(made.scope->graph, {made.node});
    }
  }

  void removeUnused() {
    for (const Source& source : sources_) {
      Node* const node = source.value.node;
      if (!source.isConstant() || model_.owner().isUsed(*source.scope->graph, node)) continue;
      if (source.scope == main_) {
        model_.removeUnused({node});
      } else {
        model_.owner().remove(source.scope->graph, {node});
      }
    }
  }

  // The report.

  void report() {
    std::size_t halves = 0;
    std::size_t total = 0;
    for (const Operation& each : operations_) {
      if (isMark(fullOperator(*each.node))) continue;
      halves += each.is_half ? 1 : 0;
      ++total;
    }
    print(std::to_string(halves) + " of " + std::to_string(total) + " operators in " + half_name_ +
          ", " + counted(casts_, "Cast") + " added");
    std::vector<std::pair<std::string, std::string>> kept;  // reasons, and operators
    for (const auto& [key, count] : reasons_) {
      const auto& [op, reason] = key;
      if (isMark(op)) continue;
      const std::string text = (count == 1 ? "" : std::to_string(count) + " ") + op;
      const auto same =
          std::find_if(kept.begin(), kept.end(),
                       [&reason = reason](const auto& each) { return each.first == reason; });
      if (same == kept.end()) {
        kept.emplace_back(reason, text);
      } else {
        same->second += ", " + text;
      }
    }
    for (const auto& [reason, ops] : kept) print("in float32: " + ops + ": " + reason);
    for (const std::string& line : lines_) print(line);
    if (constants_ > kMostLines) print(std::to_string(constants_ - kMostLines) + " more constants");
  }

  void print(const std::string& line) { model_.print("toHalf: " + line); }

  static bool isMark(const std::string& op) {
    // Underscores follow where a function has the domain, too.
    const std::size_t end = op.find_first_not_of('_', kReferring.size());
    return op.compare(0, kReferring.size(), kReferring) == 0 && end != std::string::npos &&
           op[end] == '.';
  }

  struct Captured {
    Scope* scope;
    Source* source;
    NodeEntry value;
  };
  struct Output {
    Scope* scope;
    std::size_t place;
    Source* source;
    bool is_half;
  };

  Model& model_;
  const Options& options_;
  facts::Type half_;
  std::string half_name_;
  float largest_;
  float smallest_;  ///< above 0
  std::unordered_set<std::string> keep_ops_;
  std::unordered_set<std::string> keep_nodes_;
  std::deque<Scope> scopes_;  ///< others point to members of these three
  std::deque<Source> sources_;
  std::deque<Operation> operations_;
  Scope* main_ = nullptr;
  std::vector<std::pair<const Node*, Source*>> values_;  ///< those of a node one after the other
  std::unordered_map<const Node*, std::size_t> first_;   ///< the place of its first one
  std::vector<Captured> captured_;
  std::vector<Output> outputs_;
  std::map<std::pair<std::string, std::string>, std::size_t> reasons_;  ///< by operator and reason
  std::vector<std::string> lines_;                                      ///< on constants
  std::size_t constants_ = 0;
  std::size_t tried_ = 0;
  NameSource names_;
  std::map<std::tuple<const Scope*, const Source*, bool>, NodeEntry> local_;
  std::size_t casts_ = 0;
};

}  // namespace

void toHalf(Model* model, const Options& options) { Conversion(model, options).run(); }

}  // namespace passlib::moves
