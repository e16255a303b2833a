// Partitioners that do what their options say. Compiles with MXNet's lib_api.h as well.
#include <mxnet/lib_api.h>

#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

using mxnet::ext::CustomOpSelector;
using mxnet::ext::Graph;
using mxnet::ext::MX_FAIL;
using mxnet::ext::MX_SUCCESS;
using mxnet::ext::MXContext;
using mxnet::ext::MXReturnValue;
using mxnet::ext::MXTensor;
using mxnet::ext::Node;

using Options = std::unordered_map<std::string, std::string>;
using Names = std::set<std::string>;

namespace {

std::string option(const Options& options, const char* key) {
  const auto found = options.find(key);
  return found == options.end() ? "" : found->second;
}

/// The words of an option, which stand between commas.
Names words(const Options& options, const char* key) {
  std::stringstream list(option(options, key));
  Names result;
  for (std::string word; std::getline(list, word, ',');) result.insert(word);
  return result;
}

void show(const Options& options, const std::string& text) {
  if (options.count("show") != 0) std::cout << text << std::endl;
}

/// Supports the operators of `ops` anywhere, and nodes with an attribute __group__ there.
MXReturnValue support(const Graph* graph, const Names& ops, std::vector<int>* ids) {
  for (std::size_t i = 0; i < graph->size(); ++i) {
    const Node* node = graph->getNode(i);
    const auto group = node->attrs.find("__group__");
    if (group != node->attrs.end()) {
      (*ids)[i] = std::stoi(group->second);
    } else if (ops.count(node->op) != 0) {
      (*ids)[i] = -1;
    }
  }
  return MX_SUCCESS;
}

MXReturnValue supportedOps(const Graph* graph, std::vector<int>* ids, const Options& options) {
  show(options, graph->toString());
  return support(graph, words(options, "ops"), ids);
}

MXReturnValue moreSupportedOps(const Graph* graph, std::vector<int>* ids, const Options& options) {
  show(options, graph->toString());
  return support(graph, words(options, "more_ops"), ids);
}

/// Rejects the numbers of `reject`, sets the attributes of `attrs`, each `key=text`, and tells what
/// it sees.
MXReturnValue review(const Graph* graph, int number, bool* accept, const Options& options,
                     Options* attrs) {
  std::ostringstream line;
  line << "review " << number << (*accept ? " accepted:" : ":");
  for (const Node* variable : graph->inputs) {
    line << " " << variable->name;
    if (variable->tensor != nullptr) line << "=" << variable->tensor->data<float>()[0];
  }
  show(options, line.str());
  *accept = words(options, "reject").count(std::to_string(number)) == 0;
  for (const std::string& each : words(options, "attrs")) {
    const std::size_t equals = each.find('=');
    (*attrs)[each.substr(0, equals)] = each.substr(equals + 1);
  }
  return MX_SUCCESS;
}

/// Takes the operators of `ops`, and drops those nodes again that `drop` names.
class Selector : public CustomOpSelector {
 public:
  Selector(const Graph* graph, const Options& options)
      : graph_(graph),
        options_(options),
        ops_(words(options, "ops")),
        drop_(words(options, "drop")) {}
  ~Selector() { show(options_, "destroyed"); }
  bool Select(int node) override { return takes("select", node); }
  bool SelectInput(int, int input) override { return takes("input", input); }
  bool SelectOutput(int, int output) override { return takes("output", output); }
  void Filter(const std::vector<int>& candidates, std::vector<int>* keep) override {
    std::string line = "filter";
    for (int node : candidates) {
      line += " " + name(node);
      if (drop_.count(name(node)) == 0) keep->push_back(node);
    }
    show(options_, line);
  }
  void Reset() override { show(options_, "reset"); }

 private:
  std::string name(int node) const { return graph_->getNode(static_cast<std::size_t>(node))->name; }
  bool takes(const std::string& what, int node) const {
    // MXNet asks for variables too.
    const Node* asked = graph_->getNode(static_cast<std::size_t>(node));
    if (asked->op != "null") show(options_, what + " " + asked->name);
    return ops_.count(asked->op) != 0;
  }
  const Graph* graph_;
  Options options_;
  Names ops_;
  Names drop_;
};

MXReturnValue createSelector(const Graph* graph, CustomOpSelector** selector,
                             const Options& options) {
  *selector = new Selector(graph, options);
  return MX_SUCCESS;
}

class State : public mxnet::ext::CustomStatefulOp {
 public:
  MXReturnValue Forward(std::vector<MXTensor>*, std::vector<MXTensor>*,
                        const mxnet::ext::OpResource&) override {
    MX_ERROR_MSG << "these subgraphs are only looked at";
    return MX_FAIL;
  }
};

MXReturnValue createState(const Options&, const MXContext&,
                          const std::vector<std::vector<unsigned int>>&, const std::vector<int>,
                          mxnet::ext::CustomStatefulOp** state) {
  *state = new State();
  return MX_SUCCESS;
}

MXReturnValue nothing(Graph*, const Options&) { return MX_SUCCESS; }

}  // namespace

REGISTER_OP(_partition).setIsSubgraphOp().setCreateOpState(createState, "cpu");
REGISTER_OP(_other_partition).setIsSubgraphOp().setCreateOpState(createState, "cpu");

REGISTER_PARTITIONER(partitionSupported)
    .addStrategy("only", "_partition")
    .setSupportedOps("only", supportedOps);

REGISTER_PARTITIONER(partitionReviewed)
    .addStrategy("only", "_partition")
    .setSupportedOps("only", supportedOps)
    .setReviewSubgraph("only", review);

REGISTER_PARTITIONER(partitionSelected)
    .addStrategy("only", "_partition")
    .setCreateSelector("only", createSelector);

REGISTER_PARTITIONER(partitionTwice)
    .addStrategy("first", "_partition")
    .setSupportedOps("first", supportedOps)
    .addStrategy("second", "_other_partition")
    .setSupportedOps("second", moreSupportedOps)
    .setReviewSubgraph("second", review);

REGISTER_PASS(besidePartitioners).setBody(nothing);

MXReturnValue initialize(int) { return MX_SUCCESS; }
