// Readers of JSON dialects, for files that need no closer look.

#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "bindings/bindings.h"
#include "bindings/calls/exit_gate.h"
#include "bindings/common.h"
#include "dialects/nnvm/file.h"
#include "graph/source.h"

namespace passlib {

namespace {

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

}  // namespace

void bindPlainFiles(py::module_* m) {
  m->def("read_nnvm", &readNnvm, py::arg("text"), py::arg("place"), py::arg("per_entry"),
         py::arg("max_depth"));
}

}  // namespace passlib
