// The rules by operator.
#ifndef PASSLIB_FACTS_TABLE_H_
#define PASSLIB_FACTS_TABLE_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "facts/node_view.h"

namespace passlib::facts {

/// Fills in what is known of a node's outputs.
using Rule = void (*)(NodeView& node);

struct Entry {
  std::string_view op;
  Rule rule;
};

/// Returns the operators of ONNX's own domain that have no rule, nested graphs included, each with
/// the name of its first node. ONNX has no such operators.
std::vector<std::pair<std::string, std::string>> unknownOperators(const Graph& graph);

/// Returns the rule of an operator; null if it has none. The domain `ai.onnx` is the empty one.
Rule findRule(std::string_view domain, std::string_view op);

/// The rules of each family of operators.
namespace families {
std::vector<Entry> elementwise();
std::vector<Entry> movement();
std::vector<Entry> shapes();
std::vector<Entry> reductions();
std::vector<Entry> windows();
std::vector<Entry> contractions();
std::vector<Entry> recurrent();
std::vector<Entry> normalization();
std::vector<Entry> control();
std::vector<Entry> sequence();
std::vector<Entry> quantization();
std::vector<Entry> generators();
std::vector<Entry> text();
std::vector<Entry> ml();
std::vector<Entry> training();
std::vector<Entry> microsoft();
}  // namespace families

}  // namespace passlib::facts

#endif  // PASSLIB_FACTS_TABLE_H_
