#include "library/handover/flat_result.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "errors.h"
#include "graph/check.h"
#include "graph/text_table.h"
#include "library/handover/flat_array.h"
#include "library/handover/packed_attributes.h"

namespace passlib {
namespace {

using mxnet::ext::FlatEdge;
using mxnet::ext::FlatGraph;
using mxnet::ext::FlatModel;
using mxnet::ext::FlatNode;
using mxnet::ext::FlatPair;
using mxnet::ext::FlatText;
using mxnet::ext::JsonVal;
using mxnet::ext::host::quoted;

class FlatResultReader {
 public:
  FlatResultReader(const FlatModel& model, Graph* root)
      : model_(model),
        graphs_("graphs", model.graphs, model.num_graphs, &budget_),
        nodes_("nodes", model.nodes, model.num_nodes, &budget_),
        edges_("edges", model.edges, model.num_edges, &budget_),
        deps_("control_deps", model.control_deps, model.num_control_deps, &budget_),
        pairs_("pairs", model.pairs, model.num_pairs, &budget_),
        levels_{root} {}

  Kept read() {
    Kept kept = readNumbered(0);
    for (std::size_t i = 1; i < levels_.size(); ++i) readNumbered(i);
    graphs_.finish();
    nodes_.finish();
    edges_.finish();
    deps_.finish();
    pairs_.finish();
    if (packed_words_ == model_.packed_words) return kept;
    throw GraphError("the nodes have " + std::to_string(packed_words_) + " packed words, but " +
                     std::to_string(model_.packed_words) + " are announced");
  }

 private:
  Kept readNumbered(std::size_t number) {
    try {
      return readLevel(*graphs_.take(1), levels_[number]);
    } catch (const GraphError& error) {
      throw GraphError("graph number " + std::to_string(number) + ": " + error.what());
    }
  }

  Kept readLevel(const FlatGraph& level, Graph* graph) {
    Kept kept;
    const FlatNode* flat = nodes_.take(level.num_nodes);
    kept.edges = resize(static_cast<std::size_t>(level.num_nodes), graph);
    const std::vector<Node*>& nodes = graph->nodes;
    kept.texts.resize(nodes.size(), false);
    inEachNode(nodes, [&](std::size_t i) {
      prefetch(flat, i, nodes);
      kept.texts[i] = readNode(flat[i], nodes[i]);
    });
    FlatArray<FlatEdge> edges = edges_;
    FlatArray<uint32_t> deps = deps_;
    inEachNode(nodes, [&](std::size_t i) {
      mxnet::ext::host::prefetchNode(nodes, i, &Node::control_deps);
      const FlatEdge* edge = edges.take(flat[i].num_inputs);
      const uint32_t* dep = deps.take(flat[i].num_control_deps);
      kept.edges = kept.edges && hasInputs(*nodes[i], edge, flat[i].num_inputs, nodes) &&
                   hasDependencies(*nodes[i], dep, flat[i].num_control_deps, nodes);
    });
    if (!kept.edges) relink(flat, nodes);
    edges_ = edges;
    deps_ = deps;
    const FlatEdge* head = edges_.take(level.num_outputs);
    std::vector<NodeEntry> outputs;
    for (uint64_t k = 0; k < level.num_outputs; ++k) {
      outputs.push_back(resolve(head[k], "output", k, nodes));
    }
    kept.edges = kept.edges && outputs == graph->outputs;
    graph->outputs = std::move(outputs);
    graph->attrs.clear();
    readMembers(level.num_attrs, [graph](std::string key, JsonVal value) {
      graph->attrs.emplace(std::move(key), std::move(value));
    });
    return kept;
  }

  template <typename Body>
  static void inEachNode(const std::vector<Node*>& nodes, Body body) {
    std::size_t i = 0;
    try {
      for (; i < nodes.size(); ++i) body(i);
    } catch (const GraphError& error) {
      throw GraphError("node number " + std::to_string(i) + ": " + error.what());
    }
  }

  /// Asks for what is read some nodes later; most of the time goes by waiting for memory.
  static void prefetch(const FlatNode* flat, std::size_t i, const std::vector<Node*>& nodes) {
    if (i + 16 >= nodes.size()) return;
    const Node* later = nodes[i + 16];
    __builtin_prefetch(&later->op);
    __builtin_prefetch(&later->inputs);
    __builtin_prefetch(&later->attrs);
    __builtin_prefetch(&later->extra);
    __builtin_prefetch(flat[i + 16].op.data);
    __builtin_prefetch(flat[i + 16].name.data);
    __builtin_prefetch(nodes[i + 8]->name.data());
  }

  /// Gives the graph as many nodes, of which the first are those that it has. Returns whether all
  /// are.
  bool resize(std::size_t count, Graph* graph) {
    std::vector<Node*>& nodes = graph->nodes;
    bool kept = nodes.size() == count;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (i < count && nodes[i]->subgraphs.empty()) continue;
      unused_.nodes.push_back(nullptr);
      std::swap(unused_.nodes.back(), nodes[i]);  // with what is nested in it
    }
    nodes.resize(count, nullptr);
    for (Node*& node : nodes) {
      if (node != nullptr) continue;
      node = new Node();
      kept = false;
    }
    return kept;
  }

  /// Reads all but the edges. Returns whether the texts are as they were.
  bool readNode(const FlatNode& flat, Node* node) {
    const bool same_name = assign(budget_.text(flat.name, "its name"), &node->name);
    const bool same_op = assign(budget_.text(flat.op, "its operator"), &node->op);
    const bool same_attributes = readAttributes(flat, node);
    node->extra.clear();
    readMembers(flat.num_extra, [node](std::string key, JsonVal value) {
      node->extra.emplace_back(std::move(key), std::move(value));
    });
    node->num_outputs = flat.num_outputs;
    if (flat.outputs_declared > 1) {
      throw GraphError("outputs_declared is " + std::to_string(flat.outputs_declared) +
                       ", which is neither 0 nor 1");
    }
    if (flat.outputs_declared == 1) node->_declareOutputs(flat.num_outputs);
    // Those that follow, each for one node: none lies within itself.
    if (flat.num_subgraphs > model_.num_graphs - levels_.size()) {
      throw GraphError(std::to_string(flat.num_subgraphs) + " subgraphs are more than follow");
    }
    for (uint32_t k = 0; k < flat.num_subgraphs; ++k) {
      node->subgraphs.push_back(nullptr);
      node->subgraphs.back() = new Graph();
      levels_.push_back(node->subgraphs.back());
    }
    return same_name && same_op && same_attributes;
  }

  static bool assign(std::string_view text, std::string* target) {
    if (*target == text) return true;
    target->assign(text);
    return false;
  }

  /// Returns whether they are as they were.
  bool readAttributes(const FlatNode& flat, Node* node) {
    const FlatPair* pair = pairs_.take(flat.num_attrs);
    packed_words_ += flat.packed_words;
    if (flat.packed == nullptr) {
      if (flat.packed_words != 0) throw GraphError("its packed attributes are null");
      if (flat.num_attrs == 0 && node->attrs.empty()) return true;
      texts_.resize(std::max<std::size_t>(texts_.size(), flat.num_attrs));
      for (uint32_t k = 0; k < flat.num_attrs; ++k) {
        texts_[k].first = budget_.text(pair[k].key, "the key of an attribute");
        texts_[k].second = budget_.text(pair[k].text, "an attribute");
      }
      const std::string* repeated = node->attrs._pack(texts_.data(), flat.num_attrs);
      if (repeated != nullptr) throw GraphError("attribute " + quoted(*repeated) + " occurs twice");
      return false;
    }
    if (flat.num_attrs != 0) throw GraphError("some of its attributes are packed, others are not");
    std::size_t words = 0;
    const uint32_t* present = node->attrs._packed(&words);
    if (flat.packed == present && flat.packed_words == words) return true;
    const std::size_t size = sizeof(uint32_t) * flat.packed_words;
    if (reinterpret_cast<uintptr_t>(flat.packed) % alignof(uint32_t) != 0) {
      throw GraphError("its packed attributes are misaligned");
    }
    if (!budget_.spend(flat.packed_words, sizeof(uint32_t))) {
      throw GraphError("its packed attributes take more memory than this machine has");
    }
    if (present != nullptr && words == flat.packed_words &&
        std::memcmp(present, flat.packed, size) == 0) {
      return true;
    }
    checkPackedAttributes(flat.packed, flat.packed_words);
    node->attrs._setPacked(flat.packed, flat.packed_words);
    return false;
  }

  /// Reads members of a JSON object, and calls add(key, value) for each.
  template <typename Add>
  void readMembers(uint64_t count, Add add) {
    const FlatPair* pair = pairs_.take(count);
    if (count == 0) return;
    TextViewSet keys;
    for (uint64_t k = 0; k < count; ++k) {
      const std::string_view key = budget_.text(pair[k].key, "the key of a member");
      const std::string_view text = budget_.text(pair[k].text, "the value of a member");
      if (!isUtf8(key)) throw GraphError("the key of a member is not UTF-8");
      if (!keys.insert(key).second) {
        throw GraphError("the key " + quoted(std::string(key)) + " occurs twice");
      }
      mxnet::ext::JsonOptions reading;
      reading.allow_control_characters = true;
      try {
        mxnet::ext::JsonReader reader(text.data(), text.size(), reading);
        JsonVal value = reader.readValue();
        reader.finish();
        add(std::string(key), std::move(value));
      } catch (const mxnet::ext::JsonError& error) {
        throw GraphError("the value of " + quoted(std::string(key)) +
                         " is not JSON: " + error.what());
      }
    }
  }

  static bool hasInputs(const Node& node, const FlatEdge* edge, std::size_t count,
                        const std::vector<Node*>& nodes) {
    if (node.inputs.size() != count) return false;
    for (std::size_t k = 0; k < count; ++k) {
      const NodeEntry& input = node.inputs[k];
      if (edge[k].node >= nodes.size() || nodes[edge[k].node] != input.node ||
          edge[k].entry != input.entry || edge[k].version != input.version) {
        return false;
      }
    }
    return true;
  }

  static bool hasDependencies(const Node& node, const uint32_t* dep, std::size_t count,
                              const std::vector<Node*>& nodes) {
    return std::equal(node.control_deps.begin(), node.control_deps.end(), dep, dep + count,
                      [&nodes](const Node* present, uint32_t position) {
                        return position < nodes.size() && nodes[position] == present;
                      });
  }

  /// Sets both sides of all edges between nodes.
  void relink(const FlatNode* flat, const std::vector<Node*>& nodes) {
    for (Node* node : nodes) node->outputs.clear();
    inEachNode(nodes, [&](std::size_t i) {
      Node* node = nodes[i];
      const FlatEdge* edge = edges_.take(flat[i].num_inputs);
      const uint32_t* dep = deps_.take(flat[i].num_control_deps);
      node->inputs.clear();
      node->inputs.reserve(flat[i].num_inputs);
      for (uint32_t k = 0; k < flat[i].num_inputs; ++k) {
        node->inputs.push_back(resolve(edge[k], "input", k, nodes));
        node->inputs.back().node->outputs.emplace_back(node, static_cast<int>(k));
      }
      node->control_deps.clear();
      for (uint32_t k = 0; k < flat[i].num_control_deps; ++k) {
        node->control_deps.push_back(resolve({dep[k], 0, 0}, "control dependency", k, nodes).node);
      }
    });
  }

  static NodeEntry resolve(const FlatEdge& edge, const char* what, uint64_t number,
                           const std::vector<Node*>& nodes) {
    if (edge.node < nodes.size()) return NodeEntry(nodes[edge.node], edge.entry, edge.version);
    throw GraphError(std::string(what) + " " + std::to_string(number) + " refers to node " +
                     std::to_string(edge.node) + ", but there are " + std::to_string(nodes.size()) +
                     " nodes");
  }

  FlatBudget budget_;
  const FlatModel& model_;
  uint64_t packed_words_ = 0;
  FlatArray<FlatGraph> graphs_;
  FlatArray<FlatNode> nodes_;
  FlatArray<FlatEdge> edges_;
  FlatArray<uint32_t> deps_;
  FlatArray<FlatPair> pairs_;
  std::vector<Graph*> levels_;  ///< the graphs of the nodes read so far
  std::vector<std::pair<std::string, std::string>> texts_;
  Graph unused_;  ///< owner of nodes that the result does not have
};

}  // namespace

Kept readFlatResult(const FlatModel* model, Graph* graph) {
  if (reinterpret_cast<uintptr_t>(model) % alignof(FlatModel) != 0) {
    throw GraphError("its address is misaligned");
  }
  if (model->version != PASSLIB_FLAT_VERSION || model->size != sizeof(FlatModel)) {
    throw GraphError("it has version " + std::to_string(model->version) + " and " +
                     std::to_string(model->size) + " bytes at its head, not " +
                     std::to_string(PASSLIB_FLAT_VERSION) + " and " +
                     std::to_string(sizeof(FlatModel)));
  }
  return FlatResultReader(*model, graph).read();
}

}  // namespace passlib
