// passlib._core.RuleBook: rules in text for Python.
#include <pybind11/stl.h>

#include "bindings/bindings.h"
#include "bindings/common.h"
#include "rules/attributes.h"
#include "rules/engine.h"
#include "rules/terms.h"

namespace passlib {
namespace {

namespace py = pybind11;
using rules::Book;
using rules::Expression;
using rules::Rule;
using rules::Statement;

py::object expressionOf(const Expression& expression) {
  py::list inputs;
  for (const Expression& input : expression.inputs) inputs.append(expressionOf(input));
  py::dict attributes;
  for (const rules::Setting& setting : expression.settings) {
    if (!setting.texts.empty()) attributes[py::str(setting.key)] = decode(setting.texts[0]);
  }
  py::list numbers;
  for (const rules::Term& term : expression.terms) {
    const bool is_list = term.kind == rules::Term::kList;
    py::list items;
    for (const rules::Term& item : is_list ? term.children : std::vector<rules::Term>{term}) {
      if (item.kind == rules::Term::kInteger) {
        items.append(item.integer);
      } else if (item.kind == rules::Term::kReal) {
        items.append(item.real);
      } else {
        items.append(decode(item.text));
      }
    }
    numbers.append(is_list ? py::object(items) : py::object(items[0]));
  }
  static const char* const kKinds[] = {"operation", "name", "number", "constant"};
  py::dict made;
  made["kind"] = kKinds[expression.kind];
  made["name"] = expression.names.empty() ? py::str("") : decode(expression.names[0]);
  made["type"] = decode(expression.constraint);
  made["number"] = expression.number;
  made["output"] = expression.output;
  made["inputs"] = inputs;
  made["attributes"] = attributes;
  made["terms"] = numbers;
  return std::move(made);
}

py::list statementsOf(const std::vector<Statement>& statements) {
  py::list made;
  for (const Statement& statement : statements)
    made.append(py::make_tuple(statement.targets, expressionOf(statement.expression)));
  return made;
}

py::dict ruleOf(const Rule& rule) {
  py::list sets;
  for (const rules::OperatorSet& set : rule.sets)
    sets.append(py::make_tuple(decode(set.domain), set.first, set.last));
  py::list examples;
  for (const rules::Example& example : rule.examples) {
    examples.append(py::make_tuple(decode(example.text), statementsOf(example.before),
                                   statementsOf(example.after)));
  }
  py::dict made;
  made["name"] = decode(rule.name);
  made["sentence"] = decode(rule.sentence);
  made["group"] = decode(rule.group);
  made["text"] = decode(rule.text);
  made["line"] = rule.line;
  made["sets"] = sets;
  made["exact"] = rule.exact;
  made["enables"] = rule.enables;
  made["drops_check"] = rule.drops_check;
  made["lowers"] = rule.lowers;
  made["breaks"] = rule.breaks;
  made["target"] = decode(rule.target);
  made["examples"] = examples;
  return made;
}

/// A term as (kind, text or number, children).
py::tuple termOf(const rules::Term& term) {
  static const char* const kKinds[] = {"integer", "real", "text",   "name", "attribute",
                                       "starred", "list", "choice", "call", "operator"};
  py::list children;
  for (const rules::Term& child : term.children) children.append(termOf(child));
  py::object value = decode(term.text);
  if (term.kind == rules::Term::kInteger) value = py::int_(term.integer);
  if (term.kind == rules::Term::kReal) value = py::float_(term.real);
  return py::make_tuple(kKinds[term.kind], value, children);
}

/// All that an expression of a side says.
py::dict treeOf(const Expression& expression) {
  static const char* const kKinds[] = {"operation", "name", "number", "constant"};
  static const char* const kRelations[] = {"equal", "different", "absent", "bind", "spread"};
  py::list settings;
  for (const rules::Setting& each : expression.settings) {
    settings.append(py::make_tuple(decode(each.key), kRelations[each.relation], each.optional,
                                   each.texts, decode(each.name), termOf(each.term)));
  }
  py::list inputs;
  for (const Expression& input : expression.inputs) inputs.append(treeOf(input));
  py::list alternatives;
  for (const Expression& other : expression.alternatives) alternatives.append(treeOf(other));
  py::list terms;
  for (const rules::Term& term : expression.terms) terms.append(termOf(term));
  py::dict made;
  made["kind"] = kKinds[expression.kind];
  made["names"] = expression.names;
  made["starred"] = expression.starred;
  made["optional"] = expression.optional;
  made["constraint"] = decode(expression.constraint);
  made["output"] = expression.output;
  made["number"] = expression.number;
  made["settings"] = settings;
  made["inputs"] = inputs;
  made["terms"] = terms;
  made["alternatives"] = alternatives;
  return made;
}

/// The sides and conditions of a rule, for those that reason about it.
py::dict sidesOf(const Book& book, std::size_t number) {
  if (number >= book.rules().size()) throw py::index_error("no such rule");
  const Rule& rule = book.rules()[number];
  const auto statements = [](const std::vector<Statement>& all) {
    py::list made;
    for (const Statement& each : all)
      made.append(py::make_tuple(each.targets, each.optional, treeOf(each.expression)));
    return made;
  };
  py::list where;
  for (const rules::Definition& each : rule.where)
    where.append(py::make_tuple(decode(each.name), termOf(each.term)));
  py::dict made;
  made["left"] = statements(rule.left);
  made["where"] = where;
  made["right"] = statements(rule.right);
  return made;
}

std::unique_ptr<Book> makeBook(const std::string& text, const std::string& file) {
  try {
    return std::make_unique<Book>(text, file);
  } catch (const rules::RuleError& error) {
    using namespace py::literals;  // NOLINT: this function only
    const py::object type = py::module_::import("passlib.errors").attr("PatternError");
    const py::object made =
        type(decode(error.what()), "line"_a = error.line, "column"_a = error.column);
    PyErr_SetObject(type.ptr(), made.ptr());
    throw py::error_already_set();
  }
}

}  // namespace

void bindRules(py::module_* m) {
  py::class_<Book>(*m, "RuleBook")
      .def(py::init(&makeBook), py::arg("text"), py::arg("file"))
      .def_property_readonly("rules",
                             [](const Book& book) {
                               py::list made;
                               for (const Rule& rule : book.rules()) made.append(ruleOf(rule));
                               return made;
                             })
      .def("sides", &sidesOf, py::arg("number"));
  m->def(
      "moved_input",
      [](const std::string& op, const std::string& attribute, int64_t opset) -> py::object {
        const rules::Moved* moved = rules::movedInput(op, attribute, opset);
        if (moved == nullptr) return py::none();
        static const char* const kForms[] = {"integers", "integer", "scalar", "float", "floats"};
        return py::make_tuple(moved->input, kForms[moved->form]);
      },
      py::arg("op"), py::arg("attribute"), py::arg("opset"));
  m->def("rule_functions", []() {
    py::list made;
    for (const rules::Function& each : rules::functions())
      made.append(py::make_tuple(each.name, each.arguments, each.meaning));
    return made;
  });
}

}  // namespace passlib
