// Calls of one strategy of a library's partitioner.
#ifndef PASSLIB_PARTITION_LIBRARY_H_
#define PASSLIB_PARTITION_LIBRARY_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "library/calls/call.h"
#include "library/library.h"
#include "library/params.h"
#include "library/pass.h"
#include "library/text_columns.h"

namespace passlib {

/// The ABI's initial number of a node: the library does not take it.
constexpr int kUnsupported = -2;

/// Calls the functions of a strategy. Each throws PassError, with partitioner, strategy and library
/// in the message, if the library fails.
class StrategyLibrary {
 public:
  template <typename T>
  using Owned = std::unique_ptr<T, std::function<void(T*)>>;
  using Selector = Owned<void>;
  using Attributes = std::map<std::string, std::string>;

  /// `force_json`: never pass a graph in the flat form.
  StrategyLibrary(const Library* library, std::size_t partitioner, std::size_t strategy,
                  const OptionList& options, bool force_json);

  const Library::Strategy& strategy() const { return strategy_; }
  const Library::PartitionerCalls& calls() const { return library_.partitionerCalls(); }

  /// Returns the subgraph that each node may be in, by the library's numbers.
  std::vector<int> supportedOps(Graph* graph) const;
  /// The graph must outlive the selector.
  Selector createSelector(Graph* graph) const;
  /// Runs `body`, which calls a function of a selector.
  template <typename Body>
  void callSelector(const char* function, Body body) const {
    call(function, [&]() {
      body();
      return static_cast<int>(mxnet::ext::MX_SUCCESS);
    });
  }
  /// Returns attributes for the node of a subgraph, or nothing if the library rejects it.
  std::optional<Attributes> review(Graph* subgraph, int number, const ParamBlock& args,
                                   const ParamBlock& aux) const;

  /// Takes ownership of memory that the library allocated and will release.
  template <typename T>
  Owned<T> own(T* memory) const {
    return Owned<T>(memory, [this](T* pointer) { library_.release(pointer); });
  }
  /// Throws PassError for a result of the library that is not valid.
  [[noreturn]] void fail(const std::string& reason) const;
  std::string described() const;

 private:
  template <typename Body>
  void call(const char* function, Body body) const {
    const CallOutcome outcome = callLibrary(library_, body);
    if (!outcome.succeeded()) failCall(function, outcome);
  }
  /// Calls an entry point with the graph in the flat form, or with its JSON for other libraries.
  template <typename Flat, typename Json, typename Function, typename... Rest>
  void enter(const char* name, Flat flat, Json json, Function function, Graph* graph,
             Rest... rest) const;
  [[noreturn]] void failCall(const char* function, const CallOutcome& outcome) const;
  Attributes takeAttributes(char** keys, char** values, int count) const;

  const Library& library_;
  const Library::Partitioner& partitioner_;
  const Library::Strategy& strategy_;
  TextColumns options_;
  bool force_json_;
};

}  // namespace passlib

#endif  // PASSLIB_PARTITION_LIBRARY_H_
