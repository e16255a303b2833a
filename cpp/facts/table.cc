#include "facts/table.h"

#include "graph/attributes.h"
#include "graph/text_table.h"
#include "header.h"
#include "onnx/original/originals.h"

namespace passlib::facts {
namespace {

using Rules = TextViewMap<Rule>;

Rules collect(std::initializer_list<std::vector<Entry> (*)()> lists) {
  Rules made;
  for (const auto list : lists) {
    for (const Entry& entry : list()) made[entry.op] = entry.rule;
  }
  return made;
}

}  // namespace

Rule findRule(std::string_view domain, std::string_view op) {
  static const Rules own =
      collect({families::elementwise, families::movement, families::shapes, families::reductions,
               families::windows, families::contractions, families::recurrent,
               families::normalization, families::control, families::sequence,
               families::quantization, families::generators, families::text});
  static const Rules learning = collect({families::ml});
  static const Rules training = collect({families::training});
  static const Rules microsoft = collect({families::microsoft});
  static const Rules none;
  const Rules& rules = domain.empty() || domain == "ai.onnx"       ? own
                       : domain == "ai.onnx.ml"                    ? learning
                       : domain == "com.microsoft"                 ? microsoft
                       : domain.substr(0, 15) == "ai.onnx.preview" ? training
                                                                   : none;
  const auto found = rules.find(op);
  return found == rules.end() ? nullptr : found->second;
}

std::vector<std::pair<std::string, std::string>> unknownOperators(const Graph& graph) {
  std::vector<std::pair<std::string, std::string>> found;
  TextSet known;
  // Only read here; the walk takes pointers that could be written to.
  mxnet::ext::host::forEachNode(
      const_cast<Graph*>(&graph), [](Graph*) {},
      [&](Graph*, const Node* node) {
        if (node->op == "null") return;
        const std::string_view domain = attributeOf(*node, onnx::keys::kDomain);
        if (!domain.empty() && domain != "ai.onnx") return;
        if (findRule("", node->op) != nullptr || !known.insert(node->op).second) return;
        found.emplace_back(node->op, node->name);
      });
  return found;
}

}  // namespace passlib::facts
