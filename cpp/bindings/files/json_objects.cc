// JSON texts as Python objects that know their place in the text.

#include <pybind11/pybind11.h>
#include <structmember.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "header.h"

namespace py = pybind11;

namespace passlib {
namespace {

using mxnet::ext::JsonReader;

/// The byte offsets of a container, stored in the Python object after the fields of its base class.
struct Span {
  Py_ssize_t start;
  Py_ssize_t end;
};

PyTypeObject* object_type = nullptr;  // made with the module and never destroyed
PyTypeObject* array_type = nullptr;

/// Makes a subclass of a built-in container that remembers a Span.
PyTypeObject* makeType(const char* name, const char* doc, PyTypeObject* base) {
  const Py_ssize_t at = base->tp_basicsize;
  std::array<PyMemberDef, 3> members{{
      {"start", T_PYSSIZET, at + static_cast<Py_ssize_t>(offsetof(Span, start)), READONLY,
       "Byte offset of the opening brace."},
      {"end", T_PYSSIZET, at + static_cast<Py_ssize_t>(offsetof(Span, end)), READONLY,
       "Byte offset after the closing brace."},
      {nullptr, 0, 0, 0, nullptr},
  }};
  std::array<PyType_Slot, 3> slots{{
      {Py_tp_doc, const_cast<char*>(doc)},
      {Py_tp_members, members.data()},
      {0, nullptr},
  }};
  PyType_Spec spec{name, static_cast<int>(at + static_cast<Py_ssize_t>(sizeof(Span))), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots.data()};
  const auto bases = py::make_tuple(py::handle(reinterpret_cast<PyObject*>(base)));
  PyObject* type = PyType_FromSpecWithBases(&spec, bases.ptr());
  if (type == nullptr) throw py::error_already_set();
  return reinterpret_cast<PyTypeObject*>(type);
}

Span& spanOf(PyObject* container, bool is_object) {
  const PyTypeObject& base = is_object ? PyDict_Type : PyList_Type;
  return *reinterpret_cast<Span*>(reinterpret_cast<char*>(container) + base.tp_basicsize);
}

py::object own(PyObject* made) {
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

/// Cache of values by their text: keys, type names and common numbers recur often.
class TextCache {
 public:
  /// `size`: of the whole text. A short one pays for few entries.
  explicit TextCache(std::size_t size)
      : entries_(std::min(std::max(size / 16, std::size_t{16}), std::size_t{1024})) {}
  /// The value for this text, or an empty object.
  py::object find(std::string_view text) {
    const Entry& entry = entries_[slot(text)];
    return entry.value && entry.text == text ? entry.value : py::object();
  }
  void keep(std::string_view text, const py::object& value) {
    entries_[slot(text)] = Entry{std::string(text), value};
  }
  /// Longer texts seldom recur.
  static constexpr std::size_t kLongest = 40;

 private:
  struct Entry {
    std::string text;
    py::object value;
  };
  std::size_t slot(std::string_view text) const {
    return std::hash<std::string_view>()(text) % entries_.size();
  }
  std::vector<Entry> entries_;
};

class Builder {
 public:
  /// `size`: of the text that the reader reads.
  Builder(JsonReader* reader, std::size_t size, py::object number)
      : reader_(*reader), number_(std::move(number)), strings_(size), numbers_(size) {}

  py::object build() {
    py::object root = value();
    while (!open_.empty()) {
      Frame& frame = open_.back();
      if (!advance(&frame)) {
        close(frame);
        continue;
      }
      // A value goes into its container at once, which keeps it alive.
      const bool is_object = frame.is_object;
      PyObject* container = frame.container;
      const py::object key = std::move(frame.key);
      const std::size_t at = reader_.offset();
      const py::object item = value();  // may move frames
      if (is_object) {
        put(container, key, item, at);
      } else if (PyList_Append(container, item.ptr()) != 0) {
        throw py::error_already_set();
      }
    }
    return root;
  }

 private:
  struct Frame {
    PyObject* container;  // kept alive by its own container, or by `root`
    bool is_object;
    bool first;
    py::object key;
  };

  /// Reads a scalar, or opens a container.
  py::object value() {
    switch (reader_.peek()) {
      case '{':
      case '[':
        return open();
      case '"':
        return string(reader_.readString());
      case 't':
      case 'f':
        return py::bool_(reader_.readBool());
      case 'n':
        reader_.readNull();
        return py::none();
      default:
        return number(reader_.readNumber());
    }
  }

  py::object open() {
    const bool is_object = reader_.peek() == '{';
    PyTypeObject* type = is_object ? object_type : array_type;
    py::object container = own(type->tp_new(type, nothing_.ptr(), nullptr));
    spanOf(container.ptr(), is_object).start = static_cast<Py_ssize_t>(reader_.offset());
    if (is_object) {
      reader_.beginObject();
    } else {
      reader_.beginList();
    }
    open_.push_back(Frame{container.ptr(), is_object, true, py::object()});
    return container;
  }

  void close(const Frame& frame) {
    spanOf(frame.container, frame.is_object).end = static_cast<Py_ssize_t>(reader_.offset());
    // A tree has no cycles: spare the garbage collector the walk.
    PyObject_GC_UnTrack(frame.container);
    open_.pop_back();
  }

  /// Moves to the next member of a container; false at its end.
  bool advance(Frame* frame) {
    if (!frame->is_object) return reader_.nextItem(&frame->first);
    JsonReader::Slice key;
    if (!reader_.nextKey(&frame->first, &key)) return false;
    frame->key = string(key);
    return true;
  }

  void put(PyObject* object, const py::object& key, const py::object& item, std::size_t at) {
    const Py_ssize_t size = PyDict_GET_SIZE(object);
    if (PyDict_SetItem(object, key.ptr(), item.ptr()) != 0) throw py::error_already_set();
    if (PyDict_GET_SIZE(object) != size) return;
    reader_.fail(mxnet::ext::kJsonDuplicateKey,
                 "the key '" + key.cast<std::string>() + "' occurs twice in one object", at);
  }

  py::object string(const JsonReader::Slice& slice) {
    const std::string_view text(slice.data, slice.size);
    if (text.size() <= TextCache::kLongest) {
      if (py::object known = strings_.find(text)) return known;
    }
    py::object made =
        own(PyUnicode_DecodeUTF8(text.data(), static_cast<py::ssize_t>(text.size()), nullptr));
    if (text.size() <= TextCache::kLongest) strings_.keep(text, made);
    return made;
  }

  /// An int where Python spells the number the same way, else the result of `number_`.
  py::object number(const JsonReader::Slice& slice) {
    int64_t integer = 0;
    const std::string_view text(slice.data, slice.size);
    if (mxnet::ext::host::parseInteger(text.data(), text.size(), &integer) && text != "-0") {
      return own(PyLong_FromLongLong(integer));
    }
    if (text.size() > TextCache::kLongest) return number_(std::string(text));
    py::object made = numbers_.find(text);
    if (!made) {
      made = number_(std::string(text));
      numbers_.keep(text, made);
    }
    return made;
  }

  JsonReader& reader_;
  py::object number_;
  py::tuple nothing_;
  TextCache strings_;
  TextCache numbers_;
  std::vector<Frame> open_;
};

/// Reads a JSON text. `number` makes a value from the text of a number that Python would spell
/// differently. Throws JsonError.
py::object parseJson(const py::bytes& text, const py::object& number, bool comments,
                     std::size_t max_depth) {
  char* data = nullptr;
  py::ssize_t size = 0;
  if (PyBytes_AsStringAndSize(text.ptr(), &data, &size) != 0) throw py::error_already_set();
  mxnet::ext::JsonOptions reading;
  reading.allow_comments = comments;
  reading.max_depth = max_depth;
  JsonReader reader(data, static_cast<std::size_t>(size), reading);
  py::object value = Builder(&reader, static_cast<std::size_t>(size), number).build();
  reader.finish();
  return value;
}

}  // namespace

void bindJson(py::module_* m) {
  object_type =
      makeType("passlib._core.JsonObject",
               "An object of a JSON text. Do not change it: make a new dict.", &PyDict_Type);
  array_type =
      makeType("passlib._core.JsonArray",
               "An array of a JSON text. Do not change it: make a new list.", &PyList_Type);
  m->attr("JsonObject") = py::handle(reinterpret_cast<PyObject*>(object_type));
  m->attr("JsonArray") = py::handle(reinterpret_cast<PyObject*>(array_type));
  m->def("parse_json", &parseJson, py::arg("text"), py::arg("number"), py::arg("comments"),
         py::arg("max_depth"));
}

}  // namespace passlib
