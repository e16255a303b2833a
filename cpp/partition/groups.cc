#include "partition/groups.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "partition/order.h"

namespace passlib {
namespace {

/// Edges to visit before growth becomes careful: enough for any small graph, and a multiple of the
/// size of a large one.
constexpr int64_t kBaseWork = int64_t{1} << 23;
constexpr int64_t kWorkForEach = 64;

class Grower {
 public:
  Grower(const NumberedGraph& graph, Choice* choice)
      : graph_(graph),
        choice_(choice),
        order_(graph),
        most_work_(kBaseWork + kWorkForEach * (int64_t{graph.nodes()} + graph.edges())),
        grouped_(at(graph.nodes()), false),
        left_out_(at(graph.nodes()), -1),
        joined_(at(graph.nodes()), 0) {}

  bool mayBegin(int node) {
    return !grouped_[at(node)] && !graph_.isVariable(node) && choice_->select(node);
  }

  /// Returns a group with `seed`, in ascending order.
  std::vector<int> grow(int seed) {
    while (!careful_) {
      std::vector<int> group = collect(seed);
      if (work_ + order_.work() > most_work_) {
        careful_ = true;
        order_.forgetPositions();
        choice_->reset();
        break;
      }
      if (group.size() < 2) return group;
      order_.search(group);
      if (order_.lastReentry() < 0) return group;
      // MXNet gives up here. Only selectors can lead to this.
      if (order_.lastReentry() == seed) return {seed};
      choice_->reset();
      leaveOut(seed, group);
    }
    return collectCarefully(seed);
  }

  /// Merges the kept nodes of a group that had `grown` of them. Returns false if they would be on a
  /// cycle.
  bool merge(std::size_t grown, const std::vector<int>& kept) {
    for (int node : kept) grouped_[at(node)] = true;
    if (kept.size() < 2) return true;
    if (kept.size() < grown) {
      order_.search(kept);
      if (order_.lastReentry() >= 0) return false;
    }
    order_.merge(kept);
    return true;
  }

  int lastReentry() const { return order_.lastReentry(); }

 private:
  bool joined(int node) const { return joined_[at(node)] == attempt_; }
  bool mayJoin(int node, int seed) const {
    return !joined(node) && !grouped_[at(node)] && left_out_[at(node)] != seed &&
           !graph_.isVariable(node);
  }
  void join(int node, std::vector<int>* group) {
    joined_[at(node)] = attempt_;
    group->push_back(node);
  }

  std::vector<int> collect(int seed) {
    ++attempt_;
    std::vector<int> group;
    join(seed, &group);
    for (std::size_t i = 0; i < group.size(); ++i) {
      const int node = group[i];
      const int end = graph_.firstEdge(node + 1);
      for (int edge = graph_.firstEdge(node); edge < end; ++edge) {
        const int input = graph_.producer(edge);
        if (mayJoin(input, seed) && choice_->selectInput(node, input)) join(input, &group);
      }
      int last = NumberedGraph::kOutput;
      for (int edge : graph_.uses(node)) {
        const int output = graph_.consumer(edge);
        if (output == last || output == NumberedGraph::kOutput) continue;
        last = output;
        if (mayJoin(output, seed) && choice_->selectOutput(node, output)) join(output, &group);
      }
      work_ += 1 + end - graph_.firstEdge(node) + graph_.uses(node).size();
    }
    std::sort(group.begin(), group.end());
    return group;
  }

  /// Excludes the last node of re-entry. All nodes of re-entry are excluded in one step if the
  /// choice is stateless and if excluding them, with their dependents in the group, separates no
  /// other node from the seed: MXNet's single steps then end at the same group, since each of these
  /// nodes is re-entered as long as it is in the group.
  void leaveOut(int seed, const std::vector<int>& group) {
    std::vector<int> out{order_.lastReentry()};
    if (choice_->isStateless() && order_.reentered().size() > 1) {
      const std::vector<int>& all = order_.reentered();
      const std::vector<int> before = mark(all, seed);
      const bool whole = collect(seed).size() + all.size() == group.size();
      if (whole && left_out_[at(seed)] != seed) return;
      for (std::size_t i = 0; i < all.size(); ++i) left_out_[at(all[i])] = before[i];
    }
    mark(out, seed);
  }

  std::vector<int> mark(const std::vector<int>& nodes, int seed) {
    std::vector<int> before;
    for (int node : nodes) before.push_back(std::exchange(left_out_[at(node)], seed));
    return before;
  }

  std::vector<int> collectCarefully(int seed) {
    ++attempt_;
    if (operators_before_.empty()) countOperatorsBefore();
    std::vector<int> group;
    join(seed, &group);
    for (std::size_t i = 0; i < group.size(); ++i) {
      const int node = group[i];
      for (int input : graph_.before(node)) {
        Outside& outside = touch(input);
        if (--outside.after == 0 && mayJoin(input, seed) && choice_->selectInput(node, input)) {
          join(input, &group);
        }
      }
      for (int output : graph_.after(node)) {
        Outside& outside = touch(output);
        if (--outside.before == 0 && mayJoin(output, seed) && choice_->selectOutput(node, output)) {
          join(output, &group);
        }
      }
    }
    std::sort(group.begin(), group.end());
    return group;
  }

  /// The number of a node's neighbours that are not among the members visited so far.
  struct Outside {
    int before;
    int after;
  };
  Outside& touch(int node) {
    Outside& outside = outside_[at(node)];
    if (touched_[at(node)] != attempt_) {
      touched_[at(node)] = attempt_;
      outside = {operators_before_[at(node)], graph_.after(node).size()};
    }
    return outside;
  }

  void countOperatorsBefore() {
    const std::size_t count = at(graph_.nodes());
    outside_.resize(count);
    touched_.resize(count, 0);
    operators_before_.resize(count, 0);
    for (int node = 0; node < graph_.nodes(); ++node) {
      for (int input : graph_.before(node)) {
        if (!graph_.isVariable(input)) ++operators_before_[at(node)];
      }
    }
  }

  const NumberedGraph& graph_;
  Choice* choice_;
  UnitOrder order_;
  int64_t work_ = 0;
  int64_t most_work_;
  bool careful_ = false;
  int attempt_ = 0;
  std::vector<bool> grouped_;
  std::vector<int> left_out_;  ///< of each node: the seed whose group excludes it
  std::vector<int> joined_;    ///< of each node: the attempt in which it last joined
  std::vector<int> touched_;   ///< of each node: the attempt to which outside_ refers
  std::vector<Outside> outside_;
  std::vector<int> operators_before_;
};

}  // namespace

std::vector<std::vector<int>> growGroups(const NumberedGraph& graph, Choice* choice,
                                         const std::function<void(const std::string&)>& fail) {
  Grower grower(graph, choice);
  std::vector<std::vector<int>> groups;
  for (int seed = 0; seed < graph.nodes(); ++seed) {
    if (!grower.mayBegin(seed)) continue;
    std::vector<int> group = grower.grow(seed);
    const std::size_t grown = group.size();
    group = choice->filter(std::move(group));
    if (group.empty()) continue;
    if (!grower.merge(grown, group)) {
      fail("Filter kept node number " + std::to_string(grower.lastReentry()) +
           ", but not all nodes between it and the others it kept: the subgraph would be on a "
           "cycle");
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace passlib
