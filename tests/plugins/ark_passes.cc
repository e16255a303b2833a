// Passes that know ARK's conventions: hidden attributes, operands that are written, side effects.
#include <algorithm>
#include <set>

#include "lib_api.h"

using namespace mxnet::ext;

typedef std::unordered_map<std::string, std::string> Options;

namespace {

bool isHidden(const std::string& key) { return key.compare(0, 2, "__") == 0; }

std::size_t readCount(const Node* node) {
  const auto found = node->attrs.find("__reads__");
  return found == node->attrs.end() ? node->inputs.size() : std::stoul(found->second);
}

bool hasEffects(const Node* node) { return node->attrs.count("__effects__") != 0; }

/// Whether anything writes to the memory of an output of `node`, seen through views.
bool isWrittenAgain(const Node* node) {
  for (const NodeEntry& use : node->outputs) {
    if (use.node->op == "Tensor" ? isWrittenAgain(use.node)
                                 : static_cast<std::size_t>(use.entry) >= readCount(use.node)) {
      return true;
    }
  }
  return false;
}

/// Whether `node` gives a whole buffer of its own that nobody else writes.
bool ownsResult(const Node* node) {
  const std::size_t reads = readCount(node);
  if (node->op == "null" || node->op == "Tensor" || hasEffects(node)) return false;
  if (node->inputs.size() != reads + 1 || node->attrs.count("__reads__") == 0) return false;
  const Node* memory = node->inputs[reads].node;
  return memory->op == "Tensor" && memory->inputs.empty() && memory->outputs.size() == 1 &&
         !isWrittenAgain(node);
}

std::string signature(const Node* node) {
  std::map<std::string, std::string> visible;
  for (const auto& attribute : node->attrs) {
    if (!isHidden(attribute.first)) visible.insert(attribute);
  }
  std::string text = node->op;
  for (const auto& attribute : visible) text += "\n" + attribute.first + "=" + attribute.second;
  for (std::size_t i = 0; i < readCount(node); ++i) {
    const NodeEntry& input = node->inputs[i];
    text += "\n" + std::to_string(reinterpret_cast<std::uintptr_t>(input.node)) + "." +
            std::to_string(input.entry);
  }
  return text;
}

}  // namespace

MXReturnValue arkIdentity(Graph*, const Options&) { return MX_SUCCESS; }
REGISTER_PASS(arkIdentity).setBody(arkIdentity);

/// Sets attribute `key` of all operators `op` to `value`.
MXReturnValue arkSet(Graph* graph, const Options& options) {
  for (Node* node : graph->nodes) {
    if (node->op == options.at("op")) node->attrs[options.at("key")] = options.at("value");
  }
  return MX_SUCCESS;
}
REGISTER_PASS(arkSet).setBody(arkSet);

/// Puts `prefix` before all names.
MXReturnValue arkRename(Graph* graph, const Options& options) {
  for (Node* node : graph->nodes) node->name = options.at("prefix") + node->name;
  return MX_SUCCESS;
}
REGISTER_PASS(arkRename).setBody(arkRename);

/// Removes all operators `op`; what they read stands in for what they gave.
MXReturnValue arkRemove(Graph* graph, const Options& options) {
  const std::vector<Node*> nodes = graph->nodes;
  for (Node* node : nodes) {
    if (node->op != options.at("op")) continue;
    if (!node->inputs.empty()) graph->replace(NodeEntry(node, 0), node->inputs[0]);
    graph->removeNode(node);
  }
  return MX_SUCCESS;
}
REGISTER_PASS(arkRemove).setBody(arkRemove);

/// Inserts a new operator `op` after each operator `after`.
MXReturnValue arkInsert(Graph* graph, const Options& options) {
  const std::vector<Node*> nodes = graph->nodes;
  for (Node* node : nodes) {
    if (node->op != options.at("after")) continue;
    Node* added = graph->addNode("added_" + node->name, options.at("op"));
    for (const auto& option : options) {
      if (option.first.compare(0, 4, "arg_") == 0) {
        added->attrs[option.first.substr(4)] = option.second;
      }
    }
    graph->connect(node, 0, added, 0);
    graph->replace(NodeEntry(node, 0), NodeEntry(added, 0));
  }
  return MX_SUCCESS;
}
REGISTER_PASS(arkInsert).setBody(arkInsert);

/// Adds a new variable to each output of the graph.
MXReturnValue arkBias(Graph* graph, const Options& options) {
  for (std::size_t i = 0; i < graph->outputs.size(); ++i) {
    const NodeEntry head = graph->outputs[i];
    Node* bias = graph->addNode("bias" + std::to_string(i), "null");
    bias->attrs["__shape__"] = options.at("shape");
    graph->inputs.push_back(bias);
    Node* sum = graph->addNode("sum" + std::to_string(i), "Add");
    graph->connect(head.node, head.entry, sum, 0);
    graph->connect(bias, 0, sum, 1);
    graph->outputs[i] = NodeEntry(sum, 0);
  }
  return MX_SUCCESS;
}
REGISTER_PASS(arkBias).setBody(arkBias);

/// Removes what no output and no side effect needs.
MXReturnValue arkDead(Graph* graph, const Options&) {
  std::vector<Node*> pending;
  for (const NodeEntry& head : graph->outputs) pending.push_back(head.node);
  for (Node* node : graph->nodes) {
    if (hasEffects(node)) pending.push_back(node);
  }
  std::set<Node*> needed;
  while (!pending.empty()) {
    Node* node = pending.back();
    pending.pop_back();
    if (!needed.insert(node).second) continue;
    for (const NodeEntry& input : node->inputs) pending.push_back(input.node);
    for (Node* other : node->control_deps) pending.push_back(other);
  }
  std::vector<Node*> dead;
  for (Node* node : graph->nodes) {
    if (needed.count(node) == 0 && node->op != "null") dead.push_back(node);
  }
  graph->removeNodes(dead);
  return MX_SUCCESS;
}
REGISTER_PASS(arkDead).setBody(arkDead);

/// Lets one of several equal operators do for all, where each has memory of its own.
MXReturnValue arkMerge(Graph* graph, const Options&) {
  std::map<std::string, Node*> known;
  for (Node* node : graph->sorted()) {
    if (!ownsResult(node)) continue;
    Node*& first = known[signature(node)];
    if (first == nullptr) {
      first = node;
      continue;
    }
    graph->replace(NodeEntry(node, 0), NodeEntry(first, 0));
    graph->removeNode(node);
  }
  return MX_SUCCESS;
}
REGISTER_PASS(arkMerge).setBody(arkMerge);

/// Lists the nodes backwards.
MXReturnValue arkReverse(Graph* graph, const Options&) {
  std::reverse(graph->nodes.begin(), graph->nodes.end());
  return MX_SUCCESS;
}
REGISTER_PASS(arkReverse).setBody(arkReverse);

MXReturnValue initialize(int version) { return version >= 10700 ? MX_SUCCESS : MX_FAIL; }
