#include "onnx/naming/order.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "errors.h"

namespace passlib::onnx {

std::vector<uint32_t> stableOrder(const std::vector<std::pair<uint32_t, uint32_t>>& needs,
                                  std::vector<Rank> ranks) {
  const std::size_t count = ranks.size();
  std::vector<bool> inherits(count);
  for (std::size_t i = 0; i < count; ++i) inherits[i] = ranks[i] == kNoRank;
  std::vector<uint32_t> waiting(count, 0);
  std::vector<std::size_t> first(count + 1, 0);
  for (const auto& [item, user] : needs) {
    ++first[item + 1];
    ++waiting[user];
  }
  for (std::size_t i = 0; i < count; ++i) first[i + 1] += first[i];
  std::vector<std::size_t> next(first.begin(), first.end() - 1);
  std::vector<uint32_t> users(needs.size());
  for (const auto& [item, user] : needs) users[next[item]++] = user;

  using Ready = std::pair<Rank, uint32_t>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (uint32_t i = 0; i < count; ++i) {
    if (waiting[i] == 0) ready.emplace(ranks[i], i);
  }
  std::vector<uint32_t> order;
  order.reserve(count);
  while (!ready.empty()) {
    const auto [rank, item] = ready.top();
    ready.pop();
    order.push_back(item);
    for (std::size_t i = first[item]; i < first[item + 1]; ++i) {
      const uint32_t user = users[i];
      if (inherits[user]) ranks[user] = std::max(ranks[user], rank);
      if (--waiting[user] == 0) ready.emplace(ranks[user], user);
    }
  }
  if (order.size() < count) throw GraphError("nodes of the graph need each other in a circle");
  return order;
}

}  // namespace passlib::onnx
