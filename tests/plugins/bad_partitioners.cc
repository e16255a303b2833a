// Partitioners that go wrong in the way that the option `how` says.
#include <lib_api.h>

#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

using mxnet::ext::CustomOpSelector;
using mxnet::ext::Graph;
using mxnet::ext::MX_FAIL;
using mxnet::ext::MX_SUCCESS;
using mxnet::ext::MXReturnValue;
using mxnet::ext::Node;

using Options = std::unordered_map<std::string, std::string>;

namespace {

MXReturnValue supportedOps(const Graph* graph, std::vector<int>* ids, const Options& options) {
  const std::string how = options.at("how");
  if (how == "fail") {
    MX_ERROR_MSG << "supports nothing today";
    return MX_FAIL;
  }
  if (how == "fail silently") return MX_FAIL;
  if (how == "throw") throw std::runtime_error("no idea");
  if (how == "throw a number") throw 5;
  if (how == "shrink") ids->resize(1);
  if (how == "nonsense") ids->back() = -7;
  for (std::size_t i = 0; i < ids->size() && how.find("review") == 0; ++i) {
    if (graph->getNode(i)->op == "exp") (*ids)[i] = -1;
  }
  return MX_SUCCESS;
}

MXReturnValue review(const Graph*, int number, bool* accept, const Options& options,
                     Options* attrs) {
  const std::string how = options.at("how");
  *accept = how != "review forgets";
  if (how == "review text") (*attrs)["__text__"] = "\xff";
  if (number == 0) return MX_SUCCESS;
  if (how == "review fails") {
    MX_ERROR_MSG << "does not like number " << number;
    return MX_FAIL;
  }
  if (how == "review throws") throw std::runtime_error("cannot look");
  return MX_SUCCESS;
}

class Selector : public CustomOpSelector {
 public:
  Selector(const Graph* graph, const std::string& how) : graph_(graph), how_(how) {}
  bool Select(int node) override {
    if (how_ == "throw in Select") throw std::runtime_error("cannot select");
    return isExp(node);
  }
  bool SelectInput(int, int input) override {
    if (how_ == "throw in SelectInput") throw 5;
    return isExp(input);
  }
  bool SelectOutput(int, int output) override {
    if (how_ == "throw in SelectOutput") throw std::runtime_error("cannot select");
    return isExp(output);
  }
  void Filter(const std::vector<int>& candidates, std::vector<int>* keep) override {
    if (how_ == "throw in Filter") throw std::runtime_error("cannot filter");
    *keep = candidates;
    if (how_ == "keep one twice") keep->back() = keep->front();
    if (how_ == "keep a stranger") keep->back() = 0;
    if (how_ == "keep nonsense") keep->back() = -12345;
    if (how_ == "keep too many") keep->push_back(0);
    if (how_ == "keep the ends" && keep->size() > 2) {
      keep->erase(keep->begin() + 1, keep->end() - 1);
    }
  }

 private:
  bool isExp(int node) const {
    return graph_->getNode(static_cast<std::size_t>(node))->op == "exp";
  }
  const Graph* graph_;
  std::string how_;
};

MXReturnValue createSelector(const Graph* graph, CustomOpSelector** selector,
                             const Options& options) {
  const std::string how = options.at("how");
  if (how == "fail") return MX_FAIL;
  if (how == "throw") throw std::runtime_error("no selector");
  if (how != "make none") *selector = new Selector(graph, how);
  return MX_SUCCESS;
}

}  // namespace

REGISTER_PARTITIONER(badSupported).addStrategy("s", "_bad").setSupportedOps("s", supportedOps);
REGISTER_PARTITIONER(badSelected).addStrategy("s", "_bad").setCreateSelector("s", createSelector);
REGISTER_PARTITIONER(badReviewed)
    .addStrategy("s", "_bad")
    .setSupportedOps("s", supportedOps)
    .setReviewSubgraph("s", review);
REGISTER_PARTITIONER(badWithoutFunctions).addStrategy("s", "_bad");
REGISTER_PARTITIONER(badWithoutStrategies);

MXReturnValue initialize(int) { return MX_SUCCESS; }
