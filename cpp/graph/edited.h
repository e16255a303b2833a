// A graph that code outside the host changes step by step, through handles that may outlive it.
#ifndef PASSLIB_GRAPH_EDITED_H_
#define PASSLIB_GRAPH_EDITED_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/name_source.h"
#include "graph/text_table.h"

namespace passlib {

/// Owns a graph with its nested graphs while they are changed. Every function checks its arguments
/// and throws GraphError, std::invalid_argument or std::out_of_range before it changes anything;
/// cycles are left to checkGraph. Nodes keep their memory until `close`, removed ones too.
class EditedGraph {
 public:
  /// Returns the texts of __ext_shape__ and __ext_dtype__ of each node.
  using ReadTypes = std::function<std::vector<std::pair<std::string, std::string>>()>;

  /// `editor` names who changes the graph, for messages. `types_known`: nodes have the attributes
  /// of inferred shapes and types; or `types` returns them when somebody first reads one.
  EditedGraph(std::unique_ptr<Graph> graph, std::string editor, bool types_known, ReadTypes types);

  Graph* root() const { return graph_.get(); }
  /// Throws GraphError if the graph was closed.
  void requireOpen() const {
    if (graph_ == nullptr) throwClosed();
  }
  /// Throws GraphError if the graph was closed or the node was removed.
  void requireLive(const Node* node) const {
    requireOpen();
    if (!removed_.empty() && removed_.count(node) != 0) throwRemoved(*node);
  }

  /// Sets the attributes of inferred shapes and types, unless there are none or they are set. Texts
  /// of attributes may move.
  void readTypes();
  /// The same if these are the attributes of a key.
  void readTypes(const std::string& key) {
    if (key == MX_STR_SHAPE || key == MX_STR_DTYPE) readTypes();
  }
  /// Throws GraphError if shapes and types are not inferred.
  void requireTypes();

  /// The nodes of the root or of a nested graph.
  const std::vector<Node*>& nodes(Graph* graph);
  /// Adds a node after all others. An empty name is made of the operator; one that is taken gets a
  /// number, but the name of a variable must be free.
  Node* addNode(Graph* graph, const std::string& op, std::string name,
                const std::vector<NodeEntry>& inputs, int num_outputs);
  /// Replaces all inputs of a node.
  void setInputs(Graph* graph, Node* node, const std::vector<NodeEntry>& inputs);
  /// Replaces one input, or appends one at the end.
  void connect(Graph* graph, const NodeEntry& value, Node* node, int input);
  /// Replaces a value in inputs of nodes and outputs of the graph, but not in inputs of the node of
  /// `target`. Returns the number of replaced uses.
  std::size_t replace(Graph* graph, const NodeEntry& from, const NodeEntry& target);
  /// Removes nodes whose outputs nothing else uses. `nodes` and `close` complete it, so that the
  /// removal of many nodes one by one is not quadratic.
  void remove(Graph* graph, const std::vector<Node*>& nodes);
  void setOutputs(Graph* graph, const std::vector<NodeEntry>& outputs);
  void rename(Graph* graph, Node* node, const std::string& name);
  /// Moves the nodes of a nested graph of `node` into the graph of `node`, under free names. Uses
  /// of the variables in `given` become uses of the values next to them; these variables stay
  /// behind. Returns the outputs of the nested graph, which is left without outputs: `node` has to
  /// go. Appends the moved nodes to `moved`.
  std::vector<NodeEntry> absorb(Graph* graph, Node* node, std::size_t number,
                                const std::vector<std::pair<Node*, NodeEntry>>& given,
                                std::vector<Node*>* moved);
  /// Copies the part of the root that values depend on; these are its outputs.
  std::unique_ptr<Graph> part(const std::vector<NodeEntry>& values);

  /// Returns the consumers of one output of a node: each with the number of its input.
  std::vector<NodeEntry> usesOf(Node* node, int output);
  /// Returns the consumers of a node: each once for each of its inputs.
  const std::vector<NodeEntry>& consumersOf(Node* node);
  /// Whether another node uses the results of a node, or the graph has one as output.
  bool isUsed(const Graph& graph, const Node* node) const;
  /// Whether the graph has a result of a node as output.
  bool isHead(const Graph& graph, const Node* node) const;
  /// Whether the graph has a value as output.
  bool isOutput(const Graph& graph, const NodeEntry& value) const;
  /// Returns the number of outputs that a node has at least: the declared one, or what is used.
  int knownOutputs(const Graph& graph, Node* node);

  /// Whether a node was removed, though others may still list it as a user.
  bool isRemoved(const Node* node) const { return removed_.count(node) != 0; }
  /// Notes a node that the matcher of patterns removes from its graph.
  void noteRemoved(const Node* node) {
    noteChange();
    removed_.insert(node);
  }
  /// Notes that nodes were renamed without `rename`.
  void noteNames() { named_ = nullptr; }
  /// Notes that graphs may have other outputs, which the matcher of patterns sets.
  void noteOutputs() { heads_.clear(); }

  /// Names who changes the graph from now on.
  void setEditor(const std::string& editor) { editor_ = editor; }

  /// Counts the changes. The graph is as it was as long as the number stays the same.
  std::size_t changes() const { return changes_; }
  /// Notes a change that was made without a function of this class.
  void noteChange() { ++changes_; }

  /// Returns the graph and refuses everything afterwards.
  std::unique_ptr<Graph> close();

 private:
  [[noreturn]] void throwClosed() const;
  [[noreturn]] void throwRemoved(const Node& node) const;
  void requireValue(const NodeEntry& value) const;
  std::string freeName(const Graph& graph, const std::string& wanted);
  UsedNames& namesOf(const Graph& graph);
  void flush(Graph* graph);
  /// Takes removed consumers out of the list of a node.
  void dropRemoved(Node* node);
  void requireUnused(const Graph& graph, const std::unordered_set<const Node*>& gone);
  /// The places of each output of a graph, so that looking for one is no walk over all of them.
  using Heads = std::map<std::pair<const Node*, int>, std::vector<std::size_t>>;
  Heads& headsOf(const Graph& graph) const;
  /// Notes that `heir` stands for what `node` stands for, as the last of all or the first.
  void noteOrigin(Node* heir, Node* node, bool last);
  std::vector<std::string> originsOf(Node* node) const;

  std::unique_ptr<Graph> graph_;
  std::size_t changes_ = 0;
  std::string editor_;
  bool types_known_;
  ReadTypes types_;
  std::vector<Node*> untyped_;  ///< the nodes that `types_` is about
  std::unordered_set<const Node*> removed_;
  /// How many consumers that a node lists were removed. They leave the list when they are half of
  /// it: a search for each would take quadratic time for a node that many others use.
  std::unordered_map<const Node*, std::size_t> stale_;
  mutable std::unordered_map<const Graph*, Heads> heads_;
  std::unordered_set<const Node*> added_;
  /// Nodes that stand for others, once these are removed.
  std::unordered_map<const Node*, Node*> heirs_;
  /// Names of the nodes that a node stands for.
  std::unordered_map<Node*, std::vector<std::string>> origins_;
  /// Removed nodes that their graphs still list.
  std::unordered_map<Graph*, std::vector<Node*>> listed_;
  /// Names of the nodes of one graph, for the names of new ones.
  const Graph* named_ = nullptr;
  UsedNames names_;
  TextMap<int> numbers_;  ///< the last one given to a name
};

}  // namespace passlib

#endif  // PASSLIB_GRAPH_EDITED_H_
