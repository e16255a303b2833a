// The host's exceptions as those of passlib.errors.

#include "errors.h"

#include <cerrno>
#include <system_error>

#include "bindings/bindings.h"
#include "bindings/calls/exit_gate.h"
#include "bindings/common.h"
#include "header.h"

namespace passlib {
namespace {

using mxnet::ext::JsonError;
using namespace py::literals;  // NOLINT: this file only

/// Sets a Python exception of passlib.errors, made with keyword arguments.
void setError(const char* name, const std::string& message, const py::dict& details = {}) {
  const py::object type = py::module_::import("passlib.errors").attr(name);
  const py::object error = type(decode(message), **details);
  PyErr_SetObject(type.ptr(), error.ptr());
}

/// Sets an exception that carries the messages of a library.
void setLibraryError(const char* name, const LibraryError& error, const py::dict& details = {}) {
  py::list messages;
  for (const std::string& text : error.messages) messages.append(decode(text));
  details["messages"] = py::tuple(messages);
  setError(name, error.what(), details);
}

void setJsonError(const JsonError& error) {
  const bool unsound = error.code == mxnet::ext::kJsonRange ||
                       error.code == mxnet::ext::kJsonCycle ||
                       error.code == mxnet::ext::kJsonDuplicateName;
  setError(unsound ? "UnsoundFileError" : "FormatError", error.what(),
           py::dict("offset"_a = error.offset, "line"_a = error.line, "column"_a = error.column));
}

void translate(std::exception_ptr pointer) {
  const GateHold hold;  // exceptions are classes in Python
  try {
    if (pointer) std::rethrow_exception(pointer);
  } catch (const JsonError& error) {
    setJsonError(error);
  } catch (const OperatorError& error) {
    setLibraryError("OperatorError", error,
                    py::dict("operator"_a = decode(error.op), "library"_a = decode(error.library),
                             "node"_a = decode(error.node)));
  } catch (const PassResultError& error) {
    setLibraryError("PassResultError", error);
  } catch (const PassError& error) {
    setLibraryError("PassError", error);
  } catch (const LoadError& error) {
    setError("LoadError", error.what());
  } catch (const FormatError& error) {
    py::dict details;
    if (error.offset != FormatError::kNoOffset) details["offset"] = error.offset;
    setError("FormatError", error.what(), details);
  } catch (const UnsupportedError& error) {
    setError("UnsupportedError", error.what());
  } catch (const GraphError& error) {
    setError("GraphError", error.what());
  } catch (const mxnet::ext::GraphStructureError& error) {
    setError("GraphError", error.what());
  } catch (const std::system_error& error) {
    errno = error.code().value();
    PyErr_SetFromErrno(PyExc_OSError);
  }
}

}  // namespace

void bindErrors() { py::register_exception_translator(&translate); }

}  // namespace passlib
