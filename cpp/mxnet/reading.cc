#include "mxnet/reading.h"

#include <cstdint>

#include "errors.h"
#include "graph/check.h"
#include "mxnet/operators.h"
#include "mxnet/upgrade.h"

namespace passlib::symbols {

namespace {

using mxnet::ext::JsonVal;

/// How deep graphs may be nested in one another.
constexpr int kMostNested = 100;

constexpr const char* kVersion = "mxnet_version";

/// The attributes of the graph that the file states, such as its version.
JsonVal statedAttributes(const GraphTexts& attributes) {
  const auto found = attributes.find(kOwnAttribute);
  if (found == attributes.end()) return JsonVal(mxnet::ext::MAP);
  JsonVal stated;
  try {
    stated = JsonVal::parse(found->second);
  } catch (const mxnet::ext::JsonError& error) {
    throw FormatError(std::string("the top-level 'attrs': ") + error.what());
  }
  if (stated.type != mxnet::ext::MAP) {
    throw FormatError("the top-level 'attrs' must be an object");
  }
  return stated;
}

int64_t statedVersion(const GraphTexts& attributes) {
  const JsonVal stated = statedAttributes(attributes);
  const auto found = stated.map.find(JsonVal(kVersion));
  if (found == stated.map.end()) return kUnknownVersion;
  const JsonVal& pair = found->second;
  int64_t version = 0;
  if (pair.type == mxnet::ext::LIST && pair.list.size() == 2 && pair.list[0] == JsonVal("int") &&
      pair.list[1].toInteger(&version)) {
    return version;
  }
  std::string shown = pair.dump();
  if (shown.size() > 40) shown = shown.substr(0, 40) + "...";
  throw FormatError("\"mxnet_version\" must be [\"int\", number], not " + shown);
}

}  // namespace

Symbol readSymbol(const std::shared_ptr<std::string>& text) {
  mxnet::ext::JsonOptions reading;
  reading.allow_control_characters = true;  // as MXNet writes them
  Symbol made;
  made.graph = std::make_shared<GraphSource>(*text, text, reading, true);
  if (made.graph->depth() > kMostNested) {
    throw FormatError("graphs are nested in one another more than " + std::to_string(kMostNested) +
                      " levels deep; if the file is trusted, read it with passlib's Python package "
                      "inside passlib.limits(graph_depth=...)");
  }
  made.attributes = printAttributes(made.graph->attributes());
  const int64_t version = statedVersion(made.attributes);
  Graph* const graph = made.graph->edit();
  if (version < kCurrentVersion) {
    upgrade(graph, version);
    made.attributes = {{kOwnAttribute, "{\"" + std::string(kVersion) + "\": [\"int\", " +
                                           std::to_string(kCurrentVersion) + "]}"}};
  }
  completeOperators(graph);
  return made;
}

std::string printSymbol(const Graph& graph, const GraphTexts& attributes) {
  mxnet::ext::host::TextBuffer text;
  mxnet::ext::host::GraphWriter(true, &text, MX_STR_ORIGIN)
      .write(graph, parseAttributes(attributes));
  return text.str();
}

}  // namespace passlib::symbols
