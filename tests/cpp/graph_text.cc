// Reads graphs in JSON from standard input, each after its length in four bytes (least significant
// first), and answers each on one line: "+", the graph's JSON and what its text does not say, or
// "-", code, offset, line, column and message. Hosts and libraries have a reader each: this is
// compiled for both.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

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
      text += node->_hasOutput(node->num_outputs) ? "?" : "!";
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

std::string answer(const std::string& text, bool control_characters) {
  try {
    mxnet::ext::JsonOptions reading;
    reading.allow_control_characters = control_characters;
    reading.max_depth = 2000;
    const std::unique_ptr<Graph> graph(Graph::fromString(text.data(), text.size(), reading));
    return "+" + graph->toString() + links(*graph);
  } catch (const mxnet::ext::JsonError& error) {
    std::string said = "-" + std::to_string(static_cast<int>(error.code));
    for (const std::size_t place : {error.offset, error.line, error.column}) {
      said += " " + std::to_string(place);
    }
    return said + " " + error.what();
  }
}

}  // namespace

int main() {
  unsigned char head[4];
  while (fread(head, 1, 4, stdin) == 4) {
    const std::size_t size =
        head[0] | head[1] << 8 | head[2] << 16 | static_cast<std::size_t>(head[3]) << 24;
    std::string text(size, '\0');
    if (size > 0 && fread(&text[0], 1, size, stdin) != size) return 1;
    printf("%s\n", onOneLine(answer(text, size % 2 == 0)).c_str());
    fflush(stdout);
  }
  return 0;
}
