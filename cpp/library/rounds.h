// The rounds of a pipeline such as simplify, for every host: which pass follows which, and which
// results are kept.
#ifndef PASSLIB_LIBRARY_ROUNDS_H_
#define PASSLIB_LIBRARY_ROUNDS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace passlib {

/// A pass that joins a pipeline.
struct JoinedPass {
  std::string name;
  std::string after;         ///< the pass that it follows; empty for any
  bool is_standard = false;  ///< whether it comes with passlib
  std::string cost;          ///< the class that it declares
};

/// Returns the indices of passes in the order in which they run, each after the pass that it names.
/// Standard passes come first, then those of a cheaper class.
std::vector<std::size_t> orderOf(const std::vector<JoinedPass>& passes);

/// The size of a model.
struct Cost {
  std::size_t nodes = 0;  ///< operators, including nested graphs
  std::size_t bytes = 0;  ///< of the weights

  bool operator<(const Cost& other) const {
    return nodes != other.nodes ? nodes < other.nodes : bytes < other.bytes;
  }
};

/// The model of a host that runs passes in rounds.
struct RoundsHost {
  /// Whether the graph has an operator that the pass needs.
  std::function<bool(std::size_t pass)> has_trigger;
  /// Runs a pass on the model, whose weights may grow by so many bytes. Returns the cost of the
  /// result, or nothing if the model stays the same.
  std::function<std::optional<Cost>(std::size_t pass, std::size_t room)> run;
  /// Whether the last result costs less than the model by the measure that the user chose.
  std::function<bool()> is_cheaper;
  /// Replaces the model by the last result. Returns whether its graph is another one.
  std::function<bool()> keep;
};

/// Runs so many passes in rounds until none lowers the cost. A result is kept only if it is cheaper
/// and its weights are within the limit: `max_growth` bytes more than at the start, by default 1 %
/// and at most 1 MB, and 64 bytes more for each removed operator.
void runRounds(const RoundsHost& host, std::size_t passes, const Cost& start, int64_t max_rounds,
               std::optional<std::size_t> max_growth);

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_ROUNDS_H_
