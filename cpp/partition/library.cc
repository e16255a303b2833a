#include "partition/library.h"

#include <tuple>

#include "errors.h"
#include "library/handover/large_memory.h"

namespace passlib {
namespace {

using mxnet::ext::host::quoted;

/// More attributes than any node has. Bounds what the host reads for a library.
constexpr int kMostAttributes = 1000000;

}  // namespace

StrategyLibrary::StrategyLibrary(const Library* library, std::size_t partitioner,
                                 std::size_t strategy, const OptionList& options, bool force_json)
    : library_(*library),
      partitioner_(library->partitioners().at(partitioner)),
      strategy_(partitioner_.strategies.at(strategy)),
      options_(options),
      force_json_(force_json) {
  if (strategy_.supported_ops == nullptr && strategy_.create_selector == nullptr) {
    fail("has neither setSupportedOps nor setCreateSelector");
  }
  if (strategy_.op.empty()) fail("names no operator for its subgraphs");
}

std::string StrategyLibrary::described() const {
  return "partitioner " + quoted(partitioner_.name) + ", strategy " + quoted(strategy_.name) +
         ", of library " + quoted(library_.path());
}

void StrategyLibrary::fail(const std::string& reason) const {
  throw PassError(described() + ": " + reason);
}

void StrategyLibrary::failCall(const char* function, const CallOutcome& outcome) const {
  throw PassError(describeFailure(described() + " failed in " + function, outcome),
                  outcome.messages);
}

template <typename Flat, typename Json, typename Function, typename... Rest>
void StrategyLibrary::enter(const char* name, Flat flat, Json json, Function function, Graph* graph,
                            Rest... rest) const {
  if (flat != nullptr && !force_json_) {
    mxnet::ext::host::FlatStore shown(largeMemory());
    shown.flatten(*graph);
    call(name, [&]() { return flat(function, &shown.model, rest...); });
    return;
  }
  const std::string text = graph->toString();
  call(name, [&]() { return json(function, text.c_str(), rest...); });
}

std::vector<int> StrategyLibrary::supportedOps(Graph* graph) const {
  std::vector<int> ids(graph->nodes.size(), kUnsupported);
  enter("supportedOps", calls().supported_ops_flat, calls().supported_ops, strategy_.supported_ops,
        graph, static_cast<int>(ids.size()), ids.data(), options_.keys(), options_.values(),
        options_.count());
  return ids;
}

StrategyLibrary::Selector StrategyLibrary::createSelector(Graph* graph) const {
  void* selector = nullptr;
  enter("createSelector", calls().create_selector_flat, calls().create_selector,
        strategy_.create_selector, graph, &selector, options_.keys(), options_.values(),
        options_.count());
  if (selector == nullptr) fail("createSelector succeeded, but returned no selector");
  return Selector(selector, [this](void* pointer) {
    const auto destroy = calls().destroy_selector;
    if (destroy != nullptr) library_.state().destroy(pointer, destroy);
  });
}

std::optional<StrategyLibrary::Attributes> StrategyLibrary::review(Graph* subgraph, int number,
                                                                   const ParamBlock& args,
                                                                   const ParamBlock& aux) const {
  int accept = 0;
  char** keys = nullptr;
  char** values = nullptr;
  int count = 0;
  std::apply(
      [&](auto... columns) {
        enter("reviewSubgraph", calls().review_flat, calls().review, strategy_.review, subgraph,
              number, &accept, options_.keys(), options_.values(), options_.count(), &keys, &values,
              &count, columns...);
      },
      std::tuple_cat(args.columns(), aux.columns()));
  Attributes attributes = takeAttributes(keys, values, count);
  if (accept == 0) return std::nullopt;
  return attributes;
}

StrategyLibrary::Attributes StrategyLibrary::takeAttributes(char** keys, char** values,
                                                            int count) const {
  const Owned<char*> owned_keys = own(keys);
  const Owned<char*> owned_values = own(values);
  if (count < 0 || (count > 0 && (keys == nullptr || values == nullptr))) {
    fail("reviewSubgraph returned " + std::to_string(count) + " attributes without arrays");
  }
  if (count > kMostAttributes) {
    fail("reviewSubgraph returned " + std::to_string(count) + " attributes; " +
         std::to_string(kMostAttributes) + " are possible");
  }
  std::vector<Owned<char>> texts;
  for (int i = 0; i < count; ++i) {
    texts.push_back(own(keys[i]));
    texts.push_back(own(values[i]));
  }
  Attributes attributes;
  for (std::size_t i = 0; i < texts.size(); i += 2) {
    if (texts[i] == nullptr || texts[i + 1] == nullptr) {
      fail("reviewSubgraph returned an attribute without text");
    }
    attributes[texts[i].get()] = texts[i + 1].get();
  }
  return attributes;
}

}  // namespace passlib
