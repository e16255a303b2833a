#include "library/pass.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "graph/check.h"
#include "graph/variables.h"
#include "library/calls/call.h"
#include "library/calls/restore.h"
#include "library/handover/flat_result.h"
#include "library/handover/large_memory.h"
#include "library/text_columns.h"

namespace passlib {
namespace {

using mxnet::ext::host::quoted;

/// Of some parameters, those that the graph has variables for. Those that a pass allocated for
/// nodes which it removed again belong to nothing.
std::vector<NewParam> usedParams(std::vector<NewParam> params, Graph* graph) {
  if (params.empty()) return params;
  TextViewSet names;
  names.reserve(params.size());
  for (const NewParam& param : params) names.insert(param.name);
  const TextViewSet used = usedAmong(names, graph);
  std::vector<NewParam> kept;
  kept.reserve(params.size());
  for (NewParam& param : params) {
    if (used.count(param.name) != 0) kept.push_back(std::move(param));
  }
  return kept;
}

class Caller {
 public:
  Caller(const PassCall& call, Allocator* allocator)
      : call_(call),
        pass_(call.library->passes()[call.index]),
        allocator_(allocator),
        options_(call.options) {}

  /// The parts that are known to be unchanged.
  const Kept& kept() const { return kept_; }

  std::string described(const std::string& what) const { return describePass(call_) + " " + what; }

  /// Runs the pass on the graph, handed over in the fastest way that both sides allow.
  std::unique_ptr<Graph> call(std::unique_ptr<Graph> graph) {
    const bool flat = std::max(call_.handover, call_.library->handover()) == Handover::kFlat;
    return flat ? callFlat(std::move(graph)) : callWithJson(std::move(graph));
  }

 private:
  /// Passes plain arrays that refer to the graph, which becomes what comes back.
  std::unique_ptr<Graph> callFlat(std::unique_ptr<Graph> graph) {
    const mxnet::ext::FlatModel* result = nullptr;
    mxnet::ext::host::FlatStore shown(largeMemory());
    shown.flatten(*graph);
    if (call_.types) {
      shown.model.types = [](const void* call) {
        return static_cast<const PassCall*>(call)->types();
      };
      shown.model.host = &call_;
    }
    run([&](auto... rest) {
      return call_.library->callPassFlat()(pass_.body, &shown.model, &result, rest...);
    });
    if (result == nullptr) throw PassResultError(described("succeeded, but returned no graph"));
    const auto release = [this](const mxnet::ext::FlatModel* model) {
      const CallState::Lock lock(&call_.library->state());
      call_.library->freeFlat()(model);
    };
    const std::unique_ptr<const mxnet::ext::FlatModel, decltype(release)> owned(result, release);
    try {
      kept_ = readFlatResult(result, shown.model, graph.get());
    } catch (const GraphError& error) {
      throw PassResultError(
          described(std::string("returned a flat graph that is not well-formed: ") + error.what()));
    }
    return graph;
  }

  std::unique_ptr<Graph> callWithJson(std::unique_ptr<Graph> graph) {
    std::string text = graph->toString();
    if (call_.library->isOurs()) graph.reset();
    char* result = nullptr;
    run([&](auto... rest) {
      return call_.library->callPass()(pass_.body, text.c_str(), &result, rest...);
    });
    if (result == nullptr) throw PassResultError(described("succeeded, but returned no graph"));
    const auto release = [this](char* memory) { call_.library->release(memory); };
    const std::unique_ptr<char, decltype(release)> owned(result, release);
    std::string().swap(text);
    try {
      mxnet::ext::JsonOptions reading;
      reading.allow_control_characters = true;  // MXNet's lib_api does not escape them
      std::unique_ptr<Graph> graph_back(Graph::fromString(result, std::strlen(result), reading));
      if (graph != nullptr) restoreLost(*graph, graph_back.get());
      return graph_back;
    } catch (const mxnet::ext::JsonError& error) {
      throw PassResultError(
          described(std::string("returned text that is not a graph: ") + error.what()));
    }
  }

  /// `enter` calls an entry point; the arguments that both entry points share are given to it.
  template <typename Enter>
  void run(Enter enter) {
    const auto arguments = std::tuple_cat(
        std::make_tuple(options_.keys(), options_.values(), options_.count(), pass_.name.c_str()),
        call_.args.columns(), call_.aux.columns(),
        std::make_tuple(&Allocator::allocate, allocator_));
    CallOutcome outcome =
        callLibrary(*call_.library, [&]() { return std::apply(enter, arguments); });
    if (outcome.succeeded()) allocator_->refuseWrites();
    if (outcome.succeeded() && allocator_->error().empty()) return;
    throw PassError(describeFailure(described("failed"), outcome, allocator_->error()),
                    outcome.messages);
  }

  const PassCall& call_;
  const Library::Pass& pass_;
  Allocator* allocator_;
  TextColumns options_;
  Kept kept_;
};

}  // namespace

int mostNestedGraphs(GraphSource* before) {
  constexpr int kMostNestedGraphs = 100;
  return std::max(kMostNestedGraphs, before->depth());
}

OperatorKinds finishGraph(Graph* graph, bool ordered, const std::string& what, int max_depth,
                          const std::vector<bool>& fine, bool nested_fine) {
  NodeOrder order = NodeOrder::kAny;
  OperatorKinds kinds;
  try {
    order = checkGraph(graph, max_depth, fine, nested_fine, &kinds);
  } catch (const GraphError& error) {
    throw PassResultError(what + ": " + error.what());
  }
  const std::size_t nodes = graph->nodes.size();
  if (order < (ordered ? NodeOrder::kPostOrder : NodeOrder::kSorted)) arrangeGraph(graph, ordered);
  if (graph->nodes.size() != nodes) kinds.forget();  // those that no output needs are left out
  return kinds;
}

std::string describePass(const PassCall& call) {
  return "pass " + quoted(call.library->passes()[call.index].name) + " of library " +
         quoted(call.library->path());
}

PassResult runPass(const PassCall& call, GraphSource* source) {
  Allocator allocator(call.accept_args, call.accept_aux, call.args, call.aux);
  Caller caller(call, &allocator);
  const int max_depth = mostNestedGraphs(source);
  std::unique_ptr<Graph> shown = call.consume ? source->consume() : source->take();
  const NameList names = namesOfVariables(*shown);
  shown->attrs = call.attributes;
  PassResult result;
  result.graph = caller.call(std::move(shown));
  // A graph that is as it was is as sound as all that a pass is shown.
  if (caller.kept().whole) {
    result.kinds = source->kinds();
  } else {
    // Edges that are as they were are in order.
    result.kinds = finishGraph(result.graph.get(), call.ordered && !caller.kept().edges,
                               caller.described("returned a graph that is not sound"), max_depth,
                               caller.kept().texts);
    result.gone = missingNames(names, *result.graph);
  }
  result.params = usedParams(allocator.take(), result.graph.get());
  return result;
}

}  // namespace passlib
