#include "facts/work.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "graph/attributes.h"
#include "onnx/parts/tensor.h"

namespace passlib::facts {

namespace {

using Names = std::unordered_set<std::string_view>;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

/// A product of numbers that are at least 0.
int64_t product(int64_t left, int64_t right) {
  return left != 0 && right > kMost / left ? kMost : left * right;
}

int64_t sum(int64_t left, int64_t right) { return right > kMost - left ? kMost : left + right; }

/// Operators that return a view.
const Names kViews = {"Reshape",     "reshape", "Squeeze",  "squeeze",  "Unsqueeze", "expand_dims",
                      "Flatten",     "flatten", "Identity", "identity", "_copy",     "Shape",
                      "shape_array", "Size",    "Dropout",  "BlockGrad"};

/// Operators that read only as many elements as they write.
const Names kParts = {"Gather", "Slice", "take", "slice", "slice_axis", "Embedding", "Split"};

/// Other operators without arithmetic.
const Names kMoves = {"Transpose",       "transpose", "Concat", "concat", "Expand",
                      "broadcast_to",    "Tile",      "tile",   "Pad",    "pad",
                      "ConstantOfShape", "Range"};

/// Layers by operator, with the number of the input that has the weights.
using Layers = std::unordered_map<std::string_view, std::size_t>;
const Layers kConvolutions = {{"Conv", 1},        {"ConvInteger", 1}, {"QLinearConv", 3},
                              {"Convolution", 1}, {"conv2d", 1},      {"Convolution2D", 1}};
const Layers kTransposed = {{"ConvTranspose", 1},
                            {"Deconvolution", 1},
                            {"conv2d_transpose", 1},
                            {"TransposedConvolution2D", 1}};
const Names kDense = {"FullyConnected", "dense", "InnerProduct"};
const Names kProducts = {"MatMul", "MatMulInteger", "dot", "batch_dot"};
const Names kRecurrent = {"LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"};

bool isView(const Node& node) { return kViews.count(node.op) != 0; }

int64_t numberIn(const Node& node, const char* key, int64_t preset) {
  const std::string text(attributeOf(node, key));
  return text.empty() ? preset : std::strtoll(text.c_str(), nullptr, 10);
}

/// A node with the sizes of its values.
class Sized {
 public:
  Sized(const Node& node, const std::function<ValueSize(const NodeEntry&)>& size_of) : node_(node) {
    for (const NodeEntry& input : node.inputs) inputs_.push_back(size_of(input));
    const int count = std::max(node.num_outputs, 1);
    for (int i = 0; i < count; ++i) {
      outputs_.push_back(size_of(NodeEntry{const_cast<Node*>(&node), i}));
    }
  }

  int64_t written() const { return isView(node_) ? 0 : bytesOf(outputs_); }

  int64_t read() const {
    if (isView(node_)) return 0;
    return kParts.count(node_.op) != 0 ? written() : bytesOf(inputs_);
  }

  int64_t flops() const {
    const std::string& op = node_.op;
    if (isView(node_) || kParts.count(op) != 0 || kMoves.count(op) != 0) return 0;
    if (const auto layer = kConvolutions.find(op); layer != kConvolutions.end()) {
      return doubled(result(), rows(layer->second));
    }
    if (const auto layer = kTransposed.find(op); layer != kTransposed.end()) {
      return doubled(input(0), rows(layer->second));
    }
    if (kDense.count(op) != 0) return doubled(result(), rows(1));
    if (kProducts.count(op) != 0) return doubled(result(), axis(0, -1));
    if (op == "Gemm") {
      return doubled(result(), axis(0, attributeOf(node_, "transA") == "1" ? 0 : 1));
    }
    if (op == "Einsum") return doubled(1, labels());
    if (op == "Attention" && inputs_.size() > 2) return attention();
    if (kRecurrent.count(op) != 0) {
      const int64_t weights = sum(input(1), inputs_.size() > 2 ? input(2) : 0);
      return doubled(product(axis(0, 0), axis(0, 1)), weights);
    }
    if (op.compare(0, 6, "Reduce") == 0) return input(0);
    return product(result(), window());
  }

 private:
  static int64_t doubled(int64_t left, int64_t right) { return product(2, product(left, right)); }

  static int64_t bytesOf(const std::vector<ValueSize>& values) {
    int64_t all = 0;
    for (const ValueSize& each : values) all = sum(all, each.bytes());
    return all;
  }

  int64_t result() const { return outputs_.front().elements(); }
  int64_t input(std::size_t number) const {
    return number < inputs_.size() ? inputs_[number].elements() : 1;
  }
  /// The size of an axis, counted from the end if it is negative; 1 if there is none.
  int64_t axis(std::size_t number, int64_t place) const {
    if (number >= inputs_.size() || !inputs_[number].dims) return 1;
    const std::vector<int64_t>& dims = *inputs_[number].dims;
    const auto rank = static_cast<int64_t>(dims.size());
    if (place < -rank || place >= rank) return 1;
    return dims[static_cast<std::size_t>(place < 0 ? place + rank : place)];
  }
  /// The elements of an input for each index of its first axis.
  int64_t rows(std::size_t number) const {
    return input(number) / std::max<int64_t>(axis(number, 0), 1);
  }

  /// The product of the sizes of all indices of an Einsum.
  int64_t labels() const {
    const std::string equation(attributeOf(node_, "equation"));
    const std::string terms = equation.substr(0, equation.find("->"));
    std::map<char, int64_t> sizes;
    std::size_t number = 0;
    int64_t place = 0;
    for (const char label : terms) {
      if (label == ',') {
        ++number;
        place = 0;
      } else if (label != ' ' && label != '.') {
        int64_t& size = sizes.try_emplace(label, 1).first->second;
        size = std::max(size, axis(number, place++));
      }
    }
    int64_t all = 1;
    for (const auto& [label, size] : sizes) all = product(all, size);
    return all;
  }

  /// The operations of the two products of ONNX's Attention.
  int64_t attention() const {
    const int64_t keys = axis(1, -2);
    const int64_t rows = input(0) / std::max<int64_t>(axis(0, -1), 1);
    const auto has_heads = [this](std::size_t number) {
      return inputs_[number].dims && inputs_[number].dims->size() == 4;
    };
    if (has_heads(1) && has_heads(2)) {
      return doubled(product(rows, keys), sum(axis(0, -1), axis(2, -1)));
    }
    // Three-dimensional inputs have all heads of a row behind each other.
    const int64_t count = std::max<int64_t>(numberIn(node_, "q_num_heads", 1), 1);
    const int64_t values = axis(2, -1) / std::max<int64_t>(numberIn(node_, "kv_num_heads", 1), 1);
    return doubled(product(rows, keys), sum(axis(0, -1), product(count, values)));
  }

  /// The number of elements in the window of a pooling; 1 for other operators.
  int64_t window() const {
    std::string_view text = attributeOf(node_, "kernel_shape");
    if (text.empty()) text = attributeOf(node_, "kernel");
    if (node_.op.find("ool") == std::string::npos) return 1;
    int64_t all = 1;
    const std::string numbers(text);
    for (const char* cursor = numbers.c_str(); *cursor != '\0';) {
      char* end = nullptr;
      const int64_t size = std::strtoll(cursor, &end, 10);
      if (end == cursor) {
        ++cursor;
        continue;
      }
      if (size > 0) all = product(all, size);
      cursor = end;
    }
    return all;
  }

  const Node& node_;
  std::vector<ValueSize> inputs_;
  std::vector<ValueSize> outputs_;
};

/// Notes in `works` what is alive while each node runs. `made`: bytes of the results of each node.
void followResults(const Graph& graph, std::vector<int64_t> made,
                   const std::function<bool(const Node&)>& is_weight, std::vector<Work>* works) {
  const std::size_t count = graph.nodes.size();
  std::unordered_map<const Node*, std::size_t> owners;  // of the memory of its results
  std::vector<std::size_t> last(count, count + 1);      // the last reader; count + 1 for none
  int64_t now = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Node& node = *graph.nodes[i];
    const bool shares = isView(node) && !node.inputs.empty();
    owners[&node] = shares ? owners.at(node.inputs[0].node) : i;
    for (const NodeEntry& input : node.inputs) last[owners.at(input.node)] = i;
    if (shares || (node.op == "null" && is_weight(node))) made[i] = 0;
    if (node.op == "null") now = sum(now, made[i]);  // inputs are there from the beginning
  }
  for (const NodeEntry& output : graph.outputs) last[owners.at(output.node)] = count;
  std::vector<std::vector<std::size_t>> ending(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (last[i] < count) ending[last[i]].push_back(i);
    if (last[i] > count) ending[i].push_back(i);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (graph.nodes[i]->op != "null") now = sum(now, made[i]);
    (*works)[i].live = now;
    for (const std::size_t each : ending[i]) now = std::max<int64_t>(now - made[each], 0);
  }
}

}  // namespace

int64_t ValueSize::elements() const {
  int64_t all = 1;
  if (!dims) return all;
  for (const int64_t size : *dims) all = product(all, std::max<int64_t>(size, 0));
  return all;
}

int64_t ValueSize::bytes() const { return dims ? product(elements(), item) : 0; }

std::vector<Work> worksOf(const Graph& graph,
                          const std::function<ValueSize(const NodeEntry&)>& sizeOf,
                          const std::function<bool(const Node&)>& isWeight) {
  std::vector<Work> works(graph.nodes.size());
  std::vector<int64_t> made(graph.nodes.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = *graph.nodes[i];
    const int count = std::max(node.num_outputs, 1);
    for (int output = 0; output < count; ++output) {
      made[i] = sum(made[i], sizeOf(NodeEntry{const_cast<Node*>(&node), output}).bytes());
    }
    if (node.op == "null") continue;
    const Sized sized(node, sizeOf);
    Work& work = works[i];
    work.flops = sized.flops();
    work.read = sized.read();
    work.written = sized.written();
    std::unordered_set<const Node*> held;
    for (const NodeEntry& input : node.inputs) {
      const Node* const from = input.node;
      if (from->op != "null" || !isWeight(*from) || !held.insert(from).second) continue;
      work.weights = sum(work.weights, sizeOf(NodeEntry{input.node, 0}).bytes());
    }
  }
  followResults(graph, std::move(made), isWeight, &works);
  return works;
}

std::vector<Work> worksOf(const FileFacts& known,
                          const std::function<bool(const Node&)>& isWeight) {
  const auto size_of = [&known](const NodeEntry& entry) {
    const Fact& fact = known.facts().of(entry);
    ValueSize size;
    const onnx::ElementType* const type = onnx::elementType(fact.type);
    if (type != nullptr) size.item = static_cast<int64_t>(type->size);
    if (!fact.shape || !fact.isTensor() || !fact.present) return size;
    size.dims.emplace();
    for (const Dim& dim : *fact.shape) size.dims->push_back(dim.isNumber() ? dim.number() : 1);
    return size;
  };
  return worksOf(known.graph(), size_of, isWeight);
}

TotalWork totalOf(const Graph& graph, const std::vector<Work>& works) {
  TotalWork total;
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (graph.nodes[i]->op == "null") continue;
    total.flops = sum(total.flops, works[i].flops);
    total.traffic = sum(total.traffic, sum(works[i].read, works[i].written));
  }
  return total;
}

}  // namespace passlib::facts
