// Facts about all values of an ONNX graph: inferred once, updated as the graph changes.
#ifndef PASSLIB_FACTS_FACTS_H_
#define PASSLIB_FACTS_FACTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "facts/fact.h"
#include "graph/graph.h"

namespace passlib::facts {

/// Versions of operator sets by domain; that of ONNX's own domain is "".
using Opsets = std::map<std::string, int64_t, std::less<>>;

/// A function of a model.
struct Function {
  const Graph* graph = nullptr;  ///< its inputs in order have the identifiers `input.0` and so on
  Opsets opsets;
  std::map<std::string, std::string, std::less<>> defaults;  ///< texts of attributes
  std::function<Fact(const Node& variable)> describe;
};

/// The calls of a function.
struct Calls {
  std::unordered_set<const Node*> nodes;  ///< in graphs, and in the bodies of other functions
  std::vector<Fact> inputs;               ///< what holds at all of them: types and shapes
};

/// The sources of facts besides the graph. All members but `opsets` may be empty.
struct Settings {
  Opsets opsets;
  /// Returns what is known of a variable, in nested graphs too.
  std::function<Fact(const Node& variable)> describe;
  /// Returns what the file states of an output of an operator. Used where inference leaves type,
  /// rank or dimensions open.
  std::function<const Fact*(const Node& node, std::size_t output)> stated;
  /// Whether what the file states holds where inference contradicts it, as in ONNX's inference.
  bool believe_stated = false;
  /// Returns a function of the model; null if there is none.
  std::function<const Function*(std::string_view domain, std::string_view name)> function;
  /// Returns the facts of the results of an operator that has no rule and is no function. Errors
  /// that it throws end the inference.
  std::function<std::vector<Fact>(const Node& node, const std::vector<const Fact*>& inputs)>
      of_others;
  /// Whether open sizes in float32 may be so large that it rounds them.
  bool large_sizes = true;
  /// Whether the model may fail because an open size is 0. Else sizes by which it would fail then
  /// are at least 1.
  bool empty_errors = true;
};

/// Facts of the values of a graph and of the graphs nested in it. Refers to the graph.
class Facts {
 public:
  Facts(const Graph* graph, Settings settings);
  ~Facts();
  Facts(Facts&&) noexcept;
  Facts(const Facts&) = delete;

  /// Infers all facts. Throws GraphStructureError for a cycle.
  void infer();
  /// Returns what is known of a value; an empty fact for nodes that were added since and not
  /// updated. Values of a nested graph have the facts of its last inference.
  const Fact& of(const Node* node, std::size_t output) const;
  const Fact& of(const NodeEntry& value) const {
    return of(value.node, static_cast<std::size_t>(value.entry));
  }
  /// Infers the facts of new or changed nodes of the main graph, and of what depends on them.
  void update(const std::vector<const Node*>& changed);
  /// Sets the fact of a value, for operators that have no rule, and updates what depends on it. It
  /// holds until its node changes.
  void set(const Node* node, std::size_t output, Fact fact);
  /// Returns the nodes whose results have more than kMostAxes axes, and those of which it is not
  /// known: false for these. What happens in a function stands at the call.
  const std::map<const Node*, bool>& wide() const;
  /// Returns the calls of functions by domain and name; none if there are too many to follow.
  const std::map<std::pair<std::string, std::string>, Calls>& calls() const;

 private:
  class Inference;
  std::unique_ptr<Inference> inference_;
};

/// Whether two facts say the same.
bool same(const Fact& left, const Fact& right);

}  // namespace passlib::facts

#endif  // PASSLIB_FACTS_FACTS_H_
