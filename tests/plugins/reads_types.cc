// A pass that reads inferred shapes and types in the way that its option names, or not at all.

#include <map>
#include <string>

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

MXReturnValue readTypes(Graph* graph, const OptionValues& options) {
  const std::string& how = options.text("how");
  std::string all = how == "printed" ? graph->toString() : "";
  for (Node* node : graph->sorted()) all += node->name + ": " + read(how, node) + "\n";
  graph->nodes.back()->attrs["__found__"] = all;
  return MX_SUCCESS;
}

REGISTER_PASS(readTypes).setBody(readTypes).option("how", "nothing", "How types are read.");

}  // namespace

MXReturnValue initialize(int /*version*/) { return MX_SUCCESS; }
