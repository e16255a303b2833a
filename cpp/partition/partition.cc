#include "partition/partition.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "errors.h"
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
  Reviewer(const PartitionCall& call, const StrategyLibrary& library, const AuxiliaryStates& states,
           const Graph& graph)
      : call_(call),
        library_(library),
        auxiliary_(states.by_operator),
        args_(call.args),
        aux_(call.aux) {
    for (const auto& [position, slots] : states.by_node) states_[graph.nodes.at(position)] = slots;
  }

  /// Returns attributes for the subgraph's node, or nothing if the library rejects it.
  std::optional<StrategyLibrary::Attributes> review(Graph* subgraph, std::size_t number) const {
    if (library_.strategy().review == nullptr) return StrategyLibrary::Attributes();
    NodeStates own;
    for (std::size_t i = 0; i < subgraph->nodes.size() && !states_.empty(); ++i) {
      const auto found = states_.find(subgraph->nodes[i]);
      if (found != states_.end()) own.emplace(i, found->second);
    }
    const Variables variables = listVariables(*subgraph, auxiliary_, own);
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
  const AuxiliaryInputs& auxiliary_;
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

/// A graph, and whether no library saw its nested graphs: their operators are as they were.
struct Partitioned {
  std::unique_ptr<Graph> graph;
  bool unseen = false;
};

/// Whether one input, or output, of a subgraph stands for all uses of a value.
bool mergesEqual(const OptionList& options) {
  const std::pair<std::string, std::string> wanted("dedup_subgraph", "True");
  return std::find(options.begin(), options.end(), wanted) != options.end();
}

Partitioned runStrategy(const PartitionCall& call, const StrategyLibrary& library,
                        const AuxiliaryStates& states, const OutputSuffix& suffix, bool consume,
                        GraphSource* source) {
  const int max_depth = mostNestedGraphs(source);
  std::unique_ptr<Graph> graph = consume ? source->consume() : source->take();
  const NumberedGraph numbers(*graph);
  const std::vector<std::vector<int>> groups = chooseGroups(call, library, numbers, graph.get());
  const Reviewer reviewer(call, library, states, *graph);
  NodeNames names(*graph);
  Cutter cutter(graph.get(), numbers, groups, suffix, mergesEqual(call.options));
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

}  // namespace

std::shared_ptr<GraphSource> runPartitioner(const PartitionCall& call, const PartitionHost& host,
                                            std::shared_ptr<GraphSource> graph) {
  using mxnet::ext::host::quoted;
  const Library::Partitioner& partitioner = call.library->partitioners().at(call.partitioner);
  if (partitioner.strategies.empty()) {
    throw PassError("partitioner " + quoted(partitioner.name) + " of library " +
                    quoted(call.library->path()) +
                    " has no strategies; addStrategy was not called where it is registered");
  }
  for (std::size_t i = 0; i < partitioner.strategies.size(); ++i) {
    const StrategyLibrary library(call.library, call.partitioner, i, call.options, call.force_json);
    // Only reviews see which variables are auxiliary states.
    AuxiliaryStates states;
    if (library.strategy().review != nullptr) states = host.states(graph);
    const uint64_t completed = graph->completed();
    Partitioned made;
    host.visit(library.described(), [&]() {
      made = runStrategy(call, library, states, host.suffix, call.consume || i > 0, graph.get());
    });
    graph = std::make_shared<GraphSource>(std::move(made.graph));
    if (made.unseen) graph->noteCompleted(completed, true);
  }
  return graph;
}

}  // namespace passlib
