#include "facts/table.h"

#include "graph/text_table.h"

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

}  // namespace passlib::facts
