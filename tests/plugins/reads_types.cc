// A pass that reads inferred shapes and types in the way that its option names, or not at all.

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "lib_api.h"

namespace {

using namespace mxnet::ext;  // NOLINT: as in MXNet's examples
using Attributes = std::unordered_map<std::string, std::string>;

const std::string kShape = "__ext_shape__";
const std::string kType = "__ext_dtype__";

std::string read(const std::string& how, Node* node) {
  NodeAttributes& attributes = node->attrs;
  if (how == "at") return attributes.at(kShape) + attributes.at(kType);
  if (how == "index") return attributes[kShape] + attributes[kType];
  if (how == "find") return attributes.find(kShape)->second + attributes.find(kType)->second;
  if (how == "after") {  // the map is made by the read of another attribute
    attributes.find("other");
    return attributes.at(kShape) + attributes.at(kType);
  }
  if (how == "map") {
    const Attributes& map = attributes;
    return map.at(kShape) + map.at(kType);
  }
  if (how == "copy") {
    const NodeAttributes copy = attributes;
    return copy.at(kShape) + copy.at(kType);
  }
  if (how == "walk") {
    std::map<std::string, std::string> sorted(attributes.begin(), attributes.end());
    return sorted.at(kShape) + sorted.at(kType);
  }
  if (how == "helpers") {
    std::string text = std::to_string(typeOf(NodeEntry(node, 0)));
    for (int64_t extent : shapeOf(NodeEntry(node, 0)).extents) text += " " + std::to_string(extent);
    return text;
  }
  // No reads of types.
  if (how == "others") {
    attributes["other"] = "1";
    return std::to_string(attributes.size()) + textAttr(node, "other");
  }
  if (how == "edits") {
    const NodeAttributes copy = attributes;
    node->attrs = copy;
    attributes.erase("other");
  }
  return "";
}

/// Reads all types in four threads, each in another order and in another way.
std::string readInThreads(const Graph& graph) {
  const std::vector<Node*> nodes = graph.sorted();
  const char* const ways[] = {"at", "helpers", "after", "map"};
  std::vector<std::string> texts(4 * nodes.size());
  std::vector<std::thread> threads;
  for (std::size_t way = 0; way < 4; ++way) {
    threads.emplace_back([&, way]() {
      for (std::size_t step = 0; step < nodes.size(); ++step) {
        const std::size_t pos = way % 2 == 0 ? step : nodes.size() - 1 - step;
        texts[4 * pos + way] = read(ways[way], nodes[pos]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::string all;
  for (const std::string& text : texts) all += text + "\n";
  return all;
}

MXReturnValue readTypes(Graph* graph, const OptionValues& options) {
  const std::string& how = options.text("how");
  std::string all = how == "printed" ? graph->toString() : "";
  if (how == "threads") all = readInThreads(*graph);
  for (Node* node : graph->sorted()) all += node->name + ": " + read(how, node) + "\n";
  graph->nodes.back()->attrs["__found__"] = all;
  return MX_SUCCESS;
}

REGISTER_PASS(readTypes).setBody(readTypes).option("how", "nothing", "How types are read.");

}  // namespace

MXReturnValue initialize(int /*version*/) { return MX_SUCCESS; }
