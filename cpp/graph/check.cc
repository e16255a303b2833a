#include "graph/check.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "errors.h"
#include "graph/attributes.h"
#include "graph/name_table.h"
#include "graph/notes/post_order.h"

namespace passlib {
namespace {

namespace host = mxnet::ext::host;
using host::quoted;

bool isAscii(std::string_view text) {
  constexpr uint64_t kNotAscii = 0x8080808080808080;
  const char* p = text.data();
  const std::size_t size = text.size();
  uint64_t all = 0;
  uint64_t bytes = 0;
  if (size < 8) {
    for (const char byte : text) all |= static_cast<unsigned char>(byte);
    return (all & kNotAscii) == 0;
  }
  for (std::size_t pos = 0; pos + 8 < size; pos += 8) {
    std::memcpy(&bytes, p + pos, 8);
    all |= bytes;
  }
  std::memcpy(&bytes, p + size - 8, 8);
  return ((all | bytes) & kNotAscii) == 0;
}

void checkText(const Node& node, std::size_t position) {
  if (!isUtf8(node.name)) {
    throw GraphError("the name of node number " + std::to_string(position) + " is not UTF-8");
  }
  if (node.op.empty()) throw GraphError("node " + quoted(node.name) + " has no operator");
  bool fine = isUtf8(node.op);
  const std::string_view packed = packedTexts(node);
  if (fine && packed.data() != nullptr && isAscii(packed)) return;
  forEachAttribute(node, [&fine](std::string_view key, std::string_view text) {
    fine = fine && isUtf8(key) && isUtf8(text);
  });
  if (!fine) {
    throw GraphError("operator or attributes of node " + quoted(node.name) + " are not UTF-8");
  }
}

void checkEntry(const NodeEntry& entry, const std::string& what, const NodeTable& table,
                OperatorKinds* kinds) {
  if (table.find(entry.node) < 0) {
    throw GraphError(what + " comes from a node that is not in the graph");
  }
  Node& producer = *entry.node;
  if (!host::hasOutput(producer, entry.entry) || entry.entry >= kMostOutputs) {
    throw GraphError(what + " comes from output " + std::to_string(entry.entry) + " of node " +
                     quoted(producer.name) + " (" + producer.op + "), which has " +
                     std::to_string(std::max(producer.num_outputs, 1)));
  }
  if (entry.version < 0) {
    throw GraphError(what + " has version " + std::to_string(entry.version) +
                     ", but versions count from 0");
  }
  // A pass that changed the node's operator may have kept the old number.
  if (producer.num_outputs > 0 && entry.entry >= producer.num_outputs) {
    producer.num_outputs = entry.entry + 1;
    kinds->forget();
  }
}

bool entryFine(const NodeEntry& entry) {
  return entry.entry >= 0 && entry.entry < std::max(entry.node->num_outputs, 1) &&
         entry.version >= 0;
}

/// Memory that the next graph uses again: partitioned graphs have many small ones.
struct Scratch {
  EdgePositions edges;
  std::vector<PostOrderStep> path;
  NameTable names;
  OperatorKinds kinds;
};

/// Checks a graph without its nested graphs; adds the nodes that have some. Lists the variables
/// anew, which follow from the nodes: passes that write to either may have forgotten the other.
/// Returns how the nodes stand.
NodeOrder checkLevel(Graph* graph, const std::vector<bool>& fine, std::vector<const Node*>* owners,
                     Scratch* scratch) {
  const NodeTable table(graph->nodes);
  std::vector<Node*> variables;
  bool sorted = true;
  bool controlled = false;
  EdgePositions& edges = scratch->edges;
  NameTable& names = scratch->names;
  names.clear();
  edges.clear();
  edges.producers.reserve(graph->nodes.size());
  edges.ends.reserve(graph->nodes.size());
  for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
    host::prefetchNode(graph->nodes, i, &Node::control_deps);
    Node& node = *graph->nodes[i];
    if (i >= fine.size() || !fine[i]) checkText(node, i);
    if (node.op == "null") {
      variables.push_back(&node);
      names.add(node.name);
    }
    scratch->kinds.add(node);
    if (!node.subgraphs.empty()) owners->push_back(&node);
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const int64_t producer = table.find(node.inputs[k].node);
      sorted = sorted && producer < static_cast<int64_t>(i);
      edges.producers.push_back(static_cast<uint32_t>(producer));
      if (producer >= 0 && entryFine(node.inputs[k])) continue;
      checkEntry(node.inputs[k], "input " + std::to_string(k) + " of node " + quoted(node.name),
                 table, &scratch->kinds);
    }
    edges.ends.push_back(static_cast<uint32_t>(edges.producers.size()));
    controlled = controlled || !node.control_deps.empty();
    for (const Node* before : node.control_deps) {
      const int64_t place = table.find(before);
      sorted = sorted && place >= 0 && place < static_cast<int64_t>(i);
    }
    if (node.num_outputs < 0 || node.num_outputs > kMostOutputs) {
      throw GraphError("node " + quoted(node.name) + " claims to have " +
                       std::to_string(node.num_outputs) + " outputs");
    }
  }
  if (graph->outputs.empty()) throw GraphError("the graph has no outputs");
  for (std::size_t k = 0; k < graph->outputs.size(); ++k) {
    checkEntry(graph->outputs[k], "output " + std::to_string(k) + " of the graph", table,
               &scratch->kinds);
    edges.heads.push_back(static_cast<uint32_t>(table.find(graph->outputs[k].node)));
  }
  const std::size_t repeated = names.repeated(variables);
  if (repeated < variables.size()) {
    throw GraphError("two variables are named " + quoted(variables[repeated]->name));
  }
  if (!sorted) sortNodes(graph->nodes, table);  // throws for a cycle
  graph->inputs = std::move(variables);
  if (!sorted) return NodeOrder::kAny;
  return !controlled && isPostOrder(edges, &scratch->path) ? NodeOrder::kPostOrder
                                                           : NodeOrder::kSorted;
}

/// Throws if a node is listed in two of the graphs, each of which would delete it.
void checkOwners(const std::unordered_set<const Graph*>& graphs) {
  if (graphs.size() == 1) return;  // within one graph the node table finds it
  std::vector<const Node*> nodes;
  for (const Graph* graph : graphs) {
    nodes.insert(nodes.end(), graph->nodes.begin(), graph->nodes.end());
  }
  std::sort(nodes.begin(), nodes.end(), std::less<>());
  const auto twice = std::adjacent_find(nodes.begin(), nodes.end());
  if (twice == nodes.end()) return;
  throw GraphError("node " + quoted((*twice)->name) +
                   " is listed in two graphs, of which one is nested in the other or next to it; "
                   "add a node of its own to each");
}

}  // namespace

bool isUtf8(std::string_view text) {
  if (isAscii(text)) return true;
  const char* p = text.data();
  const char* end = p + text.size();
  while (p < end) {
    const std::size_t length = host::utf8Length(p, end);
    if (length == 0) return false;
    p += length;
  }
  return true;
}

NodeOrder checkGraph(Graph* graph, int max_depth, const std::vector<bool>& fine, bool nested_fine,
                     OperatorKinds* kinds) {
  NodeOrder order = NodeOrder::kPostOrder;
  const std::vector<bool> none;
  Scratch scratch;
  if (kinds != nullptr) scratch.kinds.begin();
  try {
    std::vector<std::pair<Graph*, int>> pending{{graph, 0}};
    std::unordered_set<const Graph*> known{graph};
    while (!pending.empty()) {
      const auto [level, depth] = pending.back();
      pending.pop_back();
      if (depth > max_depth) {
        throw GraphError("subgraphs are nested more than " + std::to_string(max_depth) +
                         " deep, the limit for what a library returns");
      }
      std::vector<const Node*> owners;
      order = std::min(order, checkLevel(level, level == graph ? fine : none, &owners, &scratch));
      if (!owners.empty()) scratch.kinds.forget();
      if (nested_fine) break;
      for (const Node* node : owners) {
        for (Graph* subgraph : node->subgraphs) {
          if (subgraph == nullptr) {
            throw GraphError("a subgraph of node " + quoted(node->name) + " is null");
          }
          if (!known.insert(subgraph).second) {
            throw GraphError("a subgraph of node " + quoted(node->name) +
                             " also belongs to another node; give each node its own");
          }
          pending.emplace_back(subgraph, depth + 1);
        }
      }
    }
    checkOwners(known);
  } catch (const mxnet::ext::GraphStructureError& error) {
    throw GraphError(error.what());
  }
  if (kinds != nullptr) *kinds = std::move(scratch.kinds);
  return order;
}

}  // namespace passlib
