// Questions about some nodes of a graph, and changes to them, without a list of all in Python.

#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/calls/exit_gate.h"
#include "bindings/common.h"
#include "bindings/operator_table.h"
#include "graph/attributes.h"
#include "graph/difference.h"
#include "graph/graph.h"
#include "graph/source.h"
#include "graph/text_table.h"
#include "graph/variables.h"

namespace passlib {

namespace py = pybind11;

namespace {

using NodeAttribute = std::tuple<std::size_t, std::string, std::string>;

/// Whether a number of outputs is the known one, or there is one if none is known (0).
bool isSettled(int outputs, int known) { return known != 0 ? outputs == known : outputs > 0; }

/// Whether the number of outputs of a node is what a table says.
bool isSettled(const Node& node, const OperatorFacts& facts, const OperatorTable& table) {
  const int known = facts.outputs != 0 ? facts.outputs : facts.carried(node);
  if (!isSettled(node.num_outputs, known)) return false;
  if (known != 0 || !facts.varying) return true;
  if (facts.counting.empty()) return table.counted.find(node) == node.num_outputs;
  return attributeOf(node, facts.counting) == std::to_string(node.num_outputs);
}

/// Whether names of operators and numbers of outputs of a graph are what a table says, as far as
/// the kinds of its nodes tell it.
bool isComplete(const OperatorKinds& kinds, const OperatorTable& table) {
  OperatorLookup operators(table);
  for (const OperatorKinds::Kind& kind : kinds.kinds()) {
    const OperatorFacts& facts = operators.find(kind.op);
    if (!facts.registered.empty() || facts.varying) return false;
    if (!isSettled(kind.outputs, facts.outputs)) return false;
  }
  return kinds.isKnown();
}

/// Nodes whose number of outputs the schema must determine, those of one operator with the same
/// attributes at once: op, attrs, and for each position, present number and number determined by
/// the subgraph.
py::list doubtfulOutputs(GraphSource& source, const OperatorTable& table) {
  const std::shared_ptr<const Graph> graph = source.get();
  OperatorLookup operators(table);
  TextMap<py::list> kinds;
  py::list list;
  for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
    mxnet::ext::host::prefetchNode(graph->nodes, i, &Node::op);
    const Node& node = *graph->nodes[i];
    const OperatorFacts& facts = operators.find(node.op);
    if (isSettled(node, facts, table)) continue;
    const int carried = facts.carried(node);
    const auto [kind, is_new] = kinds.try_emplace(kindOf(node));
    if (is_new) list.append(py::make_tuple(node.op, attributeDict(node), kind->second));
    kind->second.append(py::make_tuple(i, node.num_outputs, carried));
  }
  return list;
}

/// Notes the number of outputs that the schema counted for nodes like this one.
void addCounted(OperatorTable& table, GraphSource& source, std::size_t position, int outputs) {
  table.counted.add(*source.get()->nodes.at(position), outputs);
}

/// Notes that there is nothing more to find out about operators.
void noteCompleted(GraphSource& source, const OperatorTable& table) {
  source.noteCompleted(table.number(), false);
}

void setOutputs(GraphSource& source, const std::vector<std::pair<std::size_t, int>>& counts) {
  Graph* graph = source.edit();
  for (const auto& [position, count] : counts)
    mxnet::ext::host::declareOutputs(graph->nodes.at(position), count);
}

/// The nodes with these operators: position, op, attrs, number of inputs, subgraphs.
py::list listNodesWith(GraphSource& source, const TextSet& operators) {
  const std::shared_ptr<const Graph> graph = source.get();
  py::list list;
  for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
    const Node& node = *graph->nodes[i];
    if (operators.count(node.op) == 0) continue;
    list.append(
        py::make_tuple(i, node.op, attributeDict(node), node.inputs.size(), copySubgraphs(node)));
  }
  return list;
}

/// How often each operator occurs.
TextMap<int> countOperators(GraphSource& source) {
  TextMap<int> counts;
  const OperatorKinds kinds = source.kinds();
  if (kinds.isKnown()) {
    for (const OperatorKinds::Kind& kind : kinds.kinds()) {
      counts[kind.op] += static_cast<int>(kind.nodes);
    }
    return counts;
  }
  const std::shared_ptr<const Graph> graph = source.get();
  RecentTexts<TextMap<int>::value_type> recent;
  for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
    mxnet::ext::host::prefetchNode(graph->nodes, i, &Node::op);
    const Node* const node = graph->nodes[i];
    TextMap<int>::value_type*& known = recent.place(node->op);
    if (known == nullptr || known->first != node->op) known = &*counts.emplace(node->op, 0).first;
    ++known->second;
  }
  return counts;
}

/// Uses of variables: name and attributes of the variable; operator, attributes and input number
/// of the consumer.
py::list listUses(GraphSource& source, const TextSet& names) {
  const std::shared_ptr<const Graph> graph = source.get();
  py::list uses;
  for (const Node* node : graph->nodes) {
    for (std::size_t i = 0; i < node->inputs.size(); ++i) {
      const Node& variable = *node->inputs[i].node;
      if (variable.op != "null" || names.count(variable.name) == 0) continue;
      uses.append(py::make_tuple(variable.name, attributeDict(variable), node->op,
                                 attributeDict(*node), i));
    }
  }
  return uses;
}

/// Names of removed, added and changed nodes.
py::tuple difference(GraphSource& before, GraphSource& after) {
  const std::shared_ptr<const Graph> left = before.get();
  const std::shared_ptr<const Graph> right = after.get();
  Difference found;
  {
    const ReleasedGil released;
    found = differenceOf(*left, *right);
  }
  return py::make_tuple(found.removed, found.added, found.changed);
}

/// Names of variables that another graph does not have.
std::vector<std::string> missingVariables(GraphSource& source, GraphSource& other) {
  const std::shared_ptr<const Graph> graph = source.get();
  const std::shared_ptr<const Graph> after = other.get();
  return missingNames(namesOfVariables(*graph), *after);
}

/// Calls `visit` with each node of a graph and of its nested graphs.
template <typename Visit>
void forEachNode(Graph* root, Visit visit) {
  mxnet::ext::host::forEachNode(root, [](Graph*) {}, [&](Graph*, Node* node) { visit(node); });
}

/// Replaces aliases of operators. The text of a graph that has none of them is kept. Returns
/// whether there may be doubtful outputs: asked in the same walk, since most graphs have neither.
bool renameOperators(GraphSource& source, const OperatorTable& table) {
  if (isComplete(source.kinds(), table)) {
    source.noteCompleted(table.number(), false);
    return false;
  }
  bool present = false;
  bool doubtful = false;
  const std::shared_ptr<const Graph> graph = source.get();
  OperatorLookup operators(table);
  const auto look = [&](const Node* node) {
    const OperatorFacts& facts = operators.find(node->op);
    present = present || !facts.registered.empty();
    doubtful = doubtful || !isSettled(*node, facts, table);
  };
  if (source.nestedCompleted() == table.number()) {
    for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
      mxnet::ext::host::prefetchNode(graph->nodes, i, &Node::op);
      look(graph->nodes[i]);
    }
  } else {
    // Only read here; the walk over nested graphs takes pointers that could be written to.
    forEachNode(const_cast<Graph*>(graph.get()), look);
  }
  if (!present) {
    if (!doubtful) source.noteCompleted(table.number(), false);
    return doubtful;
  }
  forEachNode(source.edit(), [&](Node* node) {
    const OperatorFacts& facts = operators.find(node->op);
    if (!facts.registered.empty()) node->op = facts.registered;
  });
  return true;
}

/// The variables: name, and the value of one attribute, empty if a variable has none. Others than
/// empty values are only those that begin with a prefix.
py::list variablesWith(GraphSource& source, const std::string& key, const std::string& prefix) {
  const std::shared_ptr<const Graph> graph = source.get();
  py::list list;
  for (const Node* node : graph->nodes) {
    if (node->op != "null") continue;
    const std::string_view value = attributeOf(*node, key);
    if (value.empty() || value.compare(0, prefix.size(), prefix) == 0) {
      list.append(py::make_tuple(node->name, value));
    }
  }
  return list;
}

/// The outputs of the graph: the value of one attribute of the node, its name, and the output.
py::list headsWith(GraphSource& source, const std::string& key) {
  const std::shared_ptr<const Graph> graph = source.get();
  py::list list;
  for (const NodeEntry& head : graph->outputs) {
    list.append(py::make_tuple(attributeOf(*head.node, key), head.node->name, head.entry));
  }
  return list;
}

void setNodeAttributes(GraphSource& source, const std::vector<NodeAttribute>& values) {
  Graph* graph = source.edit();
  for (const auto& [position, key, text] : values) {
    setAttribute(graph->nodes.at(position), key, text);
  }
}

void dropNodeAttributes(GraphSource& source, const std::vector<std::string>& keys) {
  forEachNode(source.edit(), [&keys](Node* node) { dropAttributes(node, keys); });
}

/// Whether a node has an attribute, in nested graphs too.
bool hasNodeAttribute(GraphSource& source, const std::string& key) {
  const std::shared_ptr<const Graph> graph = source.get();
  bool found = false;
  // The walk only reads.
  forEachNode(const_cast<Graph*>(graph.get()),
              [&](const Node* node) { found = found || node->attrs.count(key) != 0; });
  return found;
}

}  // namespace

void bindQueries(py::module_* m, GraphClass* graphs) {
  using Names = OperatorTable::Names;
  using NameMap = TextMap<std::string>;
  py::class_<OperatorTable>(*m, "OperatorTable")
      .def(py::init<const TextMap<int>&, const Names&, const Names&, const NameMap&,
                    const NameMap&>(),
           py::arg("fixed"), py::arg("varying"), py::arg("carrying") = Names(),
           py::arg("registered") = NameMap(), py::arg("counting") = NameMap())
      .def("add_counted", &addCounted, py::arg("graph"), py::arg("position"), py::arg("outputs"));
  graphs->def("operators", &countOperators)
      .def("uses", &listUses, py::arg("names"))
      .def("nodes_with", &listNodesWith, py::arg("operators"))
      .def("difference", &difference, py::arg("other"))
      .def("missing_variables", &missingVariables, py::arg("other"))
      .def("variables_with", &variablesWith, py::arg("key"), py::arg("prefix") = "")
      .def("heads_with", &headsWith, py::arg("key"))
      .def("doubtful_outputs", &doubtfulOutputs, py::arg("table"))
      .def("set_outputs", &setOutputs)
      .def("rename_operators", &renameOperators, py::arg("table"))
      .def("note_completed", &noteCompleted, py::arg("table"))
      .def("set_node_attributes", &setNodeAttributes)
      .def("has_node_attribute", &hasNodeAttribute, py::arg("key"))
      .def("drop_node_attributes", &dropNodeAttributes);
}

}  // namespace passlib
