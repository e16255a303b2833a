#include "partition/order.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace passlib {
UnitOrder::UnitOrder(const NumberedGraph& graph)
    : graph_(graph),
      unit_(at(graph.nodes())),
      merged_(at(graph.nodes()), -1),
      position_(at(graph.nodes())),
      visit_(at(graph.nodes()), 0),
      group_mark_(at(graph.nodes()), 0) {
  std::iota(unit_.begin(), unit_.end(), 0);
  std::iota(position_.begin(), position_.end(), 0);
}

bool UnitOrder::visit(int unit) {
  if (visit_[at(unit)] == visit_number_) return false;
  visit_[at(unit)] = visit_number_;
  return true;
}

template <typename Act>
void UnitOrder::forEachMember(int unit, Act act) const {
  const int merged = merged_[at(unit)];
  if (merged < 0) return act(unit);
  for (int node : members_[at(merged)]) act(node);
}

void UnitOrder::search(const std::vector<int>& group) {
  ++visit_number_;
  last_reentry_ = -1;
  reentered_.clear();
  behind_.clear();
  int last = std::numeric_limits<int>::max();
  if (ordered_) {
    last = -1;
    for (int node : group) last = std::max(last, position(node));
  }
  for (int node : group) group_mark_[at(node)] = visit_number_;
  const auto in_group = [&](int node) { return group_mark_[at(node)] == visit_number_; };
  const auto leave = [&](int node) {
    const int other = unit(node);
    if (position(other) < last && visit(other)) behind_.push_back(other);
  };
  for (int node : group) {
    work_ += 1 + graph_.after(node).size();
    for (int consumer : graph_.after(node)) {
      if (!in_group(consumer)) leave(consumer);
    }
  }
  for (std::size_t i = 0; i < behind_.size(); ++i) {
    forEachMember(behind_[i], [&](int node) {
      work_ += 1 + graph_.after(node).size();
      for (int consumer : graph_.after(node)) {
        if (!in_group(consumer)) {
          leave(consumer);
        } else if (visit(consumer)) {
          reentered_.push_back(consumer);
          last_reentry_ = std::max(last_reentry_, consumer);
        }
      }
    });
  }
  for (std::size_t i = 0; i < reentered_.size(); ++i) {
    for (int consumer : graph_.after(reentered_[i])) {
      if (in_group(consumer) && visit(consumer)) reentered_.push_back(consumer);
    }
  }
}

std::vector<int> UnitOrder::ancestors(const std::vector<int>& group, int first, int last) {
  ++visit_number_;
  for (int node : group) visit(node);
  std::vector<int> found;
  const auto expand = [&](int node) {
    work_ += 1 + graph_.before(node).size();
    for (int producer : graph_.before(node)) {
      const int other = unit(producer);
      const bool between = position(other) > first && position(other) < last;
      if (between && visit(other)) found.push_back(other);
    }
  };
  for (int node : group) expand(node);
  for (std::size_t i = 0; i < found.size(); ++i) forEachMember(found[i], expand);
  return found;
}

void UnitOrder::merge(const std::vector<int>& group) {
  if (group.size() < 2) return;
  const int head = group.front();
  if (ordered_) {
    const auto by_position = [this](int a, int b) { return position(a) < position(b); };
    const auto [low, high] = std::minmax_element(group.begin(), group.end(), by_position);
    std::vector<int> ahead = ancestors(group, position(*low), position(*high));
    std::vector<int> behind = behind_;
    std::sort(ahead.begin(), ahead.end(), by_position);
    std::sort(behind.begin(), behind.end(), by_position);
    std::vector<int> places;
    const auto take_places = [&](const std::vector<int>& units) {
      for (int each : units) places.push_back(position(each));
    };
    take_places(ahead);
    take_places(group);
    take_places(behind);
    std::sort(places.begin(), places.end());
    auto place = places.begin();
    for (int each : ahead) position_[at(each)] = *place++;
    position_[at(head)] = *place;
    place += static_cast<std::ptrdiff_t>(group.size());
    for (int each : behind) position_[at(each)] = *place++;
  }
  for (int node : group) unit_[at(node)] = head;
  merged_[at(head)] = static_cast<int>(members_.size());
  members_.push_back(group);
}

}  // namespace passlib
