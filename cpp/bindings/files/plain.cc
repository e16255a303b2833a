// Readers of JSON dialects, for files that need no closer look.

#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/calls/exit_gate.h"
#include "bindings/common.h"
#include "dialects/ark/file.h"
#include "dialects/dlprim/file.h"
#include "dialects/nnvm/file.h"
#include "dialects/plain_json.h"
#include "graph/source.h"

namespace passlib {

namespace {

/// The first characters of the values of an object's members, by key; None for what has to be
/// looked at, such as a text that is no object.
py::object jsonMembers(const py::bytes& text, bool comments, std::size_t max_depth) {
  std::vector<std::pair<std::string, char>> members;
  const std::string_view view = text;
  const auto read = [&] {
    PlainJson json(view, max_depth, comments);
    json.object([&](std::string_view key) {
      members.emplace_back(key, json.peek());
      json.valueText();
    });
    json.finish();
    return true;
  };
  if (!unlessRefused(read)) return py::none();
  py::dict kinds;
  for (const auto& [key, kind] : members) kinds[decode(key)] = std::string(1, kind);
  if (kinds.size() != members.size()) return py::none();  // a key occurs twice
  return std::move(kinds);
}

/// The graph of a file, and its other top-level members: key, start and end of the value.
py::object readNnvm(const py::bytes& text, std::string place, TextMap<std::string> per_entry,
                    std::size_t max_depth) {
  const nnvm::Conventions conventions{std::move(place), std::move(per_entry), max_depth};
  const std::string_view view = text;
  std::optional<nnvm::File> file;
  {
    const ReleasedGil released;
    file = nnvm::readPlain(view, conventions);
  }
  if (!file) return py::none();
  py::list members;
  for (const nnvm::Member& member : file->members) {
    members.append(py::make_tuple(decode(member.key), member.start, member.end));
  }
  return py::make_tuple(std::make_shared<GraphSource>(std::move(file->graph)), members);
}

dlprim::Attributes attributesOf(const py::handle& texts) {
  dlprim::Attributes attributes;
  for (const auto& [key, value] : texts.cast<py::dict>()) {
    attributes.emplace_back(key.cast<std::string>(), value.cast<std::string>());
  }
  return attributes;
}

/// The graph of a network; names of inputs and outputs; types of parameters, by name. `schema` has
/// the functions of dlprim::Schema, and the list `specs`, of types by number.
py::object readDlprim(const py::bytes& text, const py::object& schema,
                      const std::tuple<std::string, std::string, std::string>& notes,
                      std::size_t max_depth) {
  dlprim::Schema calls;
  calls.input = [&](std::string_view dtype,
                    const std::vector<int64_t>& shape) -> std::optional<dlprim::Input> {
    const BorrowedGil held;
    const py::object found = schema.attr("input")(dtype, py::tuple(py::cast(shape)));
    if (found.is_none()) return std::nullopt;
    const py::tuple parts = found;
    return dlprim::Input{parts[0].cast<dlprim::Spec>(), attributesOf(parts[1])};
  };
  calls.infer = [&](std::string_view op, std::string_view options,
                    const std::vector<dlprim::Spec>& inputs) -> std::optional<dlprim::Inferred> {
    const BorrowedGil held;
    const py::object found =
        schema.attr("infer")(op, py::bytes(options.data(), options.size()), inputs);
    if (found.is_none()) return std::nullopt;
    const py::tuple parts = found;
    return dlprim::Inferred{attributesOf(parts[0]), parts[1].cast<dlprim::Spec>(),
                            parts[2].cast<std::vector<dlprim::Spec>>(), parts[3].cast<bool>()};
  };
  const dlprim::Notes names{std::get<0>(notes), std::get<1>(notes), std::get<2>(notes)};
  const std::string_view view = text;
  std::optional<dlprim::File> file;
  {
    const ReleasedGil released;
    file = dlprim::readPlain(view, calls, names, max_depth);
  }
  if (!file) return py::none();
  py::dict parameters;
  const py::list specs = schema.attr("specs");
  for (const auto& [node, spec] : file->parameters) {
    parameters[decode(file->graph->nodes[node]->name)] = specs[static_cast<std::size_t>(spec)];
  }
  return py::make_tuple(std::make_shared<GraphSource>(std::move(file->graph)), file->inputs,
                        file->outputs, parameters);
}

/// The graph of a model file, its rank and the number of ranks. `schema` has members like
/// ark::Schema.
py::object readArk(const py::bytes& text, const py::dict& schema, std::size_t max_depth) {
  const auto name = [&](const char* key) { return schema[key].cast<std::string>(); };
  const ark::Schema known{schema["pure"].cast<TextSet>(),
                          schema["sinks"].cast<TextSet>(),
                          schema["item_sizes"].cast<TextMap<int>>(),
                          name("view"),
                          name("place"),
                          name("outputs"),
                          name("reads"),
                          name("effects"),
                          name("is_virtual"),
                          name("parts")};
  const std::string_view view = text;
  std::optional<ark::File> file;
  {
    const ReleasedGil released;
    file = ark::readPlain(view, known, max_depth);
  }
  if (!file) return py::none();
  return py::make_tuple(std::make_shared<GraphSource>(std::move(file->graph)), file->rank,
                        file->world_size);
}

}  // namespace

void bindPlainFiles(py::module_* m) {
  m->def("read_nnvm", &readNnvm, py::arg("text"), py::arg("place"), py::arg("per_entry"),
         py::arg("max_depth"));
  m->def("json_members", &jsonMembers, py::arg("text"), py::arg("comments"), py::arg("max_depth"));
  m->def("read_ark", &readArk, py::arg("text"), py::arg("schema"), py::arg("max_depth"));
  m->def("read_dlprim", &readDlprim, py::arg("text"), py::arg("schema"), py::arg("notes"),
         py::arg("max_depth"));
}

}  // namespace passlib
