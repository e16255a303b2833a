#include "json_objects.h"

#include <string>
#include <vector>

#include "lib_api.h"

namespace py = pybind11;

namespace passlib {
namespace {

using mxnet::ext::JsonReader;

py::str makeString(const JsonReader::Slice& text) {
  PyObject* string = PyUnicode_DecodeUTF8(text.data, static_cast<py::ssize_t>(text.size), nullptr);
  if (string == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(string);
}

/// An int where Python spells it the same way, else what `number` makes of the text.
py::object makeNumber(const std::string& text, const py::object& number) {
  int64_t value = 0;
  if (mxnet::ext::detail::parseInteger(text.data(), text.size(), &value) && text != "-0") {
    return py::int_(value);
  }
  return number(text);
}

class Builder {
 public:
  Builder(JsonReader* reader, const py::object& types)
      : reader_(*reader),
        object_(types.attr("JsonObject")),
        array_(types.attr("JsonArray")),
        number_(types.attr("JsonNumber")) {}

  py::object build() {
    py::object value = begin();
    for (;;) {
      // A container that was just begun goes on the stack; anything else goes into the innermost.
      if (!started_) {
        if (open_.empty()) return value;
        put(value);
      }
      while (!advance()) {
        py::object done = open_.back().container;
        done.attr("end") = reader_.offset();
        open_.pop_back();
        if (open_.empty()) return done;
        put(done);
      }
      value = begin();
    }
  }

 private:
  struct Frame {
    py::object container;
    bool is_object;
    bool first;
    py::object key;
  };

  /// Begins a value: all of a scalar, the opening of a container.
  py::object begin() {
    started_ = false;
    const char c = reader_.peek();
    if (c == '{' || c == '[') {
      const py::object container = c == '{' ? object_() : array_();
      container.attr("start") = reader_.offset();
      if (c == '{') {
        reader_.beginObject();
      } else {
        reader_.beginList();
      }
      open_.push_back(Frame{container, c == '{', true, py::none()});
      started_ = true;
      return container;
    }
    if (c == '"') return makeString(reader_.readString());
    if (c == 't' || c == 'f') return py::bool_(reader_.readBool());
    if (c == 'n') {
      reader_.readNull();
      return py::none();
    }
    return makeNumber(reader_.readNumber().str(), number_);
  }

  /// Moves to the next member of the innermost container; false at its end.
  bool advance() {
    Frame& frame = open_.back();
    if (!frame.is_object) return reader_.nextItem(&frame.first);
    JsonReader::Slice key;
    if (!reader_.nextKey(&frame.first, &key)) return false;
    const std::size_t at = reader_.offset();
    frame.key = makeString(key);
    if (frame.container.contains(frame.key)) {
      reader_.fail(mxnet::ext::kJsonDuplicateKey,
                   "the key '" + frame.key.cast<std::string>() + "' stands twice in one object",
                   at);
    }
    return true;
  }

  void put(const py::object& value) {
    Frame& frame = open_.back();
    if (frame.is_object) {
      frame.container[frame.key] = value;
    } else {
      frame.container.attr("append")(value);
    }
  }

  JsonReader& reader_;
  py::object object_;
  py::object array_;
  py::object number_;
  std::vector<Frame> open_;
  bool started_ = false;
};

}  // namespace

py::object parseJsonObjects(const py::bytes& text, const py::object& types, bool comments,
                            std::size_t max_depth) {
  char* data = nullptr;
  py::ssize_t size = 0;
  if (PyBytes_AsStringAndSize(text.ptr(), &data, &size) != 0) throw py::error_already_set();
  mxnet::ext::JsonOptions reading;
  reading.allow_comments = comments;
  reading.max_depth = max_depth;
  JsonReader reader(data, static_cast<std::size_t>(size), reading);
  py::object value = Builder(&reader, types).build();
  reader.finish();
  return value;
}

}  // namespace passlib
