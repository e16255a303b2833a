/*
 * mergeEqualNodes: replaces equal nodes by one of them (common subexpression elimination).
 *
 * Nodes are equal if they have the same operator, attributes and inputs, versions included; names
 * and bookkeeping attributes do not count. Nodes whose inputs are equal nodes are found in the same
 * walk. Operators that draw random numbers, write to memory or states, communicate, have subgraphs
 * or are unknown are never merged; outputs of the model keep their names and are never removed.
 * Subgraphs are processed separately.
 *
 * mergeEqualWeights: the same for weights alone.
 */
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "facts/family.h"
#include "facts/memory.h"
#include "lineage.h"
#include "nested.h"
#include "node_text.h"

namespace passes {
namespace {

struct Choice {
  bool operators;   ///< merge operators
  bool parameters;  ///< merge weights
  bool inference;   ///< nothing is trained
};

class Merging {
 public:
  Merging(Graph* graph, const Family& family, Choice choice)
      : graph_(graph),
        family_(family),
        choice_(choice),
        table_(graph->nodes),
        class_of_(graph->nodes.size()) {
    if (family.name() == "ark") memory_ = std::make_unique<Memory>(*graph);
    for (const NodeEntry& head : graph->outputs) kept_.insert(head.node);
    for (const Node* node : graph->nodes) {
      kept_.insert(node->control_deps.begin(), node->control_deps.end());
      for (std::size_t state : family.stateInputs(*node)) {
        if (state < node->inputs.size()) states_.insert(node->inputs[state].node);
      }
    }
  }

  /// Returns the number of removed nodes.
  std::size_t run() {
    classify();
    for (const std::vector<Node*>& members : classes_) {
      if (members.size() > 1) merge(members);
    }
    graph_->removeNodes(unwanted_);
    return unwanted_.size();
  }

 private:
  /// Assigns each node a class number. Inputs come first, so a node's text has the classes of its
  /// inputs in place of the nodes.
  void classify() {
    // Sorted: texts of a file can be chosen so that a hash table is slow, and a hash of weights
    // would read all of a file, where comparisons end at the first byte that differs.
    std::map<std::pair<std::string, std::string_view>, std::size_t> known;
    for (Node* node : graph_->sorted()) {
      std::size_t number = classes_.size();
      if (isMergeable(*node)) {
        const std::string_view weight = node->op == "null" ? bytesOf(*node->tensor) : "";
        number = known.emplace(std::pair(textOf(*node), weight), number).first->second;
      }
      if (number == classes_.size()) classes_.emplace_back();
      classes_[number].push_back(node);
      class_of_[static_cast<std::size_t>(table_.find(node))] = number;
    }
  }

  bool isMergeable(const Node& node) const {
    if (!node.control_deps.empty() || !node.extra.empty()) return false;
    if (node.op == "null") {
      return choice_.parameters && states_.count(&node) == 0 && kept_.count(&node) == 0 &&
             isParameter(&node) && isDense(node.tensor);
    }
    if (!choice_.operators || !family_.isFunction(node, choice_.inference)) return false;
    return !memory_ || (memory_->givesFixedValue(node) && memory_->readsFixedValues(node));
  }

  std::string textOf(const Node& node) const {
    NodeText text;
    text.add(node.op);
    text.addAttributes(node);
    if (node.op == "null") {
      text.addType(*node.tensor);
      return text.take();
    }
    text.addNumber(static_cast<std::size_t>(std::max(node.num_outputs, 1)));
    const std::size_t count = memory_ ? Memory::readCount(node) : node.inputs.size();
    if (memory_) text.add(Memory::geometry(node));
    // Outside training states are not written, whatever the versions.
    std::vector<std::size_t> unchanged;
    if (choice_.inference) unchanged = family_.stateInputs(node);
    const auto counts = [&unchanged](std::size_t input) {
      return std::find(unchanged.begin(), unchanged.end(), input) == unchanged.end();
    };
    for (std::size_t i = 0; i < count; ++i) {
      const NodeEntry& input = node.inputs[i];
      text.addNumber(class_of_[static_cast<std::size_t>(table_.find(input.node))]);
      text.addNumber(static_cast<std::size_t>(input.entry));
      text.addNumber(counts(i) ? static_cast<std::size_t>(input.version) : 0);
    }
    return text.take();
  }

  /// Members are in topological order; an output of the model is kept if there is one. This makes
  /// no cycle, since all members have equal inputs, which come before the first.
  void merge(const std::vector<Node*>& members) {
    const auto isKept = [this](const Node* node) { return kept_.count(node) != 0; };
    const auto found = std::find_if(members.begin(), members.end(), isKept);
    Node* worker = found == members.end() ? members.front() : *found;
    std::vector<Node*> merged;
    for (Node* member : members) {
      if (member == worker || isKept(member)) continue;
      for (const NodeEntry& use : member->outputs) {
        use.node->inputs[static_cast<std::size_t>(use.entry)].node = worker;
      }
      worker->outputs.insert(worker->outputs.end(), member->outputs.begin(), member->outputs.end());
      member->outputs.clear();
      unwanted_.push_back(member);
      if (worker->op != "null") merged.push_back(member);
      Node* memory = memory_ ? Memory::destination(*member) : nullptr;
      if (memory != nullptr) unwanted_.push_back(memory);
    }
    if (!merged.empty()) noteOrigin(*graph_, worker, merged);
  }

  Graph* graph_;
  const Family& family_;
  Choice choice_;
  NodeTable table_;
  std::unique_ptr<Memory> memory_;
  std::unordered_set<const Node*> kept_;    // outputs of the model and control dependencies
  std::unordered_set<const Node*> states_;  // variables that operators write to
  std::vector<std::size_t> class_of_;
  std::vector<std::vector<Node*>> classes_;
  std::vector<Node*> unwanted_;
};

std::size_t mergeAll(Graph* graph, const Choice& choice) {
  const Family family(*graph);
  std::size_t removed = 0;
  for (Graph* each : withNested(graph)) removed += Merging(each, family, choice).run();
  return removed;
}

MXReturnValue mergeEqualNodes(Graph* graph, const OptionValues& options) {
  const Choice choice{true, options.boolean("parameters"), options.boolean("inference")};
  const std::size_t removed = mergeAll(graph, choice);
  if (options.boolean("verbose")) {
    std::cout << "mergeEqualNodes: " << removed << " nodes removed\n";
  }
  return MX_SUCCESS;
}

MXReturnValue mergeEqualWeights(Graph* graph, const OptionValues& options) {
  const std::size_t removed = mergeAll(graph, Choice{false, true, false});
  if (options.boolean("verbose")) {
    std::cout << "mergeEqualWeights: " << removed << " weights removed\n";
  }
  return MX_SUCCESS;
}

REGISTER_PASS(mergeEqualNodes)
    .setBody(mergeEqualNodes)
    .describe("Replace nodes of equal operator, attributes and inputs by one of them.")
    .option("parameters", false, "Merge weights of equal bits as well.")
    .option("inference", false,
            "Assume that operators such as Dropout and BatchNorm run outside training.")
    .option("verbose", false, "Print the number of removed nodes.")
    .needsShapes(false)
    .exact()
    .cost("weights")
    .joins("clean", "fuseDequantize")
    .joins("simplify", "fuseDequantize")
    .inPipelines("inference", true)
    .inPipelines("parameters", true);

REGISTER_PASS(mergeEqualWeights)
    .setBody(mergeEqualWeights)
    .describe("Replace weights of equal type, shape and bits by one of them.")
    .option("verbose", false, "Print the number of removed weights.")
    .needsShapes(false);

}  // namespace
}  // namespace passes
