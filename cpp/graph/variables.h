// The variables of a graph, by role.
#ifndef PASSLIB_GRAPH_VARIABLES_H_
#define PASSLIB_GRAPH_VARIABLES_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "graph/text_table.h"

namespace passlib {

/// Inputs of an operator that are auxiliary states, by operator name.
using AuxiliaryInputs = TextMap<std::vector<int>>;

/// The same by position of the node, for nodes whose operator name does not determine them.
using NodeStates = std::unordered_map<std::size_t, std::vector<int>>;

/// Both for one graph. The entry of a node takes precedence over that of its operator.
struct AuxiliaryStates {
  AuxiliaryInputs by_operator;
  NodeStates by_node;
};

/// Names in one piece of memory.
class NameList {
 public:
  std::size_t size() const { return ends_.size(); }
  std::string_view operator[](std::size_t place) const {
    const std::size_t begin = place == 0 ? 0 : ends_[place - 1];
    return std::string_view(texts_).substr(begin, ends_[place] - begin);
  }
  void reserve(std::size_t count, std::size_t bytes) {
    ends_.reserve(count);
    texts_.reserve(bytes);
  }
  void push(std::string_view name) {
    texts_ += name;
    ends_.push_back(texts_.size());
  }

 private:
  std::string texts_;
  std::vector<std::size_t> ends_;
};

/// Names of variables, in the order of the nodes.
struct Variables {
  NameList args;
  NameList aux;
};

/// Returns the names of all variables; `aux` has those at an auxiliary input of some node. An entry
/// of `own` takes precedence over that of the node's operator.
Variables listVariables(const Graph& graph, const AuxiliaryInputs& auxiliary,
                        const NodeStates& own = {});

/// Returns the names of all variables.
NameList namesOfVariables(const Graph& graph);

/// Of the names that are keys, those that a variable of the graph has, or of a graph nested in it.
TextViewSet usedAmong(const TextViewSet& names, Graph* graph);

/// Returns the names that no variable of the graph has.
std::vector<std::string> missingNames(const NameList& names, const Graph& graph);

}  // namespace passlib

#endif  // PASSLIB_GRAPH_VARIABLES_H_
