#include "library/rounds.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace passlib {

namespace {

constexpr std::size_t kLargestGrowth = 1000000;
/// By default weights grow by at most 1 %, so that no file grows noticeably.
constexpr std::size_t kShare = 100;
/// The minimum size of an operator in a file, with its names.
constexpr std::size_t kBytesOfNode = 64;
/// Larger growths count as this one, so that passes can have it and the weights as an option.
constexpr std::size_t kUnlimited = std::size_t{1} << 62U;

int expenseOf(const std::string& cost) { return cost == "runs" ? 2 : cost == "weights" ? 1 : 0; }

}  // namespace

std::vector<std::size_t> orderOf(const std::vector<JoinedPass>& passes) {
  std::set<std::string> names;
  for (const JoinedPass& pass : passes) names.insert(pass.name);
  std::map<std::string, std::vector<std::size_t>> followers;
  for (std::size_t i = 0; i < passes.size(); ++i)
    followers[names.count(passes[i].after) != 0 ? passes[i].after : ""].push_back(i);
  const auto sort = [&passes](std::vector<std::size_t>* places, int sign) {
    std::stable_sort(places->begin(), places->end(), [&](std::size_t one, std::size_t other) {
      return std::pair(!passes[one].is_standard, sign * expenseOf(passes[one].cost)) <
             std::pair(!passes[other].is_standard, sign * expenseOf(passes[other].cost));
    });
  };
  std::vector<std::size_t> roots = followers[""];
  sort(&roots, 1);
  // The standard passes form a chain; passes of users that name no other, or that are in a cycle,
  // are last.
  for (std::size_t i = 0; i < passes.size(); ++i) roots.push_back(i);
  std::vector<std::size_t> ordered;
  std::set<std::string> placed;
  for (const std::size_t root : roots) {
    std::vector<std::size_t> pending = {root};
    while (!pending.empty()) {
      const std::size_t next = pending.back();
      pending.pop_back();
      if (!placed.insert(passes[next].name).second) continue;
      ordered.push_back(next);
      // The last one is next: passes of users directly follow the one that they name.
      std::vector<std::size_t> later = followers[passes[next].name];
      sort(&later, -1);
      pending.insert(pending.end(), later.begin(), later.end());
    }
  }
  return ordered;
}

void runRounds(const RoundsHost& host, std::size_t passes, const Cost& start, int64_t max_rounds,
               std::optional<std::size_t> max_growth) {
  const std::size_t growth = max_growth ? std::min(*max_growth, kUnlimited)
                                        : std::min(kLargestGrowth, start.bytes / kShare);
  const auto limit = [&start, growth](const Cost& cost) {
    const std::size_t fewer = start.nodes > cost.nodes ? start.nodes - cost.nodes : 0;
    return start.bytes + growth + kBytesOfNode * fewer;
  };
  Cost cost = start;
  std::size_t graph = 1;  // the number of the graph
  // The graph on which each pass last had no effect.
  std::vector<std::size_t> settled(passes, 0);
  for (int64_t round = 0; round < max_rounds; ++round) {
    bool is_settled = true;
    for (std::size_t pass = 0; pass < passes; ++pass) {
      if (settled[pass] == graph) continue;
      is_settled = false;
      settled[pass] = graph;
      if (!host.has_trigger(pass)) continue;
      const std::size_t most = limit(cost);
      const std::optional<Cost> made = host.run(pass, most - std::min(most, cost.bytes));
      if (!made || made->bytes > std::max(cost.bytes, limit(*made)) || !host.is_cheaper()) continue;
      settled[pass] = 0;
      if (host.keep()) ++graph;
      cost = *made;
    }
    if (is_settled) break;
  }
}

}  // namespace passlib
