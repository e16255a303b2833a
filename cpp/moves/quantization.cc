#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "errors.h"
#include "graph/attributes.h"
#include "moves/moves.h"
#include "moves/report.h"
#include "moves/rounding.h"
#include "onnx/text/strings.h"
#include "rules/known.h"

namespace passlib::moves {
namespace {

/// Operators, and their inputs that may be weights in fewer bits; those that gain most first.
struct WeightSlots {
  std::string_view op;
  std::size_t most;  ///< the last of the inputs
  std::size_t least;
};
constexpr WeightSlots kSlots[] = {
    {"MatMul", 1, 0}, {"Gemm", 1, 0}, {"Gather", 0, 0}, {"Conv", 1, 1}};

/// Versions of ONNX's operators in which DequantizeLinear has an axis, and blocks and 4 bits.
constexpr int64_t kWithAxis = 13, kWithBlocks = 21;

/// The smallest block of MatMulNBits; all are powers of two.
constexpr int64_t kLeastBlock = 16;

/// The names that a line of the report shows.
constexpr std::size_t kMostNames = 3;

/// An operator that reads a weight.
struct User {
  Node* node;
  std::size_t slot;
  bool is_main;  ///< whether it is in the main graph
};

/// The number of an operator in kSlots; their number for others.
std::size_t numberOf(const Node& node) {
  const auto named = [&node](const WeightSlots& each) { return isOperator(node, each.op); };
  return static_cast<std::size_t>(std::find_if(std::begin(kSlots), std::end(kSlots), named) -
                                  std::begin(kSlots));
}

bool isWeight(const Node& node, std::size_t slot) {
  const std::size_t number = numberOf(node);
  return number < std::size(kSlots) && slot >= kSlots[number].least && slot <= kSlots[number].most;
}

/// The first names, and whether there are more.
std::string fewOf(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNames); ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  return text + (names.size() > kMostNames ? ", ..." : "");
}

int64_t productOf(const Integers& shape, std::size_t first, std::size_t last) {
  int64_t product = 1;
  for (std::size_t axis = first; axis < last; ++axis) product *= shape[axis];
  return product;
}

/// How the elements of a weight share scales.
struct Grouping {
  std::size_t axis;
  int64_t block;  ///< elements along the axis; 0 if those of all other axes share one
};

Lines linesOf(const Integers& shape, const Grouping& grouping) {
  const int64_t outer = productOf(shape, 0, grouping.axis);
  const int64_t length = shape[grouping.axis];
  const int64_t inner = productOf(shape, grouping.axis + 1, shape.size());
  if (grouping.block != 0) return {outer, length, inner, grouping.block};
  // The lines are the indices of the axis, which is the first one or the last one.
  return outer == 1 ? Lines{length, inner, 1, inner} : Lines{1, outer, length, outer};
}

class Quantization {
 public:
  Quantization(Model* model, const Options& options)
      : model_(*model),
        form_{options.bits == 4 ? 4 : 8, options.symmetric},
        block_(options.block),
        for_runtime_(options.target == "onnxruntime"),
        least_(std::max<int64_t>(options.least, 1)),
        keep_ops_(options.keep_ops.begin(), options.keep_ops.end()),
        keep_nodes_(options.keep_nodes.begin(), options.keep_nodes.end()) {}

  void run() {
    liftConstants(&model_, [this](Graph*, Node* constant) {
      const std::vector<NodeEntry> uses = model_.owner().usesOf(constant, 0);
      return std::any_of(uses.begin(), uses.end(), [](const NodeEntry& use) {
        return isWeight(*use.node, static_cast<std::size_t>(use.entry));
      });
    });
    const std::vector<Node*> nodes = model_.nodes();
    for (Node* node : nodes) {
      const MXTensor* const array = model_.array(NodeEntry(node, 0));
      if (array == nullptr || array->size() < least_) continue;
      const MXDType type = array->dtype;
      if (type == mxnet::ext::kFloat32 || type == mxnet::ext::kFloat16 ||
          type == mxnet::ext::kBfloat16) {
        quantize(node, *array);
      }
    }
    report();
  }

 private:
  // The choice of weights.

  void quantize(Node* weight, const MXTensor& array) {
    const std::vector<User> users = usersOf(weight);
    if (std::none_of(users.begin(), users.end(),
                     [](const User& each) { return isWeight(*each.node, each.slot); })) {
      return;
    }
    const std::string title = onnx::shown(weight->name) + " " + tupleOf(array.shape);
    if (const std::string reason = whyNot(weight, users); !reason.empty()) {
      return keep(title, reason);
    }
    const std::optional<Grouping> grouping = groupingOf(array.shape, users);
    if (!grouping) return keep(title, "has too few dimensions");
    const Lines lines = linesOf(array.shape, *grouping);
    const bool multiplies = std::all_of(users.begin(), users.end(), [&](const User& each) {
      return fitsOperator(array.shape, *grouping, lines, each);
    });
    const int64_t before = array.size() * static_cast<int64_t>(rules::bytesOf(array.dtype));
    const int64_t halves = halfBytes(lines, multiplies, array.dtype);
    if (halves >= 2 * before) return keep(title, "would not be smaller");
    std::optional<RoundedWeight> made = roundedWeight(array, lines, form_);
    if (!made) return keep(title, "has numbers that are not finite, or too large");
    std::vector<std::string> readers;
    for (const User& each : users) {
      std::string reader = each.node->op + " " + onnx::shown(each.node->name);
      if (std::find(readers.begin(), readers.end(), reader) != readers.end()) continue;
      readers.push_back(std::move(reader));
      if (readers.size() > kMostNames) break;
    }
    made_.emplace_back(made->relative_error, title + " of " + fewOf(readers) + ": largest error " +
                                                 shortNumber(made->largest_error, 3) +
                                                 ", relative " +
                                                 shortNumber(made->relative_error, 3));
    before_ += before;
    half_bytes_ += halves;
    if (multiplies) {
      multiply(weight, array, &*made, users);
    } else {
      dequantize(weight, array, *grouping, &*made);
    }
    model_.removeUnused({weight});
  }

  void keep(const std::string& title, const std::string& reason) {
    const auto found = std::find_if(kept_.begin(), kept_.end(),
                                    [&reason](const auto& each) { return each.first == reason; });
    std::vector<std::string>& titles =
        found == kept_.end() ? kept_.emplace_back(reason, std::vector<std::string>()).second
                             : found->second;
    titles.push_back(title);
  }

  /// The readers of a weight, in nested graphs too.
  std::vector<User> usersOf(Node* weight) {
    std::vector<User> users;
    std::vector<Node*> pending = {weight};
    while (!pending.empty()) {
      Node* const each = pending.back();
      pending.pop_back();
      for (const NodeEntry& use : model_.owner().usesOf(each, 0)) {
        const auto slot = static_cast<int64_t>(use.entry);
        const auto inputs = static_cast<int64_t>(use.node->inputs.size());
        if (slot < inputs - integerOf(*use.node, "__captured_inputs__", 0).value_or(0)) {
          users.push_back({use.node, static_cast<std::size_t>(slot), each == weight});
          continue;
        }
        for (Graph* nested : use.node->subgraphs) {
          for (Node* inner : model_.owner().nodes(nested)) {
            if (!isVariable(*inner)) continue;
            if (attributeOf(*inner, "__outer__") == std::to_string(slot)) pending.push_back(inner);
          }
        }
      }
    }
    return users;
  }

  std::string whyNot(Node* weight, const std::vector<User>& users) const {
    if (model_.isOutput(NodeEntry(weight, 0))) return "is an output";
    for (const User& each : users) {
      const std::string op = fullOperator(*each.node);
      if (keep_ops_.count(op) != 0) return "listed in keep_ops";
      if (keep_nodes_.count(each.node->name) != 0) return "listed in keep_nodes";
      if (!isWeight(*each.node, each.slot)) return "also read by " + op;
    }
    return "";
  }

  /// How scales are shared: by the operator that gains most, if there are several. Nothing if the
  /// weight lacks the axis.
  std::optional<Grouping> groupingOf(const Integers& shape, const std::vector<User>& users) const {
    const User& user =
        *std::min_element(users.begin(), users.end(), [](const User& one, const User& other) {
          return numberOf(*one.node) < numberOf(*other.node);
        });
    const std::optional<std::size_t> axis = axisOf(shape.size(), user);
    if (!axis) return std::nullopt;
    if (isOperator(*user.node, "Conv")) return Grouping{*axis, 0};
    if (block_ == 0 && shape.size() == 2) return Grouping{1 - *axis, 0};
    const int64_t size = shape[*axis];
    if (block_ == 0) return Grouping{*axis, size};
    if (for_runtime_ && block_ >= kLeastBlock) return Grouping{*axis, block_};
    return Grouping{*axis, std::min(block_, size)};
  }

  /// The summed axis; that of the output channels for Conv.
  static std::optional<std::size_t> axisOf(std::size_t rank, const User& user) {
    const Node& node = *user.node;
    std::size_t axis = rank - 1;
    if (isOperator(node, "Conv")) {
      axis = 0;
    } else if (isOperator(node, "Gemm")) {
      const char* const key = user.slot == 0 ? "transA" : "transB";
      const bool is_turned = integerOf(node, key, 0).value_or(0) != 0;
      axis = is_turned == (user.slot == 1) ? 1 : 0;
    } else if (isOperator(node, "MatMul") && user.slot == 1 && rank > 1) {
      axis = rank - 2;
    }
    return axis < rank ? std::optional(axis) : std::nullopt;
  }

  /// Twice the bytes of a rounded weight. MatMulNBits has complete blocks.
  int64_t halfBytes(const Lines& lines, bool multiplies, MXDType type) const {
    const int64_t element = form_.bits == 4 ? 1 : 2;
    const int64_t zeros = form_.symmetric ? 0 : lines.blocks();
    const int64_t elements = multiplies ? lines.blocks() * lines.block : lines.size();
    return (elements + zeros) * element +
           2 * lines.blocks() * static_cast<int64_t>(rules::bytesOf(type));
  }

  // The changes.

  /// Whether scales are for blocks: ONNX Runtime takes one element for the scale of all, and then
  /// refuses blocks.
  static bool hasBlocks(const Grouping& grouping, const Lines& lines) {
    return grouping.block != 0 && (grouping.block < lines.size() || lines.blocks() != 1);
  }

  /// Uses up the integers.
  void dequantize(Node* weight, const MXTensor& array, const Grouping& grouping,
                  RoundedWeight* rounded) {
    const RoundedWeight& made = *rounded;
    const bool has_blocks = hasBlocks(grouping, made.lines);
    requireSet(has_blocks);
    Integers shape = {made.lines.blocks()};
    if (has_blocks) {
      shape = array.shape;
      shape[grouping.axis] = made.lines.blocksOfLine();
    }
    // The blocks of a line are in its place.
    const Lines blocks{made.lines.outer, made.lines.blocksOfLine(), made.lines.inner, 1};
    const std::string name = weight->name;
    std::vector<NodeEntry> inputs = {
        addIntegers(name + "_quantized", array.shape, made.lines, made.integers.get())};
    rounded->integers.reset();
    inputs.push_back(addScales(name + "_scale", shape, array.dtype, blocks, made));
    if (!made.zeros.empty())
      inputs.push_back(addIntegers(name + "_zero_point", shape, blocks, made.zeros.data()));
    for (const NodeEntry& each : inputs) model_.handOver(each.node);
    Model::Attributes attributes = {{"axis", std::to_string(grouping.axis)}};
    if (has_blocks) attributes.emplace_back("block_size", std::to_string(grouping.block));
    const NodeEntry dequantized =
        model_.add(name + "_dequantized", "DequantizeLinear", inputs, attributes);
    model_.owner().replace(model_.graph(), NodeEntry(weight, 0), dequantized);
  }

  void requireSet(bool has_blocks) const {
    const int64_t opset = model_.opset();
    const int64_t version = has_blocks || form_.bits == 4 ? kWithBlocks : kWithAxis;
    if (opset >= version) return;
    const bool fits = form_.bits == 8 && opset >= kWithAxis;
    const std::string needed = std::to_string(version);
    throw UnsupportedError("operator set " + std::to_string(opset) +
                           " has no DequantizeLinear with " +
                           (has_blocks        ? "blocks"
                            : form_.bits == 4 ? "4 bits"
                                              : "an axis") +
                           "; raise it first, by opt --opset " + needed + " or Model.with_opset(" +
                           needed + ")" + (fits ? ", or use block=0" : ""));
  }

  /// Adds a weight of integers, which are in the order of lines.
  NodeEntry addIntegers(const std::string& wish, const Integers& shape, const Lines& lines,
                        const unsigned char* integers) {
    const NodeEntry made =
        form_.bits == 4
            ? model_.addSmallConstant(wish, shape, form_.symmetric ? "int4" : "uint4")
            : model_.addConstant(wish, shape,
                                 form_.symmetric ? mxnet::ext::kInt8 : mxnet::ext::kUint8);
    auto* const target = static_cast<unsigned char*>(made.node->tensor->data_ptr);
    copyInPlace(integers, lines, target);
    return made;
  }

  NodeEntry addScales(const std::string& wish, const Integers& shape, MXDType type,
                      const Lines& blocks, const RoundedWeight& weight) {
    const NodeEntry made = model_.addConstant(wish, shape, type);
    const MXTensor& array = *made.node->tensor;
    std::size_t pos = 0;
    for (int64_t o = 0; o < blocks.outer; ++o) {
      for (int64_t k = 0; k < blocks.length; ++k) {
        for (int64_t i = 0; i < blocks.inner; ++i) {
          const int64_t number = (o * blocks.inner + i) * blocks.length + k;
          rules::setElementAt(array, pos++,
                              static_cast<double>(weight.scales[static_cast<std::size_t>(number)]));
        }
      }
    }
    return made;
  }

  // MatMulNBits.

  /// Whether MatMulNBits computes what an operator does.
  bool fitsOperator(const Integers& shape, const Grouping& grouping, const Lines& lines,
                    const User& user) const {
    const int64_t block = grouping.block;
    return for_runtime_ && user.is_main && isOperator(*user.node, "MatMul") && user.slot == 1 &&
           shape.size() == 2 && block >= kLeastBlock && (block & (block - 1)) == 0 &&
           hasBlocks(grouping, lines);
  }

  /// Uses up the integers.
  void multiply(Node* weight, const MXTensor& array, RoundedWeight* rounded,
                const std::vector<User>& users) {
    const RoundedWeight& made = *rounded;
    const std::string name = weight->name;
    const int64_t rows = array.shape[0];
    const int64_t columns = array.shape[1];
    const int64_t count = made.lines.blocksOfLine();
    const int64_t block = made.lines.block;
    const Integers packed = {columns, count, block * form_.bits / 8};
    std::vector<NodeEntry> constants = {
        model_.addConstant(name + "_quantized", packed, mxnet::ext::kUint8)};
    pack(made.integers.get(), columns, rows, made.zeros.empty() ? 1 << (form_.bits - 1) : 0,
         packed[1] * packed[2], constants[0].node);
    rounded->integers.reset();
    const Lines blocks{columns, count, 1, 1};
    constants.push_back(addScales(name + "_scale", {columns, count}, array.dtype, blocks, made));
    if (!made.zeros.empty()) {
      const int64_t bytes = form_.bits == 8 ? count : (count + 1) / 2;
      constants.push_back(
          model_.addConstant(name + "_zero_point", {columns, bytes}, mxnet::ext::kUint8));
      pack(made.zeros.data(), columns, count, 0, bytes, constants.back().node);
    }
    for (const NodeEntry& each : constants) model_.handOver(each.node);
    const Model::Attributes attributes = {{"__domain__", "com.microsoft"},
                                          {"K", std::to_string(rows)},
                                          {"N", std::to_string(columns)},
                                          {"bits", std::to_string(form_.bits)},
                                          {"block_size", std::to_string(block)}};
    for (const User& each : users) {
      const std::string title = each.node->name;
      std::vector<NodeEntry> inputs = {each.node->inputs[0]};
      inputs.insert(inputs.end(), constants.begin(), constants.end());
      const NodeEntry made_by = model_.add(title, "MatMulNBits", inputs, attributes);
      model_.owner().replace(model_.graph(), NodeEntry(each.node, 0), made_by);
      model_.owner().remove(model_.graph(), {each.node});
      model_.owner().rename(model_.graph(), made_by.node, title);
    }
  }

  /// Writes rows of integers, and `offset` more than each, to a weight of bytes, which is zeroed:
  /// two of 4 bits in a byte, the first one in the lower half.
  void pack(const unsigned char* integers, int64_t rows, int64_t length, int offset, int64_t bytes,
            Node* constant) {
    auto* const data = static_cast<unsigned char*>(constant->tensor->data_ptr);
    for (int64_t row = 0; row < rows; ++row) {
      const unsigned char* const from = integers + row * length;
      unsigned char* const target = data + row * bytes;
      for (int64_t i = 0; i < length; ++i) {
        const unsigned number = static_cast<unsigned>(from[i]) + static_cast<unsigned>(offset);
        if (form_.bits == 8) {
          target[i] = static_cast<unsigned char>(number);
        } else {
          target[i / 2] =
              static_cast<unsigned char>(target[i / 2] | (number & 15U) << (i % 2 == 0 ? 0U : 4U));
        }
      }
    }
  }

  // The report.

  void print(const std::string& line) { model_.print("quantizeWeights: " + line); }

  void report() {
    if (!made_.empty() || !kept_.empty()) {
      print(counted(made_.size(), "weight") + " in " + std::to_string(form_.bits) +
            " bits: " + grouped(before_) + " bytes became " + grouped(half_bytes_ / 2));
    }
    std::stable_sort(made_.begin(), made_.end(),
                     [](const auto& one, const auto& other) { return one.first > other.first; });
    for (std::size_t i = 0; i < std::min(made_.size(), kMostLines); ++i) print(made_[i].second);
    if (made_.size() > kMostLines)
      print(std::to_string(made_.size() - kMostLines) + " more weights with smaller errors");
    for (const auto& [reason, titles] : kept_)
      print(counted(titles.size(), "weight") + " kept: " + fewOf(titles) + ": " + reason);
  }

  Model& model_;
  const IntegerForm form_;
  const int64_t block_;
  const bool for_runtime_;
  const int64_t least_;
  const std::unordered_set<std::string> keep_ops_;
  const std::unordered_set<std::string> keep_nodes_;
  int64_t before_ = 0;
  int64_t half_bytes_ = 0;
  std::vector<std::pair<double, std::string>> made_;  ///< relative errors, and lines
  /// Reasons, and the weights that they keep.
  std::vector<std::pair<std::string, std::vector<std::string>>> kept_;
};

}  // namespace

void quantizeWeights(Model* model, const Options& options) { Quantization(model, options).run(); }

}  // namespace passlib::moves
