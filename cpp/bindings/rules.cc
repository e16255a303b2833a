// passlib._core.RuleBook: rules in text for Python.
#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "bindings/bindings.h"
#include "bindings/common.h"
#include "bindings/editing/handles.h"
#include "bindings/editing/knowledge.h"
#include "bindings/editing/matched.h"
#include "rules/attributes.h"
#include "rules/engine.h"
#include "rules/terms.h"

namespace passlib {
namespace {

namespace py = pybind11;
using mxnet::ext::MXDType;
using rules::Applied;
using rules::Book;
using rules::Expression;
using rules::Known;
using rules::Rule;
using rules::Statement;

/// Allocates arrays of new parameters: `allocate(shape, code)` returns one.
class Owner {
 public:
  Owner(const GraphHandle& graph, MatchedArrays* arrays, const py::object& file,
        const Assumptions& assumptions, py::function allocate)
      : graph_(graph),
        arrays_(*arrays),
        facts_(graph.graph, originalsOf(file), assumptions),
        allocate_(std::move(allocate)) {}

  rules::Hooks hooks() {
    rules::Hooks made;
    made.add_node = [this](Graph* where, const std::string& name, const std::string& op) {
      return graph_.owner->addNode(where, op, name, {}, 0);
    };
    made.remove_node = [this](Graph* where, Node* node) {
      graph_.owner->noteRemoved(node);
      if (where == graph_.graph && node->op == "null") gone_.append(decode(node->name));
    };
    made.allocate = [this](Node* node, const std::vector<int64_t>& shape, MXDType type) {
      const auto array = allocate_(py::cast(shape), static_cast<int>(type)).cast<py::array>();
      node->tensor = arrays_.keep(array, static_cast<int>(type));
      made_.emplace_back(node, array);
    };
    made.known = [this](const NodeEntry& entry) { return facts_.of(entry); };
    made.added = [this](Graph* where, Node* node) { facts_.add(where, node); };
    return made;
  }

  /// The new parameters that are left, by their names, which may be those of what they replace.
  py::dict parameters() const {
    py::dict left;
    for (const auto& [node, array] : made_) {
      if (!graph_.owner->isRemoved(node)) left[decode(node->name)] = array;
    }
    return left;
  }

  /// The names of the variables that were removed, some of which may be new ones.
  const py::list& gone() const { return gone_; }

 private:
  GraphHandle graph_;
  MatchedArrays& arrays_;
  GraphKnowledge facts_;
  py::function allocate_;
  std::vector<std::pair<Node*, py::array>> made_;
  py::list gone_;
};

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

py::tuple applyRules(const Book& book, const GraphHandle& graph, const AttributeTexts& attributes,
                     const py::list& params, const std::vector<std::size_t>& chosen,
                     const py::object& file, const Assumptions& assumptions,
                     const std::unordered_set<std::string>& kept, const py::function& allocate) {
  const MatchedGraph lending(graph, attributes, params, false);
  const NotedEdit edit{graph.owner.get()};
  Owner owner(graph, lending.arrays(), file, assumptions, allocate);
  rules::Hooks hooks = owner.hooks();
  hooks.kept = kept;
  const Applied applied = book.apply(graph.graph, chosen, hooks);
  py::list folds;
  for (Node* node : applied.folds) folds.append(NodeHandle{graph.owner, graph.graph, node});
  py::list left;
  for (Node* node : applied.left) left.append(NodeHandle{graph.owner, graph.graph, node});
  return py::make_tuple(applied.counts, owner.parameters(), owner.gone(), folds, left);
}

std::string whyNot(const Book& book, const NodeHandle& node, const GraphHandle& graph,
                   const AttributeTexts& attributes, const py::list& params, std::size_t rule,
                   const py::object& file) {
  const MatchedGraph lending(graph, attributes, params, false);
  Owner owner(graph, lending.arrays(), file, {}, py::function());
  return book.why(graph.graph, node.live(), rule, owner.hooks());
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
      .def("sides", &sidesOf, py::arg("number"))
      .def("apply", &applyRules, py::arg("graph"), py::arg("attributes"), py::arg("params"),
           py::arg("chosen"), py::arg("file"), py::arg("assumptions"), py::arg("kept"),
           py::arg("allocate"))
      .def("why", &whyNot, py::arg("node"), py::arg("graph"), py::arg("attributes"),
           py::arg("params"), py::arg("rule"), py::arg("file"));
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
