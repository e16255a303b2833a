#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "moves/moves.h"
#include "moves/slices.h"
#include "rules/known.h"

namespace passlib::moves {
namespace {

using facts::Dim;
using facts::Shape;

/// Ends from here on are the end of the axis.
constexpr int64_t kEnd = (int64_t{1} << 31) - 1;
/// No value has more channels.
constexpr int64_t kMostChannels = 1 << 20;

/// The Slices that a Concat joins, which together take every element of a value once.
struct Blocks {
  NodeEntry source;
  int64_t size = 0;      ///< the steps of the Slices
  int64_t channels = 0;  ///< of the source
  Integers places;       ///< of each input of the Concat, among those of SpaceToDepth
};

bool isCandidate(const Node& concat) {
  const std::size_t count = concat.inputs.size();
  return (count == 4 || count == 9 || count == 16) && isFree(concat) &&
         std::all_of(concat.inputs.begin(), concat.inputs.end(),
                     [](const NodeEntry& value) { return isOperator(*value.node, "Slice"); });
}

/// Returns what Slices of different axes take of the value before them, which `value` becomes.
Ranges takenOf(Model* model, NodeEntry* value) {
  Ranges taken;
  while (isFreeOperator(*value->node, "Slice")) {
    const std::optional<Ranges> part = rangesOf(model, *value->node);
    const auto is_taken = [&taken](const Range& range) {
      return rangeOf(&taken, range.axis) != nullptr;
    };
    if (!part || std::any_of(part->begin(), part->end(), is_taken)) break;
    taken.insert(taken.end(), part->begin(), part->end());
    *value = value->node->inputs[0];
  }
  const Shape shape = model->shape(*value).value_or(Shape());
  for (Range& range : taken) {
    const auto axis = static_cast<std::size_t>(range.axis);
    if (axis < shape.size() && shape[axis].is(range.end)) range.end = kEnd;
  }
  return taken;
}

std::optional<Blocks> blocksOf(Model* model, const Node& concat) {
  Blocks blocks;
  while (blocks.size * blocks.size < static_cast<int64_t>(concat.inputs.size())) ++blocks.size;
  for (const NodeEntry& input : concat.inputs) {
    NodeEntry source = input;
    Ranges taken = takenOf(model, &source);
    const Range* row = rangeOf(&taken, 2);
    const Range* column = rangeOf(&taken, 3);
    const auto is_whole = [&blocks](const Range& range) {
      return range.step == blocks.size && range.start >= 0 && range.start < blocks.size &&
             range.end >= kEnd;
    };
    if (taken.size() != 2 || row == nullptr || column == nullptr || !is_whole(*row) ||
        !is_whole(*column)) {
      return std::nullopt;
    }
    const bool is_first = blocks.places.empty();
    if (is_first) blocks.source = source;
    if (source.node != blocks.source.node || source.entry != blocks.source.entry)
      return std::nullopt;
    const int64_t place = row->start * blocks.size + column->start;
    if (std::find(blocks.places.begin(), blocks.places.end(), place) != blocks.places.end())
      return std::nullopt;
    blocks.places.push_back(place);
  }
  const std::optional<Shape> shape = model->shape(blocks.source);
  const std::optional<int64_t> axis = integerOf(concat, "axis", 0);
  if (!shape || shape->size() != 4 || !model->runs("SpaceToDepth", blocks.source)) {
    return std::nullopt;
  }
  const Dim& channels = (*shape)[1];
  if (!axis || (*axis != 1 && *axis != -3) || !channels.isNumber() || channels.number() < 0 ||
      channels.number() > kMostChannels) {
    return std::nullopt;
  }
  blocks.channels = channels.number();
  return blocks;
}

/// Puts the weights of the only user, a Conv of one group, in the order of the channels of
/// SpaceToDepth.
bool reorderWeights(Model* model, const NodeEntry& value, const Blocks& blocks) {
  const std::optional<NodeEntry> use = model->onlyUse(value);
  if (model->isOutput(value) || !use || use->entry != 0 || !isOperator(*use->node, "Conv") ||
      use->node->inputs.size() < 2 || integerOf(*use->node, "group", 1) != 1) {
    return false;
  }
  Node* conv = use->node;
  const NodeEntry old = conv->inputs[1];
  const MXTensor* weight = model->array(old);
  const std::size_t count = blocks.places.size();
  const std::size_t item = weight == nullptr ? 0 : rules::bytesOf(weight->dtype);
  if (item == 0 || weight->shape.size() < 2 ||
      weight->shape[1] != blocks.channels * static_cast<int64_t>(count)) {
    return false;
  }
  const NodeEntry made = model->addConstant(conv->name + "_weight", weight->shape, weight->dtype);
  const std::size_t bytes = static_cast<std::size_t>(weight->size()) * item;
  // A part is moved at once: the weights of an output for all channels at one place.
  const std::size_t rows = static_cast<std::size_t>(weight->shape[0]) * count;
  const std::size_t part = rows == 0 ? 0 : bytes / rows;
  const auto* from = static_cast<const char*>(weight->data_ptr);
  auto* to = static_cast<char*>(made.node->tensor->data_ptr);
  for (std::size_t row = 0; part != 0 && row < rows; ++row) {
    const auto place = static_cast<std::size_t>(blocks.places[row % count]);
    std::memcpy(to + (row - row % count + place) * part, from + row * part, part);
  }
  model->connect(made, conv, 1);
  model->removeUnused({old.node});
  return true;
}

void fuseBlocks(Model* model, Node* concat, const Blocks& blocks, bool reorder) {
  const NodeEntry result(concat, 0);
  NodeEntry made = model->add(concat->name + "_blocks", "SpaceToDepth", {blocks.source},
                              {{"blocksize", std::to_string(blocks.size)}});
  model->noteSame(made, result);
  const bool in_order = blocks.channels == 0 || isSorted(blocks.places);
  if (!in_order && !(reorder && reorderWeights(model, result, blocks))) {
    Integers order;
    for (const int64_t place : blocks.places) {
      for (int64_t channel = 0; channel < blocks.channels; ++channel)
        order.push_back(place * blocks.channels + channel);
    }
    const NodeEntry indices = model->addConstant(concat->name + "_order", order);
    made = model->addLike(result, "Gather", {made, indices}, {{"axis", "1"}});
  }
  model->replace(concat, made);
}

}  // namespace

void fuseSpaceToDepth(Model* model, bool reorder_weights) {
  if (model->opset() < 10) return;  // before, Slice has attributes
  for (Node* concat : model->sorted({"Concat"})) {
    if (model->isGone(concat) || !isCandidate(*concat)) continue;
    if (const std::optional<Blocks> blocks = blocksOf(model, *concat))
      fuseBlocks(model, concat, *blocks, reorder_weights);
  }
}

}  // namespace passlib::moves
