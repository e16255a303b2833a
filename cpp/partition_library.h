// One strategy of a library's partitioner, called safely.
#ifndef PASSLIB_PARTITION_LIBRARY_H_
#define PASSLIB_PARTITION_LIBRARY_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "library.h"
#include "library_call.h"
#include "pass.h"
#include "tensors.h"

namespace passlib {

/// Calls the functions of a strategy. All of them throw PassError, which names partitioner,
/// strategy and library, if the library fails.
class StrategyLibrary {
 public:
  template <typename T>
  using Owned = std::unique_ptr<T, std::function<void(T*)>>;
  using Selector = Owned<void>;
  using Attributes = std::map<std::string, std::string>;

  StrategyLibrary(const Library* library, std::size_t partitioner, std::size_t strategy,
                  const OptionList& options);

  const Library::Strategy& strategy() const { return strategy_; }
  const Library::PartitionerCalls& calls() const { return library_.partitionerCalls(); }

  /// The subgraph that each node may be in, as the library numbers them.
  std::vector<int> supportedOps(const std::string& json, std::size_t nodes) const;
  Selector createSelector(const std::string& json) const;
  /// Runs `body`, which calls a function of a selector.
  template <typename Body>
  void callSelector(const char* function, Body body) const {
    call(function, [&]() {
      body();
      return static_cast<int>(mxnet::ext::MX_SUCCESS);
    });
  }
  /// Attributes for the node of a subgraph, or nothing where the library does not want it.
  std::optional<Attributes> review(const std::string& json, int subgraph, const ParamBlock& args,
                                   const ParamBlock& aux) const;

  /// Memory that the library allocated; it will be released by the library.
  template <typename T>
  Owned<T> own(T* memory) const {
    return Owned<T>(memory, [this](T* pointer) { library_.release(pointer); });
  }
  /// Throws PassError for what a function of the library did wrong.
  [[noreturn]] void fail(const std::string& reason) const;
  std::string described() const;

 private:
  template <typename Body>
  void call(const char* function, Body body) const {
    const CallOutcome outcome = callLibrary(library_, body);
    if (!outcome.succeeded()) failCall(function, outcome);
  }
  [[noreturn]] void failCall(const char* function, const CallOutcome& outcome) const;
  Attributes takeAttributes(char** keys, char** values, int count) const;

  const Library& library_;
  const Library::Partitioner& partitioner_;
  const Library::Strategy& strategy_;
  std::vector<const char*> keys_;
  std::vector<const char*> values_;
};

}  // namespace passlib

#endif  // PASSLIB_PARTITION_LIBRARY_H_
