// Rules at work: matched together, applied where their conditions are known to be true.
#ifndef PASSLIB_RULES_ENGINE_H_
#define PASSLIB_RULES_ENGINE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "graph/graph.h"
#include "rules/known.h"
#include "rules/reading.h"

namespace passlib::rules {

/// The functions of a graph's owner that the engine calls.
struct Hooks {
  /// Adds a node of a name and an operator; "null" is a variable, an input of the graph too.
  std::function<Node*(Graph*, const std::string&, const std::string&)> add_node;
  std::function<void(Graph*, Node*)> remove_node;
  /// Sets the tensor of a new variable to memory for a parameter.
  std::function<void(Node*, const std::vector<int64_t>&, mxnet::ext::MXDType)> allocate;
  std::function<Known(const NodeEntry&)> known;
  /// Tells of a new operator with its inputs and attributes: `known` is asked about it next.
  std::function<void(Graph*, Node*)> added;
  /// Names of operators that no rule may replace; may be null.
  const std::unordered_set<std::string>* kept = nullptr;
};

/// The changes that rules made to a model.
struct Applied {
  std::vector<std::size_t> counts;  ///< replacements of each rule
  /// New operators on constants whose results the owner computes, if they are still there.
  std::vector<Node*> folds;
  std::vector<Node*> left;  ///< operators of the main graph that nothing needs any more
};

/// The operator sets that a model imports, by domain; that of ONNX's own operators is "".
std::map<std::string, int64_t> operatorSetsOf(const Graph& graph);

/// Rules that were read and checked. Threads may share one.
class Book {
 public:
  /// Throws RuleError.
  Book(std::string text, const std::string& file);
  ~Book();
  const std::vector<Rule>& rules() const { return rules_; }

  /// Applies rules, by their numbers, to a graph and its nested graphs until none applies. Throws
  /// std::runtime_error that names the rules if they go in a circle, or if a rule contradicts what
  /// is known of a result.
  Applied apply(Graph* graph, const std::vector<std::size_t>& chosen, const Hooks& hooks) const;
  /// Says why a rule does not apply at a node: the first condition that is not met, or is not known
  /// and which fact is missing. Empty if it applies.
  std::string why(Graph* graph, Node* node, std::size_t rule, const Hooks& hooks) const;

 private:
  class Compiled;

  std::string text_;
  std::string file_;
  std::vector<Rule> rules_;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace passlib::rules

#endif  // PASSLIB_RULES_ENGINE_H_
