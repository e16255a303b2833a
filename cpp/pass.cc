#include "pass.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_set>

#include "check.h"
#include "errors.h"
#include "library_call.h"

namespace passlib {
namespace {

using mxnet::ext::detail::quoted;

class Caller {
 public:
  Caller(const PassCall& call, Allocator* allocator)
      : call_(call), pass_(call.library->passes()[call.index]), allocator_(allocator) {
    for (const auto& [key, value] : call.options) {
      keys_.push_back(key.c_str());
      values_.push_back(value.c_str());
    }
  }

  /// Hands the library the graph itself, which it changes.
  std::unique_ptr<Graph> callDirect(std::unique_ptr<Graph> result) {
    run([&]() {
      return call_.library->callPassDirect()(
          pass_.body, result.get(), keys_.data(), values_.data(), static_cast<int>(keys_.size()),
          pass_.name.c_str(), call_.args.names(), call_.args.count(), call_.args.data(),
          call_.args.shapes(), call_.args.dims(), call_.args.types(), call_.args.ids(),
          call_.args.deviceTypes(), call_.args.deviceIds(), call_.aux.names(), call_.aux.count(),
          call_.aux.data(), call_.aux.shapes(), call_.aux.dims(), call_.aux.types(),
          call_.aux.ids(), call_.aux.deviceTypes(), call_.aux.deviceIds(), &Allocator::allocate,
          allocator_);
    });
    return result;
  }

  std::unique_ptr<Graph> callWithJson(std::unique_ptr<Graph> graph) {
    std::string text = graph->toString();
    if (call_.library->isOurs()) graph.reset();
    char* result = nullptr;
    run([&]() {
      return call_.library->callPass()(
          pass_.body, text.c_str(), &result, keys_.data(), values_.data(),
          static_cast<int>(keys_.size()), pass_.name.c_str(), call_.args.names(),
          call_.args.count(), call_.args.data(), call_.args.shapes(), call_.args.dims(),
          call_.args.types(), call_.args.ids(), call_.args.deviceTypes(), call_.args.deviceIds(),
          call_.aux.names(), call_.aux.count(), call_.aux.data(), call_.aux.shapes(),
          call_.aux.dims(), call_.aux.types(), call_.aux.ids(), call_.aux.deviceTypes(),
          call_.aux.deviceIds(), &Allocator::allocate, allocator_);
    });
    if (result == nullptr) {
      throw PassResultError(described("succeeded, but gave back no graph"));
    }
    const auto release = [this](char* memory) { call_.library->release(memory); };
    const std::unique_ptr<char, decltype(release)> owned(result, release);
    std::string().swap(text);
    try {
      mxnet::ext::JsonOptions reading;
      reading.allow_control_characters = true;  // MXNet's lib_api writes them raw
      std::unique_ptr<Graph> graph_back(Graph::fromString(result, std::strlen(result), reading));
      if (graph != nullptr) restoreLost(*graph, graph_back.get());
      return graph_back;
    } catch (const mxnet::ext::JsonError& error) {
      throw PassResultError(
          described(std::string("gave back what is not a graph: ") + error.what()));
    }
  }

  std::string described(const std::string& what) const {
    return "pass " + quoted(pass_.name) + " of library " + quoted(call_.library->path()) + " " +
           what;
  }

 private:
  template <typename Body>
  void run(Body body) {
    CallOutcome outcome = callLibrary(*call_.library, body);
    if (outcome.succeeded() && allocator_->error().empty()) return;
    throw PassError(describeFailure(described("failed"), outcome, allocator_->error()),
                    outcome.messages);
  }

  const PassCall& call_;
  const Library::Pass& pass_;
  Allocator* allocator_;
  std::vector<const char*> keys_;
  std::vector<const char*> values_;
};

std::vector<std::string> variableNames(const Graph& graph) {
  std::vector<std::string> names;
  names.reserve(graph.inputs.size());
  for (const Node* node : graph.inputs) names.push_back(node->name);
  return names;
}

/// Those of `names` that no variable of the graph has.
std::vector<std::string> missingNames(std::vector<std::string> names, const Graph& graph) {
  // Most passes leave most variables where they were: only what follows the first difference is
  // looked up.
  std::size_t same = 0;
  while (same < names.size() && same < graph.inputs.size() &&
         graph.inputs[same]->name == names[same]) {
    ++same;
  }
  names.erase(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(same));
  std::unordered_set<std::string_view> present;
  for (std::size_t i = same; i < graph.inputs.size(); ++i) present.insert(graph.inputs[i]->name);
  const auto found = [&](const std::string& name) { return present.count(name) != 0; };
  names.erase(std::remove_if(names.begin(), names.end(), found), names.end());
  return names;
}

}  // namespace

PassResult runPass(const PassCall& call, GraphSource* source) {
  const std::lock_guard<std::recursive_mutex> lock(call.library->mutex());
  Allocator allocator(call.accept_args, call.accept_aux);
  Caller caller(call, &allocator);
  const bool direct = call.library->sharesTypes() && !call.force_json;
  std::unique_ptr<Graph> shown = call.consume ? source->consume() : source->take();
  std::vector<std::string> names = variableNames(*shown);
  shown->attrs = call.attributes;
  PassResult result;
  result.graph =
      direct ? caller.callDirect(std::move(shown)) : caller.callWithJson(std::move(shown));
  try {
    checkGraph(result.graph.get());
  } catch (const GraphError& error) {
    throw PassResultError(
        caller.described(std::string("gave back a graph that is not sound: ") + error.what()));
  }
  if (call.ordered) {
    orderGraph(result.graph.get());
  } else {
    mxnet::ext::detail::forEachGraph(result.graph.get(), [](Graph* level) {
      level->nodes = sortNodes(level->nodes, NodeTable(level->nodes));
    });
  }
  result.gone = missingNames(std::move(names), *result.graph);
  result.params = allocator.take();
  return result;
}

}  // namespace passlib
