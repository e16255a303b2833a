// Passes that read and write names, attributes and options, print, and fail.
#include <algorithm>
#include <map>
#include <stdexcept>

#include "edges.h"

using mxnet::ext::Graph;
using mxnet::ext::MX_FAIL;
using mxnet::ext::MX_SUCCESS;
using mxnet::ext::MXReturnValue;
using mxnet::ext::Node;

static MXReturnValue print(Graph* graph, const Options&) {
  graph->print();
  return MX_SUCCESS;
}

/// Prints what print() does not: operators and attributes, as the pass sees them.
static MXReturnValue printAttributes(Graph* graph, const Options&) {
  for (const Node* node : nodesOf(graph)) {
    std::cout << node->op << " " << node->name << " (" << node->inputs.size() << ")\n";
    const std::map<std::string, std::string> sorted(node->attrs.begin(), node->attrs.end());
    for (const std::pair<const std::string, std::string>& attr : sorted) {
      std::cout << "  " << attr.first << "=" << attr.second << "\n";
    }
  }
  return MX_SUCCESS;
}

/// Options: `prefix`, and `variables` to rename these too.
static MXReturnValue rename(Graph* graph, const Options& options) {
  const std::string prefix = option(options, "prefix", "renamed_");
  const bool variables = option(options, "variables", "False") == "True";
  for (Node* node : nodesOf(graph)) {
    if (node->op != "null" || variables) node->name = prefix + node->name;
  }
  return MX_SUCCESS;
}

/// Sets attribute `key` of all nodes to `value`. Option `op`: of this operator only.
static MXReturnValue setAttribute(Graph* graph, const Options& options) {
  const std::string op = option(options, "op", "");
  for (Node* node : nodesOf(graph)) {
    if (!op.empty() && node->op != op) continue;
    node->attrs[option(options, "key", "__note__")] = option(options, "value", "none");
  }
  return MX_SUCCESS;
}

/// Takes away all attributes between double underscores, and `key`.
static MXReturnValue dropAttributes(Graph* graph, const Options& options) {
  for (Node* node : nodesOf(graph)) {
    node->attrs.erase(option(options, "key", "workspace"));
    for (Options::iterator it = node->attrs.begin(); it != node->attrs.end();) {
      it = it->first.compare(0, 2, "__") == 0 ? node->attrs.erase(it) : std::next(it);
    }
  }
  return MX_SUCCESS;
}

/// Writes all options, sorted, into an attribute of the first node.
static MXReturnValue keepOptions(Graph* graph, const Options& options) {
  const std::map<std::string, std::string> sorted(options.begin(), options.end());
  std::string text;
  for (const std::pair<const std::string, std::string>& each : sorted) {
    text += each.first + "=" + each.second + ";";
  }
  graph->getNode(0)->attrs["__options__"] = text;
  return MX_SUCCESS;
}

/// Changes the graph, then fails. Option `message`: what it says, twice; nothing if empty.
static MXReturnValue fail(Graph* graph, const Options& options) {
  for (Node* node : nodesOf(graph)) node->name = "broken";
  const std::string message = option(options, "message", "");
  if (!message.empty()) {
    MX_ERROR_MSG << message;
    MX_ERROR_MSG << message << " once more";
  }
  return MX_FAIL;
}

static MXReturnValue throwing(Graph*, const Options& options) {
  throw std::runtime_error(option(options, "message", "thrown"));
}

REGISTER_PASS(interop_print).setBody(print);
REGISTER_PASS(interop_printAttributes).setBody(printAttributes);
REGISTER_PASS(interop_rename).setBody(rename);
REGISTER_PASS(interop_setAttribute).setBody(setAttribute);
REGISTER_PASS(interop_dropAttributes).setBody(dropAttributes);
REGISTER_PASS(interop_keepOptions).setBody(keepOptions);
REGISTER_PASS(interop_fail).setBody(fail);
REGISTER_PASS(interop_throw).setBody(throwing);

mxnet::ext::MXReturnValue initialize(int version) {
  if (version >= 10900) return MX_SUCCESS;
  MX_ERROR_MSG << "needs 1.9, not " << version;
  return MX_FAIL;
}
