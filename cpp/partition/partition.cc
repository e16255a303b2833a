#include "partition/partition.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/attributes.h"
#include "graph/check.h"
#include "graph/text_table.h"
#include "partition/choice.h"
#include "partition/cutting/cut.h"
#include "partition/cutting/cutter.h"
#include "partition/groups.h"
#include "partition/library.h"

namespace passlib {
namespace {

/// Names for the nodes of subgraphs: "_op" and the number of the subgraph, or the next free number.
class NodeNames {
 public:
  explicit NodeNames(const Graph& graph) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      mxnet::ext::host::prefetchNode(graph.nodes, i, &Node::name);
      const Node* node = graph.nodes[i];
      if (node->name.compare(0, kPrefix.size(), kPrefix) == 0) taken_.insert(node->name);
    }
  }
  std::string next(std::size_t subgraph) {
    number_ = std::max(number_, subgraph);
    std::string name;
    do {
      name = std::string(kPrefix) += std::to_string(number_++);
    } while (taken_.count(name) != 0);
    return name;
  }

 private:
  static constexpr std::string_view kPrefix = "_op";

  TextSet taken_;  // of those that begin alike: a table of all names takes longer than the cuts
  std::size_t number_ = 0;
};

/// Finds the parameters that a subgraph uses. Its review receives no others: with all parameters
/// each time, many subgraphs of a large model would take quadratic time.
class ParamIndex {
 public:
  explicit ParamIndex(const ParamBlock& block) : block_(block) {
    for (int i = 0; i < block.count(); ++i) index_.emplace(block.names()[i], i);
  }
  ParamBlock usedBy(const Graph& subgraph) const {
    ParamBlock used;
    std::unordered_set<int> known;
    for (const Node* variable : subgraph.inputs) {
      const std::string name(attributeOf(*variable, "argName"));
      const auto found = index_.find(name);
      if (found == index_.end() || !known.insert(found->second).second) continue;
      const int i = found->second;
      const int64_t* shape = block_.shapes()[i];
      const auto dims = static_cast<std::size_t>(block_.dims()[i]);
      std::copy(shape, shape + dims, used.add(name, block_.data()[i], dims, block_.types()[i]));
    }
    return used;
  }

 private:
  const ParamBlock& block_;
  TextMap<int> index_;
};

class Reviewer {
 public:
  Reviewer(const PartitionCall& call, const StrategyLibrary& library, const Graph& graph)
      : call_(call), library_(library), args_(call.args), aux_(call.aux) {
    for (const auto& [position, slots] : call.states) states_[graph.nodes.at(position)] = slots;
  }

  /// Returns attributes for the subgraph's node, or nothing if the library rejects it.
  std::optional<StrategyLibrary::Attributes> review(Graph* subgraph, std::size_t number) const {
    if (library_.strategy().review == nullptr) return StrategyLibrary::Attributes();
    NodeStates own;
    for (std::size_t i = 0; i < subgraph->nodes.size() && !states_.empty(); ++i) {
      const auto found = states_.find(subgraph->nodes[i]);
      if (found != states_.end()) own.emplace(i, found->second);
    }
    const Variables variables = listVariables(*subgraph, call_.auxiliary, own);
    TextViewSet states;
    for (std::size_t i = 0; i < variables.aux.size(); ++i) states.insert(variables.aux[i]);
    for (Node* variable : subgraph->inputs) {
      variable->attrs["isAux"] = states.count(variable->name) != 0 ? "True" : "False";
    }
    subgraph->attrs = call_.attributes;
    linkOutputs(subgraph);
    auto attributes = library_.review(subgraph, static_cast<int>(number), args_.usedBy(*subgraph),
                                      aux_.usedBy(*subgraph));
    subgraph->attrs.clear();
    return attributes;
  }

 private:
  const PartitionCall& call_;
  const StrategyLibrary& library_;
  ParamIndex args_;
  ParamIndex aux_;
  std::unordered_map<const Node*, std::vector<int>> states_;
};

std::vector<std::vector<int>> chooseGroups(const PartitionCall& call,
                                           const StrategyLibrary& library,
                                           const NumberedGraph& numbers, Graph* graph) {
  graph->attrs = call.attributes;
  std::unique_ptr<Choice> choice = makeChoice(library, graph);
  std::vector<std::vector<int>> groups =
      growGroups(numbers, choice.get(), [&](const std::string& reason) { library.fail(reason); });
  choice.reset();
  graph->attrs.clear();
  return groups;
}

/// Whether groups have operators alone, without nested graphs.
bool areOperators(const Graph& graph, const std::vector<std::vector<int>>& groups) {
  for (const std::vector<int>& group : groups) {
    for (const int member : group) {
      const Node& node = *graph.nodes[static_cast<std::size_t>(member)];
      if (node.op == "null" || !node.subgraphs.empty()) return false;
    }
  }
  return true;
}

}  // namespace

std::string describePartition(const PartitionCall& call) {
  return StrategyLibrary(call.library, call.partitioner, call.strategy, call.options,
                         call.force_json)
      .described();
}

PartitionResult runPartition(const PartitionCall& call, const OutputSuffix& suffix,
                             GraphSource* source) {
  const StrategyLibrary library(call.library, call.partitioner, call.strategy, call.options,
                                call.force_json);
  const int max_depth = mostNestedGraphs(source);
  std::unique_ptr<Graph> graph = call.consume ? source->consume() : source->take();
  const NumberedGraph numbers(*graph);
  const std::vector<std::vector<int>> groups = chooseGroups(call, library, numbers, graph.get());
  const Reviewer reviewer(call, library, *graph);
  NodeNames names(*graph);
  Cutter cutter(graph.get(), numbers, groups, suffix, call.merge_equal);
  // A part that no library saw is as sound as the graph that it was cut from.
  const bool unseen = library.strategy().review == nullptr && areOperators(*graph, groups);
  const NodeOrder wanted = call.ordered ? NodeOrder::kPostOrder : NodeOrder::kSorted;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    Cut cut(&cutter, static_cast<int>(i));
    if (cut.graph()->outputs.empty()) continue;  // its results are unused
    if (cut.order() < wanted) arrangeGraph(cut.graph(), call.ordered);
    if (unseen) linkOutputs(cut.graph());
    const auto attributes = reviewer.review(cut.graph(), i);
    if (attributes) cut.accept(library.strategy().op, names.next(i), *attributes);
  }
  const NodeOrder order = cutter.finish(unseen);
  // The only text that came from the library is the name of the operator.
  if (unseen && order >= wanted && isUtf8(library.strategy().op)) {
    return {std::move(graph), unseen};
  }
  std::vector<bool> fine;
  if (unseen) fine = cutter.oldNodes();
  finishGraph(graph.get(), call.ordered, library.described() + " made a graph that is not sound",
              max_depth, fine, unseen);
  return {std::move(graph), unseen};
}

}  // namespace passlib
