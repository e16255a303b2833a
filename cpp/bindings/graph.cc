// passlib._core.Graph: text in and out, and what concerns the graph as a whole.

#include "graph/graph.h"

#include <pybind11/stl.h>

#include <cstring>
#include <memory>
#include <string_view>

#include "bindings/bindings.h"
#include "bindings/calls/exit_gate.h"
#include "bindings/common.h"
#include "graph/check.h"
#include "graph/source.h"
#include "graph/variables.h"

namespace passlib {
namespace {

/// Keeps a Python object alive for as long as C++ uses its memory.
std::shared_ptr<void> keepAlive(const py::object& object) {
  return std::shared_ptr<void>(object.inc_ref().ptr(), [](void* pointer) {
    withGil([](void* held) { py::handle(static_cast<PyObject*>(held)).dec_ref(); }, pointer);
  });
}

/// Reads a graph from str or bytes, whose memory the result refers to.
std::shared_ptr<GraphSource> parseGraph(const py::object& source, bool lenient, bool ordered) {
  const char* text = nullptr;
  py::ssize_t size = 0;
  if (PyUnicode_Check(source.ptr())) {
    text = PyUnicode_AsUTF8AndSize(source.ptr(), &size);
    if (text == nullptr) throw py::error_already_set();
  } else {
    char* bytes = nullptr;
    if (PyBytes_AsStringAndSize(source.ptr(), &bytes, &size) != 0) throw py::error_already_set();
    text = bytes;
  }
  const std::shared_ptr<void> owner = keepAlive(source);
  const ReleasedGil released;
  mxnet::ext::JsonOptions reading;
  reading.allow_control_characters = lenient;
  return std::make_shared<GraphSource>(std::string_view(text, static_cast<std::size_t>(size)),
                                       owner, reading, ordered);
}

py::str makeString(mxnet::ext::host::TextBuffer* buffer) {
  if (!buffer->isAscii()) {
    const std::string text = buffer->str();
    PyObject* string =
        PyUnicode_DecodeUTF8(text.data(), static_cast<py::ssize_t>(text.size()), nullptr);
    if (string == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::str>(string);
  }
  PyObject* string = PyUnicode_New(static_cast<py::ssize_t>(buffer->size()), 127);
  if (string == nullptr) throw py::error_already_set();
  buffer->moveTo(static_cast<char*>(PyUnicode_DATA(string)));
  return py::reinterpret_steal<py::str>(string);
}

py::str printGraph(GraphSource& source, bool pretty, const AttributeTexts& texts) {
  mxnet::ext::host::TextBuffer buffer;
  {
    const ReleasedGil released;
    mxnet::ext::host::GraphWriter(pretty, &buffer).write(*source.get(), parseAttributes(texts));
  }
  return makeString(&buffer);
}

py::tuple variableNames(GraphSource& source, const AuxiliaryInputs& auxiliary,
                        const NodeStates& own) {
  Variables variables = listVariables(*source.get(), auxiliary, own);
  return py::make_tuple(variables.args, variables.aux);
}

bool equal(GraphSource& left, GraphSource& right) {
  const std::shared_ptr<const Graph> a = left.get();
  const std::shared_ptr<const Graph> b = right.get();
  const ReleasedGil released;
  return equalGraphs(*a, *b);
}

}  // namespace

void bindGraphs(py::module_* m) {
  GraphClass graphs(*m, "Graph");
  graphs.def_static("parse", &parseGraph, py::arg("text"), py::arg("lenient"), py::arg("ordered"))
      .def("print", &printGraph, py::arg("pretty"), py::arg("attributes"))
      .def("check", [](GraphSource& source) { checkGraph(source.edit()); })
      .def("variables", &variableNames, py::arg("auxiliary"), py::arg("own") = NodeStates())
      .def("equals", &equal, py::arg("other"))
      .def("depth", &GraphSource::depth)
      .def("attributes", [](GraphSource& source) { return printAttributes(source.attributes()); })
      .def(
          "copy",
          [](GraphSource& source) {
            return std::make_shared<GraphSource>(copyGraph(*source.get()));
          },
          py::call_guard<ReleasedGil>())
      .def("__len__", [](GraphSource& source) { return source.get()->size(); });
  bindNodes(m, &graphs);
  bindQueries(m, &graphs);
}

}  // namespace passlib
