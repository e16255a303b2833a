// Passes that edit: each one in the way that an author would write it.
#include <algorithm>

#include "lib_api.h"

using namespace mxnet::ext;

typedef std::unordered_map<std::string, std::string> Options;

/// Inserts a relu after each output of the graph.
MXReturnValue appendRelu(Graph* graph, const Options& options) {
  const auto suffix = options.find("suffix");
  const std::vector<NodeEntry> heads = graph->outputs;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    Node* relu = graph->addNode(
        "appended" + std::to_string(i) + (suffix == options.end() ? "" : suffix->second),
        "Activation");
    relu->attrs["act_type"] = "relu";
    graph->connect(heads[i].node, heads[i].entry, relu, 0);
    graph->outputs[i] = NodeEntry(relu, 0);
  }
  return MX_SUCCESS;
}
REGISTER_PASS(appendRelu).setBody(appendRelu);

/// Changes the attributes of the graph and of those in it: lists their keys, drops "drop", and
/// counts the items of "list".
MXReturnValue editGraphAttributes(Graph* graph, const Options&) {
  std::vector<Graph*> graphs(1, graph);
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    std::map<std::string, JsonVal> copy = graphs[i]->attrs;
    JsonVal keys(LIST);
    for (const auto& attribute : graphs[i]->attrs) keys.list.push_back(JsonVal(attribute.first));
    graphs[i]->attrs["keys"] = keys;
    const auto list = graphs[i]->attrs.find("list");
    if (list != graphs[i]->attrs.end()) {
      const JsonVal count(static_cast<int>(list->second.list.size()));
      graphs[i]->attrs.insert(std::make_pair("count", count));
      list->second.list.push_back(count);
    }
    if (copy.count("drop") != 0) graphs[i]->attrs.erase("drop");
    for (Node* node : graphs[i]->nodes) {
      graphs.insert(graphs.end(), node->subgraphs.begin(), node->subgraphs.end());
    }
  }
  return MX_SUCCESS;
}
REGISTER_PASS(editGraphAttributes).setBody(editGraphAttributes);

/// Removes each operator `op` of one input and puts its input in its place.
MXReturnValue removeOperator(Graph* graph, const Options& options) {
  const std::vector<Node*> nodes = graph->nodes;
  for (Node* node : nodes) {
    if (node->op != options.at("op") || node->inputs.size() != 1) continue;
    graph->replace(NodeEntry(node, 0), node->inputs[0]);
    graph->removeNode(node);
  }
  return MX_SUCCESS;
}
REGISTER_PASS(removeOperator).setBody(removeOperator);

/// Puts `prefix` before the names of all operators.
MXReturnValue renameOperators(Graph* graph, const Options& options) {
  for (Node* node : graph->nodes) {
    if (node->op != "null") node->name = options.at("prefix") + node->name;
  }
  return MX_SUCCESS;
}
REGISTER_PASS(renameOperators).setBody(renameOperators);

/// Adds a constant to the first output, by a new variable.
MXReturnValue addBias(Graph* graph, const Options&) {
  Node* bias = graph->addNode("added_bias", "null");
  bias->attrs["__shape__"] = "(1,)";
  graph->inputs.push_back(bias);
  Node* sum = graph->addNode("added_sum", "broadcast_add");
  const NodeEntry head = graph->outputs[0];
  graph->connect(head.node, head.entry, sum, 0);
  graph->connect(bias, 0, sum, 1);
  graph->outputs[0] = NodeEntry(sum, 0);
  return MX_SUCCESS;
}
REGISTER_PASS(addBias).setBody(addBias);

/// Makes the output of the first operator the graph's only one; the rest falls off.
MXReturnValue cutAfterFirst(Graph* graph, const Options&) {
  for (Node* node : graph->nodes) {
    if (node->op == "null") continue;
    graph->outputs.assign(1, NodeEntry(node, 0));
    return MX_SUCCESS;
  }
  return MX_FAIL;
}
REGISTER_PASS(cutAfterFirst).setBody(cutAfterFirst);

/// Lists the nodes backwards: consumers before producers.
MXReturnValue reverseNodes(Graph* graph, const Options&) {
  std::reverse(graph->nodes.begin(), graph->nodes.end());
  return MX_SUCCESS;
}
REGISTER_PASS(reverseNodes).setBody(reverseNodes);

/// Erases a dead end by hand, as an author may who manages the vectors himself: the last operator
/// is deleted, and its producer becomes the output.
MXReturnValue deleteLast(Graph* graph, const Options&) {
  Node* last = graph->outputs[0].node;
  if (last->inputs.empty()) return MX_FAIL;
  const NodeEntry input = last->inputs[0];
  for (const NodeEntry& entry : last->inputs) {
    std::vector<NodeEntry>& uses = entry.node->outputs;
    uses.erase(std::remove_if(uses.begin(), uses.end(),
                              [last](const NodeEntry& use) { return use.node == last; }),
               uses.end());
  }
  graph->nodes.erase(std::find(graph->nodes.begin(), graph->nodes.end(), last));
  graph->outputs.assign(1, input);
  delete last;
  return MX_SUCCESS;
}
REGISTER_PASS(deleteLast).setBody(deleteLast);

/// Nests the first operator's graph in a new node, by fromString.
MXReturnValue nest(Graph* graph, const Options&) {
  Node* node = graph->addNode("nested", "_subgraph");
  node->subgraphs.push_back(Graph::fromString(graph->toString()));
  const NodeEntry head = graph->outputs[0];
  graph->connect(head.node, head.entry, node, 0);
  graph->outputs[0] = NodeEntry(node, 0);
  return MX_SUCCESS;
}
REGISTER_PASS(nest).setBody(nest);

/// Adds a node with two outputs and uses the second.
MXReturnValue splitHead(Graph* graph, const Options&) {
  Node* split = graph->addNode("split", "SliceChannel");
  split->attrs["num_outputs"] = "2";
  const NodeEntry head = graph->outputs[0];
  graph->connect(head.node, head.entry, split, 0);
  graph->outputs.assign(1, NodeEntry(split, 1));
  return MX_SUCCESS;
}
REGISTER_PASS(splitHead).setBody(splitHead);

/// Nests a graph with a node that no output needs in the node at the head.
MXReturnValue nestInHead(Graph* graph, const Options&) {
  Graph* nested = new Graph();
  graph->outputs.at(0).node->subgraphs.push_back(nested);
  nested->addNode("unused", "relu");
  nested->outputs.emplace_back(nested->addNode("inner", "null"), 0);
  return MX_SUCCESS;
}
REGISTER_PASS(nestInHead).setBody(nestInHead);

/// Keeps the attributes of the node at the head, or gives the kept ones to it.
MXReturnValue keepAttributes(Graph* graph, const Options& options) {
  static NodeAttributes kept;
  Node* head = graph->outputs.at(0).node;
  if (options.at("what") == "take") {
    kept = std::move(head->attrs);
  } else {
    head->attrs.swap(kept);
  }
  return MX_SUCCESS;
}
REGISTER_PASS(keepAttributes).setBody(keepAttributes);

/// Hands the attributes of each node to the one before it, and those of the first to the last.
MXReturnValue moveAttributes(Graph* graph, const Options&) {
  auto first = std::move(graph->nodes.front()->attrs);
  for (std::size_t i = 0; i + 1 < graph->nodes.size(); ++i) {
    graph->nodes[i]->attrs.swap(graph->nodes[i + 1]->attrs);
  }
  graph->nodes.back()->attrs = std::move(first);
  return MX_SUCCESS;
}
REGISTER_PASS(moveAttributes).setBody(moveAttributes);

/// Makes the maps of all nodes and writes to each in another way; some are as before in the end.
MXReturnValue changeAttributes(Graph* graph, const Options&) {
  for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
    NodeAttributes& attrs = graph->nodes[i]->attrs;
    auto first = attrs.begin();
    if (first == attrs.end()) continue;
    for (auto each = first; each != attrs.end(); ++each) {
      if (each->first < first->first) first = each;  // the order of maps depends on their history
    }
    const std::string key = first->first;
    const std::string text = first->second;
    std::string longer = text + "longer";
    if (i % 6 == 1) attrs.erase(key);
    if (i % 6 == 2) first->second = text;
    const bool ascii = !text.empty() && (text[0] & 0x80) == 0;  // else it is a part of a character
    if (i % 6 == 3 && ascii) first->second[0] = 'x';
    if (i % 6 == 4) first->second = longer;
    if (i % 6 == 5) {
      attrs.erase(key);
      attrs[key] = text;
    }
  }
  return MX_SUCCESS;
}
REGISTER_PASS(changeAttributes).setBody(changeAttributes);

/// Replaces each Abs behind a Neg, or alone, by a new node, in one of three ways.
MXReturnValue renewAbs(Graph* graph, const Options& options) {
  const std::string way = options.at("way");
  std::vector<Node*> unwanted;
  for (Node* node : graph->sorted()) {
    if (node->op != "abs" && node->op != "Abs") continue;
    Node* made = graph->addNode(node->name + "_new", node->op);
    Node* before = node->inputs[0].node;
    if (way == "behind") {
      graph->connect(node, 0, made, 0);
      graph->replace(NodeEntry(node, 0), NodeEntry(made, 0));
      continue;
    }
    const bool both = way == "both" && before->inputs.size() == 1;
    const NodeEntry source = both ? before->inputs[0] : node->inputs[0];
    graph->connect(source.node, source.entry, made, 0);
    graph->replace(NodeEntry(node, 0), NodeEntry(made, 0));
    unwanted.push_back(node);
    if (both) unwanted.push_back(before);
  }
  graph->removeNodes(unwanted);
  return MX_SUCCESS;
}
REGISTER_PASS(renewAbs).setBody(renewAbs);

MXReturnValue initialize(int) { return MX_SUCCESS; }
