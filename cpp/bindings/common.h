// Shared by the bindings: text, top-level attributes and captured output.
#ifndef PASSLIB_BINDINGS_COMMON_H_
#define PASSLIB_BINDINGS_COMMON_H_

#include <pybind11/pybind11.h>

#include <map>
#include <memory>
#include <string>

#include "lib_api.h"
#include "library/output.h"

namespace passlib {

namespace py = pybind11;

/// Decodes UTF-8. Invalid bytes become replacement characters.
py::str decode(const std::string& text);

/// Top-level attributes of a graph: JSON text by key.
using AttributeTexts = std::map<std::string, std::string>;
using AttributeValues = std::map<std::string, mxnet::ext::JsonVal>;

AttributeValues parseAttributes(const AttributeTexts& texts);
AttributeTexts printAttributes(const AttributeValues& attributes);

/// Runs `body` without the GIL. Text that libraries print meanwhile goes to `write`, a Python
/// callable that takes a str; an exception of `write` is rethrown after `body`.
template <typename Body>
void runCaptured(const py::object& write, Body body) {
  std::unique_ptr<py::error_already_set> write_error;
  {
    const py::gil_scoped_release released;
    const CapturedOutput output([&](const std::string& text) {
      const py::gil_scoped_acquire acquired;
      try {
        if (write_error == nullptr) write(decode(text));
      } catch (py::error_already_set& error) {
        write_error = std::make_unique<py::error_already_set>(error);
      }
    });
    body();
  }
  if (write_error != nullptr) throw py::error_already_set(*write_error);
}

}  // namespace passlib

#endif  // PASSLIB_BINDINGS_COMMON_H_
