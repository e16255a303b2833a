// A graph that never changes, and graphs to change for those who need one.
#ifndef PASSLIB_SOURCE_H_
#define PASSLIB_SOURCE_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "graph.h"

namespace passlib {

/// Keeps a graph as the text it was read from, as a Graph, or as both. Where there is text, the
/// Graph is a cache: it can be given away to a pass, instead of a copy, and be read again should
/// anyone still want it. Safe to use from several threads.
class GraphSource {
 public:
  /// `graph` must be sound and in the order in which it is to be seen.
  explicit GraphSource(std::unique_ptr<Graph> graph);
  /// Reads the text, whose memory `owner` keeps alive. Top-level attributes are set apart; where
  /// `ordered`, nodes are put in order, see orderGraph. Throws JsonError.
  GraphSource(std::string_view text, std::shared_ptr<void> owner,
              const mxnet::ext::JsonOptions& reading, bool ordered);

  std::shared_ptr<const Graph> get();
  /// A graph of the caller's own, with this content.
  std::unique_ptr<Graph> take();
  /// The same, where nobody needs this source any more.
  std::unique_ptr<Graph> consume();
  /// The graph itself, for changing it before it is shared. The text is forgotten.
  Graph* edit();
  /// The top-level attributes that the text had.
  const std::map<std::string, mxnet::ext::JsonVal>& attributes() const { return attributes_; }

 private:
  std::unique_ptr<Graph> read(std::map<std::string, mxnet::ext::JsonVal>* attributes) const;

  std::mutex mutex_;
  std::shared_ptr<std::unique_ptr<Graph>> graph_;  // shared, yet the last owner can take it out
  std::string_view text_;
  std::shared_ptr<void> owner_;
  mxnet::ext::JsonOptions reading_;
  bool ordered_ = false;
  std::map<std::string, mxnet::ext::JsonVal> attributes_;
};

}  // namespace passlib

#endif  // PASSLIB_SOURCE_H_
