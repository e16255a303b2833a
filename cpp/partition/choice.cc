#include "partition/choice.h"

#include <algorithm>
#include <utility>

namespace passlib {
namespace {

using mxnet::ext::host::quoted;

// Numbers that supportedOps returns; others are numbers of subgraphs.
constexpr int kAnySubgraph = -1;

class Supported : public Choice {
 public:
  explicit Supported(std::vector<int> ids) : ids_(std::move(ids)) {}
  bool select(int node) override { return id(node) != kUnsupported; }
  bool selectInput(int node, int input) override { return joins(node, input); }
  bool selectOutput(int node, int output) override { return joins(node, output); }
  bool isStateless() const override { return true; }

 private:
  int id(int node) const { return ids_[at(node)]; }
  bool joins(int node, int other) const {
    return id(other) != kUnsupported && (id(other) == kAnySubgraph || id(other) == id(node));
  }
  std::vector<int> ids_;
};

class Selected : public Choice {
 public:
  Selected(const StrategyLibrary& library, Graph* graph)
      : library_(library), calls_(library.calls()), selector_(library.createSelector(graph)) {}
  bool select(int node) override {
    int selected = 0;
    library_.callSelector("Select", [&]() { calls_.select(selector_.get(), node, &selected); });
    return selected != 0;
  }
  bool selectInput(int node, int input) override {
    int selected = 0;
    library_.callSelector("SelectInput",
                          [&]() { calls_.select_input(selector_.get(), node, input, &selected); });
    return selected != 0;
  }
  bool selectOutput(int node, int output) override {
    int selected = 0;
    library_.callSelector(
        "SelectOutput", [&]() { calls_.select_output(selector_.get(), node, output, &selected); });
    return selected != 0;
  }
  std::vector<int> filter(std::vector<int> candidates) override {
    std::vector<int> shown = candidates;  // the library may write to it
    int* kept = nullptr;
    int count = 0;
    library_.callSelector("Filter", [&]() {
      calls_.filter(selector_.get(), shown.data(), static_cast<int>(shown.size()), &kept, &count);
    });
    const StrategyLibrary::Owned<int> owned = library_.own(kept);
    if (count < 0 || static_cast<std::size_t>(count) > candidates.size() ||
        (count > 0 && kept == nullptr)) {
      library_.fail("Filter kept " + std::to_string(count) + " of " +
                    std::to_string(candidates.size()) + " nodes");
    }
    std::vector<int> result(kept, kept + count);
    std::sort(result.begin(), result.end());
    if (std::adjacent_find(result.begin(), result.end()) != result.end()) {
      library_.fail("Filter kept a node twice");
    }
    for (int node : result) {
      if (std::binary_search(candidates.begin(), candidates.end(), node)) continue;
      library_.fail("Filter kept node number " + std::to_string(node) +
                    ", which is not among the candidates");
    }
    return result;
  }
  void reset() override {
    library_.callSelector("Reset", [&]() { calls_.reset(selector_.get()); });
  }
  bool isStateless() const override { return false; }

 private:
  const StrategyLibrary& library_;
  const Library::PartitionerCalls& calls_;
  StrategyLibrary::Selector selector_;
};

}  // namespace

std::unique_ptr<Choice> makeChoice(const StrategyLibrary& library, Graph* graph) {
  if (library.strategy().supported_ops == nullptr) {
    return std::make_unique<Selected>(library, graph);
  }
  std::vector<int> ids = library.supportedOps(graph);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= kUnsupported) continue;
    library.fail("supportedOps returned the number " + std::to_string(ids[i]) + " for node " +
                 quoted(graph->nodes[i]->name) +
                 "; -2 is unsupported, -1 any subgraph, numbers from 0 a specific one");
  }
  return std::make_unique<Supported>(std::move(ids));
}

}  // namespace passlib
