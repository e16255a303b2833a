#include "mxnet/upgrade.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "graph/attributes.h"
#include "graph/check.h"
#include "mxnet/operators.h"

namespace passlib::symbols {

namespace {

constexpr int64_t kInputsComplete = 900;
constexpr int64_t kInitialisersSet = 904;
constexpr int64_t kAxisOptional = 905;

/// Attributes of any node that MXNet stores as `__ctx_group__` and so on.
constexpr const char* kHidden[] = {"ctx_group", "lr_mult", "wd_mult", "force_mirroring",
                                   "mirror_stage"};

std::string stored(const std::string& hidden) { return "__" + hidden + "__"; }

/// Moves an attribute of a node to another node, or under another key.
void moveAttribute(Node* from, const std::string& key, Node* to, const std::string& new_key) {
  const std::string text(attributeOf(*from, key));
  dropAttributes(from, {key});
  setAttribute(to, new_key, text);
}

/// A key such as `weight_lr_mult`, in parts; `hidden` is null for other keys.
struct HiddenKey {
  explicit HiddenKey(const std::string& whole) : key(whole) {
    for (const char* each : kHidden) {
      const std::string end = std::string("_") + each;
      if (key.size() < end.size() || key.compare(key.size() - end.size(), end.size(), end) != 0) {
        continue;
      }
      hidden = each;
      owner = key.substr(0, key.size() - end.size());
      return;
    }
  }
  std::string key;
  const char* hidden = nullptr;
  std::string owner;
};

std::vector<std::string> keysOf(const Node& node) {
  std::vector<std::string> keys;
  for (const auto& [key, text] : sortedAttributes(node)) keys.emplace_back(key);
  return keys;
}

/// Gives a hidden attribute to the variable of the input that it belongs to.
void moveToInput(Node* node, const HiddenKey& key, const Names& names) {
  const auto found = std::find(names.begin(), names.end(), key.owner);
  const auto place = static_cast<std::size_t>(found - names.begin());
  if (place >= std::min(names.size(), node->inputs.size())) return;
  Node* const variable = node->inputs[place].node;
  // The output of an operator has no such attribute: it stays on this node.
  if (variable->op == "null") moveAttribute(node, key.key, variable, stored(key.hidden));
}

/// Renames or moves hidden attributes; returns those whose input does not exist yet.
std::vector<HiddenKey> moveHidden(Node* node, const Names& names) {
  for (const char* hidden : kHidden) {
    if (attributeOf(*node, hidden).data() != nullptr) {
      moveAttribute(node, hidden, node, stored(hidden));
    }
  }
  std::vector<HiddenKey> later;
  const auto missing =
      names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), node->inputs.size()));
  for (const std::string& text : keysOf(*node)) {
    HiddenKey key(text);
    if (key.hidden == nullptr) continue;
    if (std::find(missing, names.end(), key.owner) != names.end()) {
      later.push_back(std::move(key));
    } else {
      moveToInput(node, key, names);
    }
  }
  return later;
}

/// Adds a variable for an input that a node lacks, with its attributes but those that follow later.
void addVariable(Graph* graph, Node* node, const std::string& input,
                 const std::vector<HiddenKey>& later) {
  Node* const variable = graph->addNode(node->name + "_" + input, "null");
  mxnet::ext::host::declareOutputs(variable, 1);
  variable->attrs = node->attrs;
  std::vector<std::string> left;
  for (const HiddenKey& key : later) left.push_back(key.key);
  dropAttributes(variable, left);
  graph->connect(variable, 0, node, static_cast<int>(node->inputs.size()));
}

void upgradeNode(Graph* graph, Node* node, int64_t version) {
  const Operator* const op = node->op == "null" ? nullptr : findOperator(node->op);
  const Names names = op == nullptr ? Names() : inputNames(*op, *node);
  const std::vector<HiddenKey> later = moveHidden(node, names);
  if (op == nullptr) return;
  if (version < kInputsComplete && op->makes_variables) {
    for (std::size_t i = node->inputs.size(); i < names.size(); ++i) {
      addVariable(graph, node, names[i], later);
    }
    for (const HiddenKey& key : later) moveToInput(node, key, names);
  }
  if (version < kInitialisersSet) {
    for (std::size_t i = 0; i < std::min(names.size(), node->inputs.size()); ++i) {
      const auto found = op->initial.find(names[i]);
      if (found == op->initial.end() || node->inputs[i].node->op != "null") continue;
      addAttribute(node->inputs[i].node, "__init__", found->second);
    }
  }
  if (version < kAxisOptional && (op->name == "argmax" || op->name == "argmin") &&
      attributeOf(*node, "axis") == "-1") {
    dropAttributes(node, {"axis"});
  }
}

}  // namespace

void upgrade(Graph* graph, int64_t version) {
  if (version >= kCurrentVersion) return;
  const std::vector<Node*> nodes = graph->nodes;  // without those that are added
  for (Node* node : nodes) upgradeNode(graph, node, version);
  checkGraph(graph);
  orderLevel(graph);
}

}  // namespace passlib::symbols
