// passlib._core.Graph: text in and out, and what concerns the graph as a whole.

#include "graph/graph.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

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

/// Returns a text as str, which is copied.
py::str pythonText(const char* text, std::size_t size, bool is_ascii) {
  if (!is_ascii) {
    PyObject* decoded = PyUnicode_DecodeUTF8(text, static_cast<py::ssize_t>(size), nullptr);
    if (decoded == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::str>(decoded);
  }
  PyObject* copied = PyUnicode_New(static_cast<py::ssize_t>(size), 127);
  if (copied == nullptr) throw py::error_already_set();
  memcpy(PyUnicode_DATA(copied), text, size);
  return py::reinterpret_steal<py::str>(copied);
}

/// Memory for a small text, which is copied to a str of its size, and kept for the next text: the
/// pages of so large a piece would be the system's again whenever it is freed, and fresh ones take
/// as long as writing the text.
class SmallText : public mxnet::ext::host::TextBuffer::Memory {
 public:
  static constexpr std::size_t kRoom = std::size_t{1} << 20;

  SmallText() : text_(kept().exchange(nullptr)), room_(text_ == nullptr ? 0 : kRoom) {}
  SmallText(const SmallText&) = delete;
  SmallText& operator=(const SmallText&) = delete;
  ~SmallText() { free(room_ == kRoom ? kept().exchange(text_) : text_); }

  char* grow(std::size_t /*used*/, std::size_t* size) override {
    const std::size_t room = std::max({*size, room_, kRoom});
    if (room != room_) {
      char* const grown = static_cast<char*>(realloc(text_, room));
      if (grown == nullptr) throw std::bad_alloc();
      text_ = grown;
      room_ = room;
    }
    *size = room_;
    return text_;
  }
  py::str finish(std::size_t size, bool is_ascii) { return pythonText(text_, size, is_ascii); }

 private:
  static std::atomic<char*>& kept() {
    static std::atomic<char*> memory{nullptr};
    return memory;
  }

  char* text_;
  std::size_t room_;
};

/// The memory of a str of ASCII characters, which is written in place and cut to its length. Such a
/// text is neither in memory twice nor copied. Made and finished with the GIL.
class PythonText : public mxnet::ext::host::TextBuffer::Memory {
 public:
  /// `expected`: about the length of the text. What is not written takes no memory.
  explicit PythonText(std::size_t expected)
      : size_(expected), string_(PyUnicode_New(static_cast<py::ssize_t>(expected), 127)) {
    if (string_ == nullptr) throw py::error_already_set();
  }
  PythonText(const PythonText&) = delete;
  PythonText& operator=(const PythonText&) = delete;
  ~PythonText() { Py_XDECREF(string_); }

  char* grow(std::size_t /*used*/, std::size_t* size) override {
    if (*size <= size_) {
      *size = size_;
      return data();
    }
    const BorrowedGil borrowed;
    resize(*size);
    return data();
  }

  /// Returns the first `size` bytes that were written.
  py::str finish(std::size_t size, bool is_ascii) {
    if (!is_ascii) return pythonText(data(), size, false);
    resize(size);
    return py::reinterpret_steal<py::str>(std::exchange(string_, nullptr));
  }

 private:
  char* data() { return static_cast<char*>(PyUnicode_DATA(string_)); }
  void resize(std::size_t size) {
    if (PyUnicode_Resize(&string_, static_cast<py::ssize_t>(size)) != 0) {
      throw py::error_already_set();
    }
    size_ = size;
  }

  std::size_t size_;
  PyObject* string_;
};

template <typename Text>
py::str printTo(Text* text, std::size_t expected, bool pretty, const AttributeTexts& texts,
                const std::string& omitted, std::shared_ptr<const Graph> graph) {
  mxnet::ext::host::TextBuffer buffer(text);
  {
    const ReleasedGil released;
    buffer.room(expected);
    const char* const key = omitted.empty() ? nullptr : omitted.c_str();
    mxnet::ext::host::GraphWriter(pretty, &buffer, key).write(*graph, parseAttributes(texts));
    graph.reset();
  }
  return text->finish(buffer.size(), buffer.isAscii());
}

py::str printGraph(GraphSource& source, bool pretty, const AttributeTexts& texts,
                   const std::string& omitted) {
  constexpr std::size_t kBytesPerNode = 384;
  std::shared_ptr<const Graph> graph;
  {
    const ReleasedGil released;  // the graph may have to be read again
    graph = source.get();
  }
  const std::size_t expected = kBytesPerNode * (graph->size() + 1);
  if (expected <= SmallText::kRoom) {
    SmallText text;
    return printTo(&text, expected, pretty, texts, omitted, std::move(graph));
  }
  PythonText text(expected);
  return printTo(&text, expected, pretty, texts, omitted, std::move(graph));
}

py::list listOf(const NameList& names) {
  py::list list(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) list[i] = decode(names[i]);
  return list;
}

py::tuple variableNames(GraphSource& source, const AuxiliaryInputs& auxiliary,
                        const NodeStates& own) {
  const Variables variables = listVariables(*source.get(), auxiliary, own);
  return py::make_tuple(listOf(variables.args), listOf(variables.aux));
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
      .def("print", &printGraph, py::arg("pretty"), py::arg("attributes"), py::arg("omitted") = "")
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
