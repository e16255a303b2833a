// A filter of texts as graphs, and as JSON: "+" or "-" for the graph, then for the JSON. What is
// read must come back from its own text unchanged.
#include <memory>
#include <stdexcept>
#include <string>

#include "filter.h"
#include "lib_api.h"

using mxnet::ext::Graph;
using mxnet::ext::JsonVal;

#ifndef PASSLIB_NO_ENTRY_POINTS
mxnet::ext::MXReturnValue initialize(int) { return mxnet::ext::MX_SUCCESS; }
#endif

namespace {

bool isGraph(const std::string& text) {
  std::unique_ptr<Graph> graph;
  try {
    graph.reset(readGraph(text, mxnet::ext::JsonOptions()));
  } catch (const mxnet::ext::JsonError&) {
    return false;
  }
  const std::string written = graph->toString();
  std::string pretty;
  graph->writePretty(&pretty);
  const auto read = [](const std::string& form) {
    mxnet::ext::JsonOptions reading;
    reading.allow_control_characters = true;  // MXNet's layout has them as they are
    return std::unique_ptr<Graph>(readGraph(form, reading));
  };
  for (const std::string& form : {written, pretty}) {
    if (read(form)->toString() != written) throw std::runtime_error("the graph changed: " + form);
  }
  // Members that graphs do not have are sorted by their keys there.
  const JsonVal value = graph->toJson();
  if (!(read(value.dump())->toJson() == value)) {
    throw std::runtime_error("the graph changed: " + value.dump());
  }
  for (mxnet::ext::Node* node : graph->sorted()) {
    for (const mxnet::ext::NodeEntry& use : mxnet::ext::users({node, 0})) {
      if (use.node == nullptr) throw std::runtime_error("no user");
    }
  }
  while (!graph->nodes.empty()) graph->removeNode(graph->nodes[graph->size() / 2]);
  return true;
}

bool isJson(const std::string& text) {
  try {
    const JsonVal value = JsonVal::parse(text);
    if (!(JsonVal::parse(value.dump()) == value)) throw std::runtime_error("the JSON changed");
    return true;
  } catch (const mxnet::ext::JsonError&) {
    return false;
  }
}

std::string answer(const std::string& text) {
  return std::string(isGraph(text) ? "+" : "-") + (isJson(text) ? "+" : "-");
}

}  // namespace

int main() { return filter(&answer); }
