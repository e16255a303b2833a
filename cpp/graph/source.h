// A shared graph that never changes, and copies of it to change.
#ifndef PASSLIB_GRAPH_SOURCE_H_
#define PASSLIB_GRAPH_SOURCE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "fork_mutex.h"
#include "graph/graph.h"
#include "graph/notes/operator_kinds.h"

namespace passlib {

/// Keeps a graph as the text it was read from, as a Graph, or as both. Where there is text, the
/// Graph is a cache: a pass can take it instead of a copy, and it is read again when needed. Safe
/// to use from several threads.
class GraphSource {
 public:
  /// `graph` must be sound and in its final order; `kinds` are its own, or unknown.
  explicit GraphSource(std::unique_ptr<Graph> graph, OperatorKinds kinds = {});
  /// Reads the text, whose memory `owner` keeps alive. Top-level attributes are kept apart from the
  /// graph; `ordered` applies orderGraph. Throws JsonError.
  GraphSource(std::string_view text, std::shared_ptr<void> owner,
              const mxnet::ext::JsonOptions& reading, bool ordered);

  std::shared_ptr<const Graph> get();
  /// How deep graphs are nested; see nestingDepth. Counted once.
  int depth();
  /// The operators of the nodes, which may be unknown.
  OperatorKinds kinds();
  /// Returns a graph with this content that the caller owns.
  std::unique_ptr<Graph> take();
  /// The same, for the last use of this source.
  std::unique_ptr<Graph> consume();
  /// Returns the graph itself, to be changed before it is shared. Drops the text.
  Graph* edit();
  /// Notes that names of operators and numbers of outputs are as a table of operators says, which
  /// has this number: those of the nested graphs, or of all.
  void noteCompleted(uint64_t table, bool only_nested) {
    completed_ = only_nested ? 0 : table;
    nested_completed_ = table;
  }
  /// The number of the table by which all nodes are known to be complete; 0 if there is none.
  uint64_t completed() const { return completed_; }
  /// The same for the nodes of nested graphs.
  uint64_t nestedCompleted() const { return nested_completed_; }
  /// The top-level attributes of the text.
  const mxnet::ext::GraphAttributes& attributes() const { return attributes_; }

 private:
  /// *nested: whether there are subgraphs.
  std::unique_ptr<Graph> read(mxnet::ext::GraphAttributes* attributes, bool* nested = nullptr,
                              OperatorKinds* kinds = nullptr) const;

  ForkMutex<std::mutex> mutex_;
  // A pointer to a pointer, so that the last of its sharers can move the graph out.
  std::shared_ptr<std::unique_ptr<Graph>> graph_;
  std::string_view text_;
  std::shared_ptr<void> owner_;
  mxnet::ext::JsonOptions reading_;
  bool ordered_ = false;
  int depth_ = -1;  // not yet counted
  OperatorKinds kinds_;
  std::atomic<uint64_t> completed_{0};
  std::atomic<uint64_t> nested_completed_{0};
  mxnet::ext::GraphAttributes attributes_;
};

/// Returns copies of the subgraphs of a node.
std::vector<std::shared_ptr<GraphSource>> copySubgraphs(const Node& node);

}  // namespace passlib

#endif  // PASSLIB_GRAPH_SOURCE_H_
