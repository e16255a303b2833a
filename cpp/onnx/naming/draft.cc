#include "onnx/naming/draft.h"

#include <algorithm>

#include "errors.h"
#include "onnx/naming/order.h"
#include "onnx/reading/level_values.h"

namespace passlib::onnx {
namespace {

const GraphPlace kNowhere;
const Level kNoLevel;
const OriginalGraph kNoGraph(kNowhere, kNoLevel);

Value valueOf(const NodeEntry& entry, const NodeTable& table) {
  const int64_t position = table.find(entry.node);
  if (position < 0 || entry.entry < 0) {
    throw GraphError("an edge of the graph leads to no output of a node in it");
  }
  return {static_cast<uint32_t>(position), static_cast<uint32_t>(entry.entry)};
}

/// Removes the part of an identifier that follows the place of its nested graph.
Bytes placeWithin(Bytes id) {
  const std::size_t dot = id.rfind('.');
  std::size_t number = 0;
  if (dot == Bytes::npos || !parsePosition(id.substr(dot + 1), &number)) return id;
  id = id.substr(0, dot);
  for (const Bytes kind : {".input", ".initializer", ".sparse"}) {
    if (id.size() >= kind.size() && id.substr(id.size() - kind.size()) == kind) {
      return id.substr(0, id.size() - kind.size());
    }
  }
  return id;
}

}  // namespace

Draft::Draft(const Graph& written, const Originals& all, const OriginalGraph* original,
             std::vector<bool>* taken, const Surroundings& surroundings, const Present& outputs)
    : graph(written),
      originals(all),
      file(original == nullptr ? kNoGraph : *original),
      is_main(original == &all.main()),
      around(surroundings),
      present(outputs),
      claims(written.nodes.size(), nullptr),
      named(written.nodes.size(), nullptr),
      table_(written.nodes),
      is_new_(original == nullptr) {
  firsts.reserve(size() + 1);
  flags_.reserve(size());
  for (std::size_t i = 0; i < size(); ++i) {
    prefetch(i);
    firsts.push_back(static_cast<uint32_t>(uses.size()));
    for (const NodeEntry& entry : node(i).inputs) uses.push_back(valueOf(entry, table_));
    controlled_ = controlled_ || !node(i).control_deps.empty();
    flags_.push_back(flagsOf(node(i)));
    claim(i, taken);
  }
  firsts.push_back(static_cast<uint32_t>(uses.size()));
  for (const NodeEntry& head : graph.outputs) heads.push_back(valueOf(head, table_));
}

/// Asks the processor for the nodes that the walk over all reads some steps later.
void Draft::prefetch(std::size_t position) const {
  constexpr std::size_t kSteps = 12;
  if (position + kSteps >= size()) return;
  const Node* const later = graph.nodes[position + kSteps];
  __builtin_prefetch(&later->op);
  __builtin_prefetch(&later->inputs);
  __builtin_prefetch(&later->attrs);
  __builtin_prefetch(graph.nodes[position + kSteps / 2]->name.data());
}

unsigned char Draft::flagsOf(const Node& node) const {
  if (node.op != "null") return 0;
  unsigned char flags = kVariable;
  if (node.name == kAbsent) flags |= kAbsentInput;
  if (attributeOf(node, keys::kOuter).data() != nullptr) flags |= kOuterValue;
  return flags;
}

void Draft::claim(std::size_t position, std::vector<bool>* taken) {
  const Bytes id = attributeOf(node(position), keys::kId);
  if (id.data() == nullptr) return;
  const Original* const found = originals.find(id);
  named[position] = found;
  if (found != nullptr) originals.prefetchAfter(*found);
  if (found == nullptr || (*taken)[found->index]) return;
  if (isVariable(position) == (found->what == Original::kOperator)) return;
  (*taken)[found->index] = true;
  claims[position] = found;
  mixed_ = mixed_ || found->graph != &file;
  if (found->node->name == node(position).name) flags_[position] |= kOwnName;
  if (!isVariable(position) && found->record().op == node(position).op) {
    flags_[position] |= kOwnOperator;
  }
}

const OriginalGraph* Draft::copied() const {
  if (!is_new_) return nullptr;
  for (const Node* each : graph.nodes) {
    const OriginalGraph* found = originals.findGraph(placeWithin(attributeOf(*each, keys::kId)));
    if (found != nullptr) return found;
  }
  return nullptr;
}

std::vector<Bytes> Draft::titles(Arena* arena) const {
  std::vector<Bytes> titles(size());
  FreshNames names(nullptr, arena);
  for (std::size_t i = 0; i < size(); ++i) {
    const Original* found = original(i);
    if (found == nullptr || !keepsName(i)) continue;
    titles[i] = found->record().name.data() == nullptr ? Bytes("") : found->record().name;
    names.use(titles[i]);
  }
  for (std::size_t i = 0; i < size(); ++i) {
    if (isVariable(i) || titles[i].data() != nullptr) continue;
    titles[i] = node(i).name.empty() ? Bytes("") : names.fresh(node(i).name);
  }
  return titles;
}

std::vector<uint32_t> Draft::controls(std::size_t position) const {
  std::vector<uint32_t> found;
  for (const Node* dep : node(position).control_deps) {
    found.push_back(valueOf(NodeEntry(const_cast<Node*>(dep), 0), table_).node);
  }
  return found;
}

std::vector<uint32_t> Draft::order() const {
  std::vector<Rank> ranks(size(), kNoRank);
  Rank last = kNoRank;
  bool sorted = true;
  for (std::size_t i = 0; i < size(); ++i) {
    const Original* found = claims[i];
    const bool placed = found != nullptr &&
                        (found->what == Original::kOperator || found->what == Original::kConstant);
    if (placed) {
      ranks[i] = found->number;
      sorted = sorted && last <= ranks[i];
      last = ranks[i];
    }
    for (const Value* use = begin(i); use != end(i); ++use) sorted = sorted && use->node < i;
    if (!controlled_) continue;
    for (const uint32_t dep : controls(i)) sorted = sorted && dep < i;
  }
  std::vector<uint32_t> order(size());
  for (std::size_t i = 0; i < size(); ++i) order[i] = static_cast<uint32_t>(i);
  if (sorted) return order;
  std::vector<std::pair<uint32_t, uint32_t>> needs;
  for (std::size_t i = 0; i < size(); ++i) {
    const auto consumer = static_cast<uint32_t>(i);
    for (const Value* use = begin(i); use != end(i); ++use) needs.emplace_back(use->node, consumer);
    for (const uint32_t dep : controls(i)) needs.emplace_back(dep, consumer);
  }
  return stableOrder(needs, std::move(ranks));
}

}  // namespace passlib::onnx
