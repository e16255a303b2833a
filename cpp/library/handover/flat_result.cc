#include "library/handover/flat_result.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "errors.h"
#include "graph/check.h"
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
using mxnet::ext::JsonMembers;
using mxnet::ext::host::JsonTree;
using mxnet::ext::host::quoted;
using Slice = mxnet::ext::JsonReader::Slice;

/// The graph as it was shown to the library if it is the outermost one, otherwise an empty one.
class Before {
 public:
  Before(const FlatModel& shown, bool outermost)
      : shown_(shown), graph_(outermost ? shown.graphs[0] : FlatGraph{0, 0, 0}) {}

  std::size_t count() const { return static_cast<std::size_t>(graph_.num_nodes); }
  /// Whether a node was shown with the same texts in the same place of memory, and all of it is in
  /// its record.
  bool isEqual(std::size_t i, const FlatNode& flat) const {
    return i < count() && flat.num_attrs == 0 && flat.num_extra == 0 && flat.num_subgraphs == 0 &&
           same(&shown_.nodes[i], &flat, 1);
  }
  /// Whether these are the nodes and edges that were shown, the same arrays, and nothing else is in
  /// the model that belongs to nodes.
  bool isWhole(const FlatModel& model) const {
    return count() != 0 && shown_.num_graphs == 1 && model.num_graphs == 1 &&
           shown_.num_pairs == graph_.num_attrs && model.nodes == shown_.nodes &&
           model.num_nodes == shown_.num_nodes && model.edges == shown_.edges &&
           model.num_edges == shown_.num_edges && model.control_deps == shown_.control_deps &&
           model.num_control_deps == shown_.num_control_deps &&
           model.graphs[0].num_nodes == graph_.num_nodes &&
           model.graphs[0].num_outputs == graph_.num_outputs &&
           model.packed_words == shown_.packed_words;
  }
  bool isNested(std::size_t i) const { return shown_.nodes[i].num_subgraphs != 0; }
  /// The record of a node whose texts the host's node still has; null if there is none.
  const FlatNode* find(std::size_t i) const {
    return i < count() && !isNested(i) ? &shown_.nodes[i] : nullptr;
  }
  bool hasAsManyEdges(std::size_t i, const FlatNode& flat) const {
    return shown_.nodes[i].num_inputs == flat.num_inputs &&
           shown_.nodes[i].num_control_deps == flat.num_control_deps;
  }
  /// Of as many nodes with as many edges each.
  bool hasEdges(const FlatEdge* edges, uint64_t num_inputs, uint64_t num_outputs) const {
    return num_outputs == graph_.num_outputs && same(edges, shown_.edges, num_inputs + num_outputs);
  }
  bool hasDependencies(const uint32_t* deps, uint64_t num_deps) const {
    return same(deps, shown_.control_deps, num_deps);
  }

 private:
  template <typename Item>
  static bool same(const Item* left, const Item* right, uint64_t count) {
    return count == 0 || left == right ||
           std::memcmp(left, right, static_cast<std::size_t>(count) * sizeof(Item)) == 0;
  }

  const FlatModel& shown_;
  const FlatGraph graph_;
};

class FlatResultReader {
 public:
  FlatResultReader(const FlatModel& model, const FlatModel& shown, Graph* root)
      : model_(model),
        shown_(shown),
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
    const auto count = static_cast<std::size_t>(level.num_nodes);
    const Before before(shown_, graph == levels_[0]);
    if (before.isWhole(model_)) {
      edges_.take(model_.num_edges);
      deps_.take(model_.num_control_deps);
      packed_words_ = model_.packed_words;
      readAttributes(level.num_attrs, graph);
      return {true, std::vector<bool>(count, true), true};
    }
    kept.edges = resize(count, before, graph) && before.count() == count;
    kept.texts.resize(count, false);
    kept.whole = true;
    uint64_t num_inputs = 0;
    uint64_t num_deps = 0;
    inEachNode(graph->nodes, [&](std::size_t i) {
      num_inputs += flat[i].num_inputs;
      num_deps += flat[i].num_control_deps;
      // Graphs that are new within a node are not in order.
      kept.edges = kept.edges && flat[i].num_subgraphs == 0 && before.hasAsManyEdges(i, flat[i]);
      if (before.isEqual(i, flat[i])) {
        packed_words_ += flat[i].packed_words;
        kept.texts[i] = true;
      } else {
        readNode(flat[i], before.find(i), graph->nodes[i]);
        kept.whole = false;
      }
    });
    const FlatEdge* edges = edges_.take(num_inputs);
    const FlatEdge* heads = edges_.take(level.num_outputs);
    const uint32_t* deps = deps_.take(num_deps);
    kept.edges = kept.edges && before.hasEdges(edges, num_inputs, level.num_outputs) &&
                 before.hasDependencies(deps, num_deps);
    kept.whole = kept.whole && kept.edges;
    if (!kept.edges) {
      link(flat, edges, deps, graph->nodes);
      graph->outputs.clear();
      for (uint64_t k = 0; k < level.num_outputs; ++k) {
        graph->outputs.push_back(resolve(heads[k], "output", k, graph->nodes));
      }
    }
    readAttributes(level.num_attrs, graph);
    return kept;
  }

  void readAttributes(uint64_t count, Graph* graph) {
    JsonTree object(mxnet::ext::MAP);  // the texts may be those of the present ones
    readMembers(count, &object);
    requireUnique(&object);
    JsonMembers members;
    object.print(&members);
    mxnet::ext::host::GraphAttributeTexts::set(&members, &graph->attrs);
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

  /// Gives the graph as many nodes, of which the first are those that it has. Returns whether all
  /// are.
  bool resize(std::size_t count, const Before& before, Graph* graph) {
    std::vector<Node*>& nodes = graph->nodes;  // those that were shown
    bool kept = nodes.size() == count;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (i < count && !before.isNested(i)) continue;
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

  /// Reads a text. `shown`: the present one, where the library saw it.
  void readText(const FlatText& flat, const FlatText* shown, const char* what, std::string* text) {
    if (shown != nullptr && flat.data == shown->data && flat.size == shown->size) return;
    *text = budget_.text(flat, what);
  }

  /// Reads all but the edges. `shown`: the record of the same node, or null.
  void readNode(const FlatNode& flat, const FlatNode* shown, Node* node) {
    readText(flat.name, shown == nullptr ? nullptr : &shown->name, "its name", &node->name);
    readText(flat.op, shown == nullptr ? nullptr : &shown->op, "its operator", &node->op);
    readAttributes(flat, node);
    node->extra = readExtra(flat.num_extra);
    node->num_outputs = flat.num_outputs;
    if (flat.outputs_declared > 1) {
      throw GraphError("outputs_declared is " + std::to_string(flat.outputs_declared) +
                       ", which is neither 0 nor 1");
    }
    if (flat.outputs_declared == 1) mxnet::ext::host::declareOutputs(node, flat.num_outputs);
    // Those that follow, each for one node: none lies within itself.
    if (flat.num_subgraphs > model_.num_graphs - levels_.size()) {
      throw GraphError(std::to_string(flat.num_subgraphs) + " subgraphs are more than follow");
    }
    for (uint32_t k = 0; k < flat.num_subgraphs; ++k) {
      node->subgraphs.push_back(nullptr);
      node->subgraphs.back() = new Graph();
      levels_.push_back(node->subgraphs.back());
    }
  }

  Slice sliceOf(const FlatText& flat, const char* what) {
    const std::string_view text = budget_.text(flat, what);
    return text.empty() ? Slice{"", 0} : Slice{text.data(), text.size()};
  }

  void readAttributes(const FlatNode& flat, Node* node) {
    const FlatPair* pair = pairs_.take(flat.num_attrs);
    packed_words_ += flat.packed_words;
    if (flat.packed == nullptr) {
      if (flat.packed_words != 0) throw GraphError("its packed attributes are null");
      texts_.clear();
      for (uint32_t k = 0; k < flat.num_attrs; ++k) {
        texts_.emplace_back(sliceOf(pair[k].key, "the key of an attribute"),
                            sliceOf(pair[k].text, "an attribute"));
      }
      mxnet::ext::NodeAttributes attributes;  // the texts may be those of the present ones
      const Slice* repeated =
          mxnet::ext::host::AttributeTexts::pack(texts_.data(), texts_.size(), &attributes);
      if (repeated != nullptr) {
        throw GraphError("attribute " + quoted(repeated->str()) + " occurs twice");
      }
      node->attrs = std::move(attributes);
      return;
    }
    if (flat.num_attrs != 0) throw GraphError("some of its attributes are packed, others are not");
    std::size_t words = 0;
    const uint32_t* present = mxnet::ext::host::AttributeTexts(node->attrs).packed(&words);
    if (flat.packed == present && flat.packed_words == words) return;
    if (reinterpret_cast<uintptr_t>(flat.packed) % alignof(uint32_t) != 0) {
      throw GraphError("its packed attributes are misaligned");
    }
    if (!budget_.spend(flat.packed_words, sizeof(uint32_t))) {
      throw GraphError("its packed attributes take more memory than this machine has");
    }
    checkPackedAttributes(flat.packed, flat.packed_words);
    mxnet::ext::host::AttributeTexts::copyPacked(flat.packed, flat.packed_words, &node->attrs);
  }

  /// Returns members of a node's object in their order.
  JsonMembers readExtra(uint64_t count) {
    JsonMembers members;
    if (count == 0) return members;
    JsonTree object(mxnet::ext::MAP);
    readMembers(count, &object);
    object.print(&members);
    requireUnique(&object);
    return members;
  }

  /// Reads members of a JSON object.
  void readMembers(uint64_t count, JsonTree* object) {
    const FlatPair* pair = pairs_.take(count);
    for (uint64_t k = 0; k < count; ++k) {
      const std::string_view key = budget_.text(pair[k].key, "the key of a member");
      const std::string_view text = budget_.text(pair[k].text, "the value of a member");
      if (!isUtf8(key)) throw GraphError("the key of a member is not UTF-8");
      mxnet::ext::JsonOptions reading;
      reading.allow_control_characters = true;
      try {
        mxnet::ext::JsonReader reader(text.data(), text.size(), reading);
        reader._readItem(object, object->add(0, {key.data(), key.size()}));
        reader.finish();
      } catch (const mxnet::ext::JsonError& error) {
        throw GraphError("the value of " + quoted(std::string(key)) +
                         " is not JSON: " + error.what());
      }
    }
  }

  /// Sorts the members of an object.
  static void requireUnique(JsonTree* object) {
    const JsonTree::Item* const twice = object->sort(0);
    if (twice == nullptr) return;
    throw GraphError("the key " + quoted(object->key(*twice).str()) + " occurs twice");
  }

  /// Sets both sides of all edges between nodes.
  static void link(const FlatNode* flat, const FlatEdge* edge, const uint32_t* dep,
                   const std::vector<Node*>& nodes) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (i + 16 < nodes.size()) __builtin_prefetch(&nodes[i + 16]->outputs, 1);
      nodes[i]->outputs.clear();
    }
    inEachNode(nodes, [&](std::size_t i) {
      mxnet::ext::host::prefetchNode(nodes, i, &Node::outputs);
      Node* node = nodes[i];
      node->inputs.clear();
      node->inputs.reserve(flat[i].num_inputs);
      for (uint32_t k = 0; k < flat[i].num_inputs; ++k) {
        node->inputs.push_back(resolve(*edge++, "input", k, nodes));
        node->inputs.back().node->outputs.emplace_back(node, static_cast<int>(k));
      }
      node->control_deps.clear();
      for (uint32_t k = 0; k < flat[i].num_control_deps; ++k) {
        node->control_deps.push_back(resolve({*dep++, 0, 0}, "control dependency", k, nodes).node);
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
  const FlatModel& shown_;
  uint64_t packed_words_ = 0;
  FlatArray<FlatGraph> graphs_;
  FlatArray<FlatNode> nodes_;
  FlatArray<FlatEdge> edges_;
  FlatArray<uint32_t> deps_;
  FlatArray<FlatPair> pairs_;
  std::vector<Graph*> levels_;  ///< the graphs of the nodes read so far
  std::vector<std::pair<Slice, Slice>> texts_;
  Graph unused_;  ///< owner of nodes that the result does not have
};

}  // namespace

Kept readFlatResult(const FlatModel* model, const FlatModel& shown, Graph* graph) {
  if (reinterpret_cast<uintptr_t>(model) % alignof(FlatModel) != 0) {
    throw GraphError("its address is misaligned");
  }
  if (model->version != PASSLIB_FLAT_VERSION || model->size != sizeof(FlatModel)) {
    throw GraphError("it has version " + std::to_string(model->version) + " and " +
                     std::to_string(model->size) + " bytes at its head, not " +
                     std::to_string(PASSLIB_FLAT_VERSION) + " and " +
                     std::to_string(sizeof(FlatModel)));
  }
  return FlatResultReader(*model, shown, graph).read();
}

}  // namespace passlib
