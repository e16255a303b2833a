#include "memory.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "family.h"

namespace passes {
namespace {

bool isView(const Node& node) {
  return node.op == "Tensor" || node.attrs.count("__virtual__") != 0;
}

/// The output tensors of a node as described in the file; none for nodes added by a pass.
std::vector<JsonVal> describedOutputs(const Node& node) {
  const std::string text = textAttr(&node, "__outputs__", "[]");
  return JsonVal::parse(text).list;
}

const JsonVal* member(const JsonVal& object, const char* key) {
  const auto found = object.map.find(JsonVal(key));
  return found == object.map.end() ? nullptr : &found->second;
}

/// Whether a buffer is visible to other ranks.
bool isShared(const JsonVal& buffer) {
  for (const char* key : {"SendTags", "RecvTags"}) {
    const JsonVal* tags = member(buffer, key);
    if (tags != nullptr && !tags->list.empty()) return true;
  }
  const JsonVal* rank = member(buffer, "Rank");
  return rank != nullptr && rank->num != -1;
}

/// The inputs of a view that lie in its memory.
std::vector<std::size_t> partsOf(const Node& node) {
  std::vector<std::size_t> parts;
  for (int64_t part : intsAttr(&node, "__parts__", {0})) {
    const bool present = part >= 0 && static_cast<std::size_t>(part) < node.inputs.size();
    if (present) parts.push_back(static_cast<std::size_t>(part));
  }
  return parts;
}

}  // namespace

std::size_t Memory::readCount(const Node& node) {
  const int64_t count = isView(node) ? -1 : intAttr(&node, "__reads__", -1);
  if (count < 0) return node.inputs.size();
  return std::min(static_cast<std::size_t>(count), node.inputs.size());
}

std::string Memory::geometry(const Node& node) {
  std::string text;
  for (JsonVal& tensor : describedOutputs(node)) {
    tensor.map.erase(JsonVal("Id"));
    tensor.map.erase(JsonVal("Buffer"));
    text += tensor.dump();
  }
  return text;
}

Memory::Memory(const Graph& graph)
    : table_(graph.nodes),
      parents_(graph.nodes.size()),
      groups_(graph.nodes.size()),
      sources_(graph.nodes.size()) {
  std::iota(parents_.begin(), parents_.end(), std::size_t{0});
  // Sorted: texts of a file can be chosen so that a hash table is slow.
  std::map<std::string, std::size_t> by_number;
  for (const Node* node : graph.nodes) {
    const std::size_t own = slot(*node);
    if (isView(*node)) {
      for (std::size_t part : partsOf(*node)) unite(own, slot(*node->inputs[part].node));
    } else {
      for (std::size_t i = readCount(*node); i < node->inputs.size(); ++i) {
        unite(own, slot(*node->inputs[i].node));
      }
    }
    for (const JsonVal& tensor : describedOutputs(*node)) {
      const JsonVal* buffer = member(tensor, "Buffer");
      const JsonVal* number = buffer == nullptr ? nullptr : member(*buffer, "Id");
      if (number != nullptr) unite(own, by_number.emplace(number->dump(), own).first->second);
    }
  }
  for (Node* node : graph.nodes) {
    Group& group = groups_[region(*node)];
    if (node->op == "null") group.input = true;
    if (node->op == "null" || (isView(*node) && node->inputs.empty())) ++group.declarations;
    if (!isView(*node) && readCount(*node) < node->inputs.size()) group.writers.push_back(node);
    for (const JsonVal& tensor : describedOutputs(*node)) {
      const JsonVal* buffer = member(tensor, "Buffer");
      group.remote = group.remote || (buffer != nullptr && isShared(*buffer));
    }
  }
}

std::size_t Memory::slot(const Node& node) const {
  return static_cast<std::size_t>(table_.find(&node));
}

std::size_t Memory::find(std::size_t slot) const {
  while (parents_[slot] != slot) slot = parents_[slot] = parents_[parents_[slot]];
  return slot;
}

void Memory::unite(std::size_t one, std::size_t other) { parents_[find(one)] = find(other); }

bool Memory::writesToInput(const Node& node) const {
  return !isView(node) && readCount(node) < node.inputs.size() && group(node).input;
}

Node* Memory::destination(const Node& node) {
  if (isView(node) || node.inputs.size() != readCount(node) + 1) return nullptr;
  return node.inputs.back().node;
}

bool Memory::givesFixedValue(const Node& node) const {
  const Group& own = group(node);
  if (own.remote) return false;
  if (isView(node)) return !node.inputs.empty() && isFixed(node);
  const Node* memory = destination(node);
  return memory != nullptr && memory->op == "Tensor" && memory->inputs.empty() &&
         memory->outputs.size() == 1 && own.declarations == 1 && own.writers.size() == 1;
}

bool Memory::readsFixedValues(const Node& node) const {
  return std::all_of(node.inputs.begin(),
                     node.inputs.begin() + static_cast<std::ptrdiff_t>(readCount(node)),
                     [this](const NodeEntry& entry) { return isFixed(*entry.node); });
}

/// The single source of a view, otherwise the view itself.
const Node& Memory::source(const Node& node) const {
  std::vector<const Node*> views;
  const Node* current = &node;
  while (sources_[slot(*current)] == nullptr && isView(*current) && current->inputs.size() == 1) {
    views.push_back(current);
    current = current->inputs[0].node;
  }
  const Node* known = sources_[slot(*current)];
  if (known != nullptr) current = known;
  for (const Node* view : views) sources_[slot(*view)] = current;
  return *current;
}

/// Whether a value is written by its producer only.
bool Memory::isFixed(const Node& node) const {
  const Group& own = group(node);
  if (own.remote) return false;
  const Node& made_by = source(node);
  if (isView(made_by) && !made_by.inputs.empty()) return false;
  const bool computed = made_by.op != "null" && !isView(made_by);
  return own.writers.size() == (computed ? 1U : 0U);
}

}  // namespace passes
