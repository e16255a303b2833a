// Functions that the passes of this folder share. They use only what MXNet's lib_api.h has too: the
// same sources are compiled against passlib's header and against MXNet's.
#ifndef PASSLIB_TESTS_INTEROP_EDGES_H_
#define PASSLIB_TESTS_INTEROP_EDGES_H_

#include <string>
#include <unordered_map>
#include <vector>

#include "mxnet/lib_api.h"

typedef std::unordered_map<std::string, std::string> Options;

inline std::string option(const Options& options, const std::string& key,
                          const std::string& otherwise) {
  const Options::const_iterator found = options.find(key);
  return found == options.end() ? otherwise : found->second;
}

inline std::string attribute(const mxnet::ext::Node* node, const std::string& key) {
  return option(node->attrs, key, "");
}

/// A snapshot, for passes that add nodes while they walk.
inline std::vector<mxnet::ext::Node*> nodesOf(mxnet::ext::Graph* graph) {
  std::vector<mxnet::ext::Node*> nodes;
  for (size_t i = 0; i < graph->size(); ++i) nodes.push_back(graph->getNode(i));
  return nodes;
}

/// Appends an input, on both sides.
inline void append(mxnet::ext::Node* producer, int output, mxnet::ext::Node* consumer) {
  mxnet::ext::NodeEntry source;
  source.node = producer;
  source.entry = output;
  mxnet::ext::NodeEntry use;
  use.node = consumer;
  use.entry = static_cast<int>(consumer->inputs.size());
  consumer->inputs.push_back(source);
  producer->outputs.push_back(use);
}

/// Lets all that use an output use another one, but for `to` itself. Nodes left without use stay in
/// the graph: MXNet's lib_api cannot delete any, and hosts drop what no head needs.
inline void redirect(mxnet::ext::Graph* graph, mxnet::ext::Node* from, int from_output,
                     mxnet::ext::Node* to, int to_output) {
  mxnet::ext::NodeEntry replacement;
  replacement.node = to;
  replacement.entry = to_output;
  std::vector<mxnet::ext::NodeEntry> kept;
  for (const mxnet::ext::NodeEntry& use : from->outputs) {
    mxnet::ext::NodeEntry& input = use.node->inputs[static_cast<size_t>(use.entry)];
    if (use.node == to || input.entry != from_output) {
      kept.push_back(use);
      continue;
    }
    input = replacement;
    to->outputs.push_back(use);
  }
  from->outputs = kept;
  for (mxnet::ext::NodeEntry& head : graph->outputs) {
    if (head.node == from && head.entry == from_output) head = replacement;
  }
}

#endif  // PASSLIB_TESTS_INTEROP_EDGES_H_
