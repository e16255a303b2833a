// Nodes that lie next to each other.
#ifndef PASSLIB_GRAPH_NODE_BLOCKS_H_
#define PASSLIB_GRAPH_NODE_BLOCKS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

#include "header.h"

namespace passlib {

/// Adds nodes to graphs, up to 128 in one piece of memory, which lasts as long as one of them. With
/// one allocation for each, the copy of a graph lies wherever the nodes of former graphs lay:
/// passlib-opt takes 5 % longer for 100,000 operators.
class NodeBlocks {
 public:
  /// `expected`: how many nodes will be added; more may be.
  explicit NodeBlocks(std::size_t expected) : expected_(expected) {}
  NodeBlocks(const NodeBlocks&) = delete;
  NodeBlocks& operator=(const NodeBlocks&) = delete;
  ~NodeBlocks() { leave(); }

  /// As Graph::addNode, but for the mark by which passes in libraries know the nodes that they
  /// added.
  mxnet::ext::Node* add(mxnet::ext::Graph* graph, const std::string& name, const std::string& op) {
    graph->nodes.push_back(nullptr);
    mxnet::ext::Node* const node = make();
    graph->nodes.back() = node;
    node->name = name;
    node->op = op;
    return node;
  }

 private:
  using Count = mxnet::ext::host::NodeCount;

  mxnet::ext::Node* make() {
    constexpr std::size_t kStride = mxnet::ext::host::kNodeMark + sizeof(mxnet::ext::Node);
    constexpr std::size_t kFew = 4, kMany = 128;
    if (left_ == 0) {
      const std::size_t room = std::min(expected_ == 0 ? kFew : expected_, kMany);
      void* const memory = ::operator new(sizeof(Count) + room * kStride);
      leave();
      count_ = ::new (memory) Count(1);  // this object
      next_ = static_cast<char*>(memory) + sizeof(Count);
      left_ = room;
      expected_ -= std::min(expected_, room);
    }
    void* const place = mxnet::ext::host::markNode(next_, reinterpret_cast<std::uintptr_t>(count_));
    auto* const node = ::new (place) mxnet::ext::Node();
    count_->fetch_add(1, std::memory_order_relaxed);
    next_ += kStride;
    --left_;
    return node;
  }
  void leave() {
    if (count_ != nullptr) mxnet::ext::host::leaveBlock(count_);
  }

  std::size_t expected_;
  Count* count_ = nullptr;  ///< at the beginning of the present block
  char* next_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace passlib

#endif  // PASSLIB_GRAPH_NODE_BLOCKS_H_
