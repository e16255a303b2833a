// A filter of graphs in JSON: "+", the graph's JSON and what its text does not say, or "-", code,
// offset, line, column and message. Hosts and libraries have a reader each: this is compiled for
// both.
#include <memory>
#include <string>
#include <vector>

#include "filter.h"
#include "lib_api.h"

using mxnet::ext::Graph;
using mxnet::ext::Node;

#ifndef PASSLIB_NO_ENTRY_POINTS
mxnet::ext::MXReturnValue initialize(int) { return mxnet::ext::MX_SUCCESS; }
#endif

namespace {

/// The numbers of outputs, the variables and the consumers in all graphs.
std::string links(const Graph& root) {
  std::string text;
  std::vector<const Graph*> graphs(1, &root);
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    const Graph& graph = *graphs[i];
    for (const Node* variable : graph.inputs) text += " " + variable->name;
    for (const Node* node : graph.nodes) {
      text += " / " + std::to_string(node->num_outputs);
      text += mxnet::ext::detail::hasOutput(*node, node->num_outputs) ? "?" : "!";
      for (const mxnet::ext::NodeEntry& use : node->outputs) {
        text += " " + use.node->name + ":" + std::to_string(use.entry);
      }
      graphs.insert(graphs.end(), node->subgraphs.begin(), node->subgraphs.end());
    }
  }
  return text;
}

std::string onOneLine(std::string text) {
  for (char& character : text) {
    if (character == '\n' || character == '\0') character = ' ';
  }
  return text;
}

/// Texts of even length may have control characters.
std::string answer(const std::string& text) {
  try {
    mxnet::ext::JsonOptions reading;
    reading.allow_control_characters = text.size() % 2 == 0;
    reading.max_depth = 2000;
    const std::unique_ptr<Graph> graph(readGraph(text, reading));
    return onOneLine("+" + graph->toString() + links(*graph));
  } catch (const mxnet::ext::JsonError& error) {
    return onOneLine(describe(error));
  }
}

}  // namespace

int main() { return filter(&answer); }
