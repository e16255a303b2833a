// What the files of bindings share: Python's exceptions, text and output.
#ifndef PASSLIB_BINDINGS_COMMON_H_
#define PASSLIB_BINDINGS_COMMON_H_

#include <pybind11/pybind11.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "errors.h"
#include "lib_api.h"
#include "output.h"
#include "tensors.h"

namespace passlib {

namespace py = pybind11;

/// Text of whatever encoding, with a mark for what is not UTF-8.
py::str decode(const std::string& text);

/// Sets a Python exception of passlib.errors, made with keyword arguments.
void setError(const char* name, const std::string& message, const py::dict& details = {});

/// The same for what a library caused, with the messages of the library and further details.
void setLibraryError(const char* name, const LibraryError& error, const py::dict& details = {});

/// Top-level attributes of a graph: JSON text by key.
using AttributeTexts = std::map<std::string, std::string>;
std::map<std::string, mxnet::ext::JsonVal> parseAttributes(const AttributeTexts& texts);

/// Arrays come as (name, array, dtype code); they must be C-contiguous.
ParamBlock makeBlock(const py::list& params);

/// Runs `body` without the GIL. What libraries print meanwhile goes to `write`, a Python callable
/// of a str; what `write` throws is thrown when `body` is done.
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
