#include "partition_library.h"

#include "errors.h"

namespace passlib {
namespace {

using mxnet::ext::detail::quoted;

/// What the ABI says of a node before the library has said anything.
constexpr int kUnsupported = -2;

}  // namespace

StrategyLibrary::StrategyLibrary(const Library* library, std::size_t partitioner,
                                 std::size_t strategy, const OptionList& options)
    : library_(*library),
      partitioner_(library->partitioners().at(partitioner)),
      strategy_(partitioner_.strategies.at(strategy)) {
  for (const auto& [key, value] : options) {
    keys_.push_back(key.c_str());
    values_.push_back(value.c_str());
  }
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

std::vector<int> StrategyLibrary::supportedOps(const std::string& json, std::size_t nodes) const {
  std::vector<int> ids(nodes, kUnsupported);
  call("supportedOps", [&]() {
    return calls().supported_ops(strategy_.supported_ops, json.c_str(), static_cast<int>(nodes),
                                 ids.data(), keys_.data(), values_.data(),
                                 static_cast<int>(keys_.size()));
  });
  return ids;
}

StrategyLibrary::Selector StrategyLibrary::createSelector(const std::string& json) const {
  void* selector = nullptr;
  call("createSelector", [&]() {
    return calls().create_selector(strategy_.create_selector, json.c_str(), &selector, keys_.data(),
                                   values_.data(), static_cast<int>(keys_.size()));
  });
  if (selector == nullptr) fail("createSelector succeeded, but gave no selector");
  const auto destroy = calls().destroy_selector;
  return Selector(selector, [destroy](void* pointer) {
    if (destroy != nullptr) destroy(pointer);
  });
}

std::optional<StrategyLibrary::Attributes> StrategyLibrary::review(const std::string& json,
                                                                   int subgraph,
                                                                   const ParamBlock& args,
                                                                   const ParamBlock& aux) const {
  int accept = 0;
  char** keys = nullptr;
  char** values = nullptr;
  int count = 0;
  call("reviewSubgraph", [&]() {
    return calls().review(strategy_.review, json.c_str(), subgraph, &accept, keys_.data(),
                          values_.data(), static_cast<int>(keys_.size()), &keys, &values, &count,
                          args.names(), args.count(), args.data(), args.shapes(), args.dims(),
                          args.types(), args.ids(), args.deviceTypes(), args.deviceIds(),
                          aux.names(), aux.count(), aux.data(), aux.shapes(), aux.dims(),
                          aux.types(), aux.ids(), aux.deviceTypes(), aux.deviceIds());
  });
  Attributes attributes = takeAttributes(keys, values, count);
  if (accept == 0) return std::nullopt;
  return attributes;
}

StrategyLibrary::Attributes StrategyLibrary::takeAttributes(char** keys, char** values,
                                                            int count) const {
  const Owned<char*> owned_keys = own(keys);
  const Owned<char*> owned_values = own(values);
  if (count < 0 || (count > 0 && (keys == nullptr || values == nullptr))) {
    fail("reviewSubgraph gave " + std::to_string(count) + " attributes, and not where they are");
  }
  std::vector<Owned<char>> texts;
  for (int i = 0; i < count; ++i) {
    texts.push_back(own(keys[i]));
    texts.push_back(own(values[i]));
  }
  Attributes attributes;
  for (std::size_t i = 0; i < texts.size(); i += 2) {
    if (texts[i] == nullptr || texts[i + 1] == nullptr) {
      fail("reviewSubgraph gave an attribute without text");
    }
    attributes[texts[i].get()] = texts[i + 1].get();
  }
  return attributes;
}

}  // namespace passlib
