#include "moves/slices.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "moves/moves.h"
#include "rules/known.h"

namespace passlib::moves {

using facts::Shape;

Range* rangeOf(Ranges* ranges, int64_t axis) {
  const auto found = std::find_if(ranges->begin(), ranges->end(),
                                  [axis](const Range& range) { return range.axis == axis; });
  return found == ranges->end() ? nullptr : &*found;
}

std::optional<Ranges> rangesOf(Model* model, const Node& node) {
  if (node.inputs.size() < 3) return std::nullopt;
  const std::optional<Shape> shape = model->shape(node.inputs[0]);
  const std::optional<Integers> starts = model->whole(node.inputs[1]);
  const std::optional<Integers> ends = model->whole(node.inputs[2]);
  if (!shape || !starts || !ends) return std::nullopt;
  std::optional<Integers> axes(std::in_place);
  std::optional<Integers> steps(Integers(starts->size(), 1));
  for (std::size_t axis = 0; axis < starts->size(); ++axis)
    axes->push_back(static_cast<int64_t>(axis));
  if (const NodeEntry* listed = given(node, 3)) axes = model->whole(*listed);
  if (const NodeEntry* listed = given(node, 4)) steps = model->whole(*listed);
  if (!axes || !steps || ends->size() != starts->size() || axes->size() != starts->size() ||
      steps->size() != starts->size()) {
    return std::nullopt;
  }
  const auto rank = static_cast<int64_t>(shape->size());
  Ranges ranges;
  for (std::size_t place = 0; place < axes->size(); ++place) {
    const int64_t stated = (*axes)[place];
    const int64_t axis = stated < 0 ? stated + rank : stated;
    if (axis < 0 || axis >= rank || rangeOf(&ranges, axis) != nullptr) return std::nullopt;
    ranges.push_back({axis, (*starts)[place], (*ends)[place], (*steps)[place]});
  }
  return ranges;
}

namespace {

/// Returns a sum of numbers that are at least 0; the largest number if that is less.
int64_t sumOf(int64_t one, int64_t other) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  return other > most - one ? most : one + other;
}

/// Returns what a Slice takes of what the Slice before it takes; nothing if one cannot take it.
std::optional<Ranges> rangesOfBoth(Model* model, const Node& node, const Node& before) {
  const std::optional<Ranges> outer = rangesOf(model, node);
  std::optional<Ranges> ranges = rangesOf(model, before);
  if (!outer || !ranges || (outer->empty() && ranges->empty())) return std::nullopt;
  for (const Range& range : *outer) {
    Range* inner = rangeOf(&*ranges, range.axis);
    if (inner == nullptr) {
      ranges->push_back(range);
      continue;
    }
    if (range.step != 1 || inner->step != 1 ||
        std::min({range.start, range.end, inner->start, inner->end}) < 0) {
      return std::nullopt;
    }
    inner->end = std::min(inner->end, sumOf(inner->start, range.end));
    inner->start = sumOf(inner->start, range.start);
  }
  return ranges;
}

void replaceBySlice(Model* model, Node* node, const NodeEntry& source, const Ranges& ranges) {
  std::vector<NodeEntry> inputs{source};
  const auto add = [&](const char* what, int64_t Range::* member) {
    Integers numbers;
    for (const Range& range : ranges) numbers.push_back(range.*member);
    inputs.push_back(model->addConstant(node->name + "_" + what, numbers));
  };
  add("starts", &Range::start);
  add("ends", &Range::end);
  add("axes", &Range::axis);
  if (std::any_of(ranges.begin(), ranges.end(), [](const Range& each) { return each.step != 1; }))
    add("steps", &Range::step);
  model->replace(node, model->addLike(NodeEntry(node, 0), "Slice", inputs));
}

/// Lets a Slice take what the Slice before it takes.
void mergeIntoOne(Model* model, Node* node) {
  const Node& before = *node->inputs[0].node;
  if (!isFreeOperator(before, "Slice")) return;
  if (const std::optional<Ranges> ranges = rangesOfBoth(model, *node, before))
    replaceBySlice(model, node, before.inputs[0], *ranges);
}

/// Replaces a Gather of one index whose axis an Unsqueeze adds again.
void keepAxis(Model* model, Node* node) {
  const Node& before = *node->inputs[0].node;
  if (!isFreeOperator(before, "Gather") || before.inputs.size() < 2) return;
  const NodeEntry source = before.inputs[0];
  const MXTensor* listed = model->array(before.inputs[1]);
  if (listed == nullptr || !listed->shape.empty() ||
      !rules::isWhole(rules::onnxType(listed->dtype))) {
    return;
  }
  const std::optional<Shape> shape = model->shape(source);
  if (!shape || shape->empty() || !model->shape(NodeEntry(node, 0))) return;
  const auto rank = static_cast<int64_t>(shape->size());
  const auto placed = [rank](int64_t axis) { return (axis % rank + rank) % rank; };
  const std::optional<int64_t> stated = integerOf(before, "axis", 0);
  if (!stated) return;
  const int64_t axis = placed(*stated);
  const facts::Dim& size = (*shape)[static_cast<std::size_t>(axis)];
  const int64_t index = rules::integerAt(*listed, 0);
  if (!size.isNumber() || index < -size.number() || index >= size.number()) return;
  // Where the sizes do not tell the axes apart, the axis that was added decides.
  const std::optional<Integers> axes = model->axes(*node);
  if (!axes || axes->size() != 1 || placed((*axes)[0]) != axis) return;
  const int64_t start = index < 0 ? index + size.number() : index;
  replaceBySlice(model, node, source, {{axis, start, start + 1, 1}});
}

/// A Slice of one axis from one place to another.
struct Part {
  int64_t first;
  int64_t last;
  Node* node;
};

/// The Slices of one axis of a value.
struct Cut {
  NodeEntry value;
  int64_t axis;
  int64_t size;
  std::vector<Part> parts;
};

std::vector<Cut> findCuts(Model* model) {
  std::vector<Cut> cuts;
  std::map<std::pair<std::pair<const Node*, int>, int64_t>, std::size_t> places;
  for (Node* node : model->sorted({"Slice"})) {
    if (!isFreeOperator(*node, "Slice")) continue;
    const std::optional<Ranges> ranges = rangesOf(model, *node);
    if (!ranges || ranges->size() != 1 || ranges->front().step != 1) continue;
    const Range& range = ranges->front();
    const NodeEntry& value = node->inputs[0];
    const std::optional<Shape> shape = model->shape(value);
    const facts::Dim& size = (*shape)[static_cast<std::size_t>(range.axis)];
    if (!size.isNumber()) continue;
    const auto within = [&size](int64_t place) {
      const int64_t counted = place < 0 ? place + size.number() : place;
      return std::min(std::max<int64_t>(counted, 0), size.number());
    };
    if (within(range.start) >= within(range.end)) continue;
    const auto [found, fresh] =
        places.try_emplace({{value.node, value.entry}, range.axis}, cuts.size());
    if (fresh) cuts.push_back({value, range.axis, size.number(), {}});
    cuts[found->second].parts.push_back({within(range.start), within(range.end), node});
  }
  return cuts;
}

/// Whether Slices are all that uses a Slice, and take the part themselves.
bool goesIntoSlices(Model* model, Node* node) {
  if (model->isOutput(NodeEntry(node, 0))) return false;
  const std::vector<NodeEntry> uses = model->owner().usesOf(node, 0);
  return std::all_of(uses.begin(), uses.end(), [&](const NodeEntry& use) {
    return isFreeOperator(*use.node, "Slice") && use.entry == 0 &&
           rangesOfBoth(model, *use.node, *node);
  });
}

void replaceBySplit(Model* model, const Cut& cut) {
  Integers sizes;
  for (const Part& part : cut.parts) sizes.push_back(part.last - part.first);
  const std::string wish = cut.parts.front().node->name + "_split";
  std::vector<NodeEntry> inputs{cut.value};
  Model::Attributes attributes{{"axis", std::to_string(cut.axis)}};
  if (model->opset() < 13) {
    attributes.emplace_back("split", textOf(sizes));
  } else {
    inputs.push_back(model->addConstant(wish + "_sizes", sizes));
  }
  NodeEntry made =
      model->add(wish, "Split", inputs, attributes, static_cast<int>(cut.parts.size()));
  for (const Part& part : cut.parts) {
    model->noteSame(made, NodeEntry(part.node, 0));
    model->replace(part.node, made);
    ++made.entry;
  }
}

/// Replaces Slices that together take all of a value by one Split.
void splitAll(Model* model) {
  std::vector<Cut> cuts = findCuts(model);
  // Parts of parts first: a Split takes the place of what they are parts of.
  for (auto cut = cuts.rbegin(); cut != cuts.rend(); ++cut) {
    std::vector<Part>& parts = cut->parts;
    std::stable_sort(parts.begin(), parts.end(), [](const Part& one, const Part& other) {
      return std::make_pair(one.first, one.last) < std::make_pair(other.first, other.last);
    });
    int64_t edge = 0;
    const bool joined = std::all_of(parts.begin(), parts.end(), [&](const Part& part) {
      return part.first == std::exchange(edge, part.last) && !model->isGone(part.node);
    });
    if (parts.size() < 2 || !joined || edge != cut->size) continue;
    // Where all of them go, a Split would be one more.
    const auto goes = [&](const Part& part) { return goesIntoSlices(model, part.node); };
    if (!std::all_of(parts.begin(), parts.end(), goes)) replaceBySplit(model, *cut);
  }
}

}  // namespace

void mergeSlices(Model* model) {
  if (model->opset() < 10) return;  // before, Slice has attributes
  splitAll(model);
  for (Node* node : model->sorted({"Slice", "Unsqueeze"})) {
    if (model->isGone(node) || !isFree(*node)) continue;
    if (node->op == "Slice") {
      mergeIntoOne(model, node);
    } else {
      keepAxis(model, node);
    }
  }
  splitAll(model);
}

}  // namespace passlib::moves
