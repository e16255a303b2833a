// Passes that behave: they show what reaches a pass, and what of it comes back.
#include <chrono>
#include <map>
#include <thread>

#include "lib_api.h"

using namespace mxnet::ext;

typedef std::unordered_map<std::string, std::string> Options;

MXReturnValue identity(Graph*, const Options&) { return MX_SUCCESS; }
REGISTER_PASS(identity).setBody(identity);

/// Prints its options, sorted.
MXReturnValue echoOptions(Graph*, const Options& options) {
  for (const auto& option : std::map<std::string, std::string>(options.begin(), options.end())) {
    std::cout << option.first << "=" << option.second << "\n";
  }
  return MX_SUCCESS;
}
REGISTER_PASS(echoOptions).setBody(echoOptions);

/// Prints the graph as MXNet prints it.
MXReturnValue showGraph(Graph* graph, const Options&) {
  graph->print();
  return MX_SUCCESS;
}
REGISTER_PASS(showGraph).setBody(showGraph);

/// Prints the top-level attributes and the JSON of the graph that it sees.
MXReturnValue showJson(Graph* graph, const Options&) {
  std::cout << graph->toString() << std::endl;
  return MX_SUCCESS;
}
REGISTER_PASS(showJson).setBody(showJson);

/// Prints `lines` numbered lines, more than any buffer holds.
MXReturnValue printMuch(Graph*, const Options& options) {
  const int lines = std::stoi(options.at("lines"));
  for (int i = 0; i < lines; ++i) std::cout << "line " << i << " \xC3\xA4\n";
  return MX_SUCCESS;
}
REGISTER_PASS(printMuch).setBody(printMuch);

/// Prints, then fails.
MXReturnValue printThenFail(Graph*, const Options&) {
  std::cout << "said before the end";
  MX_ERROR_MSG << "and then it failed";
  return MX_FAIL;
}
REGISTER_PASS(printThenFail).setBody(printThenFail);

/// Sleeps `milliseconds` and says hello from its thread.
MXReturnValue slow(Graph*, const Options& options) {
  std::this_thread::sleep_for(std::chrono::milliseconds(std::stoi(options.at("milliseconds"))));
  std::cout << "slept for " << options.at("who") << "\n";
  return MX_SUCCESS;
}
REGISTER_PASS(slow).setBody(slow);

/// Uses exceptions inside, lets none out, and leaves a message although it succeeds.
MXReturnValue catchesItself(Graph* graph, const Options&) {
  try {
    graph->getNode(graph->size());
  } catch (const std::out_of_range&) {
    MX_ERROR_MSG << "harmless remark of a pass that succeeded";
    return MX_SUCCESS;
  }
  return MX_FAIL;
}
REGISTER_PASS(catchesItself).setBody(catchesItself);

/// Takes the graph to JSON text and JSON values and rebuilds an attribute from them.
MXReturnValue throughJson(Graph* graph, const Options&) {
  JsonVal json = graph->toJson();
  const std::size_t count = json.map[JsonVal("nodes")].list.size();
  JsonVal summary(MAP);
  summary.map[JsonVal("count")] = JsonVal::integer(static_cast<int64_t>(count));
  for (JsonVal& node : json.map[JsonVal("nodes")].list) {
    summary.map[JsonVal("operators")].type = MAP;
    JsonVal& times = summary.map[JsonVal("operators")].map[node.map[JsonVal("op")]];
    times = JsonVal(times.type == NUM ? times.num + 1 : 1);
  }
  graph->outputs[0].node->attrs["__summary__"] = summary.dump();
  const std::unique_ptr<Graph> again(Graph::fromJson(json));
  return again->toString() == graph->toString() ? MX_FAIL : MX_SUCCESS;  // one attribute differs
}
REGISTER_PASS(throughJson).setBody(throughJson);

/// Marks every node with the operators that take its outputs.
MXReturnValue markConsumers(Graph* graph, const Options&) {
  for (Node* node : graph->nodes) {
    std::string text;
    for (const NodeEntry& use : node->outputs) {
      text += use.node->name + ":" + std::to_string(use.entry) + ";";
    }
    node->attrs["__consumers__"] = text;
  }
  return MX_SUCCESS;
}
REGISTER_PASS(markConsumers).setBody(markConsumers);

/// Marks every variable inside nested graphs, and the nodes that hold them.
MXReturnValue markSubgraphs(Graph* graph, const Options&) {
  std::vector<std::pair<Graph*, int>> pending(1, std::make_pair(graph, 0));
  while (!pending.empty()) {
    const auto level = pending.back();
    pending.pop_back();
    for (Node* node : level.first->nodes) {
      node->attrs["__level__"] = std::to_string(level.second);
      for (Graph* nested : node->subgraphs) pending.emplace_back(nested, level.second + 1);
    }
  }
  return MX_SUCCESS;
}
REGISTER_PASS(markSubgraphs).setBody(markSubgraphs);

/// Lets the node called `after` wait for the node called `before`.
MXReturnValue addControl(Graph* graph, const Options& options) {
  Node* before = nullptr;
  Node* after = nullptr;
  for (Node* node : graph->nodes) {
    if (node->name == options.at("before")) before = node;
    if (node->name == options.at("after")) after = node;
  }
  if (before == nullptr || after == nullptr) {
    MX_ERROR_MSG << "no such nodes";
    return MX_FAIL;
  }
  after->control_deps.push_back(before);
  return MX_SUCCESS;
}
REGISTER_PASS(addControl).setBody(addControl);

MXReturnValue initialize(int) { return MX_SUCCESS; }
