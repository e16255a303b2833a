#include "graph/source.h"

#include <utility>

#include "graph/graph_reader.h"
#include "graph/notes/post_order.h"
#include "owned_alone.h"

namespace passlib {
namespace {

/// The edges of a graph that is being read; see EdgePositions.
struct DraftEdges {
  std::size_t size() const { return draft.edge_end.size(); }
  uint32_t end(std::size_t node) const { return draft.edge_end[node]; }
  uint32_t producer(std::size_t edge) const {
    return static_cast<uint32_t>(draft.edges[edge].node);
  }
  const GraphDraft& draft;
};

/// Reads a graph, and notes whether it is in post-order already.
class Reader : public GraphReader {
 public:
  Reader(std::string_view text, const mxnet::ext::JsonOptions& reading)
      : GraphReader(text.data(), text.size(), reading) {
    kinds_.begin();
  }

  bool isPostOrder() const { return post_order_; }
  bool isNested() const { return graphs_ > 1; }
  OperatorKinds takeKinds() {
    if (isNested()) kinds_.forget();
    return std::move(kinds_);
  }

 private:
  void onNode(const Node& node) override { kinds_.add(node); }
  void onGraph(const GraphDraft& draft, bool ordered) override {
    ++graphs_;
    post_order_ = post_order_ && ordered && draft.control_deps.empty();
    if (!post_order_) return;
    heads_.clear();
    for (const auto& head : draft.heads) heads_.push_back(static_cast<uint32_t>(head.node));
    post_order_ = passlib::isPostOrder(DraftEdges{draft}, heads_, &path_);
  }

  bool post_order_ = true;
  std::size_t graphs_ = 0;
  OperatorKinds kinds_;
  std::vector<uint32_t> heads_;  // of one graph at a time
  std::vector<PostOrderStep> path_;
};

}  // namespace

using mxnet::ext::GraphAttributes;

GraphSource::GraphSource(std::unique_ptr<Graph> graph, OperatorKinds kinds)
    : graph_(std::make_shared<std::unique_ptr<Graph>>(std::move(graph))),
      kinds_(std::move(kinds)) {}

GraphSource::GraphSource(std::string_view text, std::shared_ptr<void> owner,
                         const mxnet::ext::JsonOptions& reading, bool ordered)
    : text_(text), owner_(std::move(owner)), reading_(reading), ordered_(ordered) {
  bool nested = false;
  graph_ = std::make_shared<std::unique_ptr<Graph>>(read(&attributes_, &nested, &kinds_));
  if (!nested) depth_ = 0;
}

std::unique_ptr<Graph> GraphSource::read(GraphAttributes* attributes, bool* nested,
                                         OperatorKinds* kinds) const {
  auto graph = std::make_unique<Graph>();
  Reader reader(text_, reading_);
  reader.read(graph.get());
  if (nested != nullptr) *nested = reader.isNested();
  attributes->swap(graph->attrs);
  graph->attrs.clear();
  const std::size_t nodes = graph->nodes.size();
  if (ordered_ && !reader.isPostOrder()) orderGraph(graph.get());
  // Those that no output needs are left out.
  if (kinds != nullptr && graph->nodes.size() == nodes) *kinds = reader.takeKinds();
  return graph;
}

std::shared_ptr<const Graph> GraphSource::get() {
  const std::lock_guard<ForkMutex<std::mutex>> lock(mutex_);
  if (graph_ == nullptr) {
    GraphAttributes again;
    graph_ = std::make_shared<std::unique_ptr<Graph>>(read(&again));
  }
  return std::shared_ptr<const Graph>(graph_, graph_->get());
}

int GraphSource::depth() {
  const std::shared_ptr<const Graph> graph = get();
  const std::lock_guard<ForkMutex<std::mutex>> lock(mutex_);
  if (depth_ < 0) depth_ = nestingDepth(*graph);
  return depth_;
}

OperatorKinds GraphSource::kinds() {
  const std::lock_guard<ForkMutex<std::mutex>> lock(mutex_);
  return kinds_;
}

std::unique_ptr<Graph> GraphSource::take() {
  std::shared_ptr<const Graph> shared;
  {
    const std::lock_guard<ForkMutex<std::mutex>> lock(mutex_);
    const bool has_text = text_.data() != nullptr;
    // use_count cannot rise meanwhile: the graph is only shared under this lock.
    if (has_text && ownedAlone(graph_)) {
      std::unique_ptr<Graph> graph = std::move(*graph_);
      graph_.reset();
      return graph;
    }
    if (has_text) {
      GraphAttributes again;
      return read(&again);
    }
    shared = std::shared_ptr<const Graph>(graph_, graph_->get());
  }
  return copyGraph(*shared);
}

std::unique_ptr<Graph> GraphSource::consume() {
  {
    const std::lock_guard<ForkMutex<std::mutex>> lock(mutex_);
    if (ownedAlone(graph_)) return std::move(*graph_);
  }
  return take();
}

Graph* GraphSource::edit() {
  get();
  std::shared_ptr<void> dropped;  // destroyed after the lock, because it may run Python
  const std::lock_guard<ForkMutex<std::mutex>> lock(mutex_);
  text_ = std::string_view();
  depth_ = -1;
  kinds_.forget();
  completed_ = nested_completed_ = 0;
  dropped.swap(owner_);
  return graph_->get();
}

std::vector<std::shared_ptr<GraphSource>> copySubgraphs(const Node& node) {
  std::vector<std::shared_ptr<GraphSource>> copies;
  copies.reserve(node.subgraphs.size());
  for (const Graph* subgraph : node.subgraphs) {
    copies.push_back(std::make_shared<GraphSource>(copyGraph(*subgraph)));
  }
  return copies;
}

}  // namespace passlib
