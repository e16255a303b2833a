#include "onnx/reading/level_values.h"

#include <functional>
#include <queue>

namespace passlib::onnx {

LevelValues::LevelValues(const Level& level)
    : makers_(level.nodes.size() + level.initializers.size() + level.inputs.size()),
      nested_(level.nested) {}

void LevelValues::failReserved(Bytes name) {
  throw UnsupportedError("a value is named " + shown(name) + ", which passlib reserves");
}

void LevelValues::failTwice(Bytes name) {
  throw GraphError("value " + shown(name) + " is defined twice");
}

void LevelValues::fail(Bytes name, const std::string& user) const {
  checkedName(name, [&] { return user; });
  throw GraphError(user + " is " + shown(name) + ", which nothing before it computes");
}

std::vector<uint32_t> orderNodes(const Level& level, const std::vector<Need>& needs) {
  const std::size_t count = level.nodes.size();
  std::vector<uint32_t> waiting(count, 0);
  std::vector<uint32_t> first(count + 1, 0);
  for (const Need& need : needs) {
    ++first[need.producer + 1];
    ++waiting[need.consumer];
  }
  for (std::size_t i = 0; i < count; ++i) first[i + 1] += first[i];
  std::vector<uint32_t> next(first.begin(), first.end() - 1);
  std::vector<uint32_t> consumers(needs.size());
  for (const Need& need : needs) consumers[next[need.producer]++] = need.consumer;

  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  for (uint32_t i = 0; i < count; ++i) {
    if (waiting[i] == 0) ready.push(i);
  }
  std::vector<uint32_t> order;
  order.reserve(count);
  while (!ready.empty()) {
    const uint32_t node = ready.top();
    ready.pop();
    order.push_back(node);
    for (uint32_t i = first[node]; i < first[node + 1]; ++i) {
      if (--waiting[consumers[i]] == 0) ready.push(consumers[i]);
    }
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (waiting[i] == 0) continue;
    throw GraphError(titleOf(level, level.nodes[i], i) +
                     " needs a value that is computed from its own outputs, so that nothing before "
                     "it computes it");
  }
  return order;
}

}  // namespace passlib::onnx
