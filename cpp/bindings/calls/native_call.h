// Calls of libraries from Python.
#ifndef PASSLIB_BINDINGS_CALLS_NATIVE_CALL_H_
#define PASSLIB_BINDINGS_CALLS_NATIVE_CALL_H_

#include <functional>
#include <string>

#include "bindings/common.h"
#include "library/calls/interrupt.h"
#include "library/library.h"

namespace passlib {

/// One call of a library.
struct NativeCall {
  const Library& library;
  std::string what;  ///< "pass 'x' of library 'y'"
  /// Throws the error of this kind of call; the argument follows `what`.
  std::function<void(const std::string& problem)> fail;
};

/// Runs `body` without the GIL. Text that the library prints meanwhile goes to `write`, a Python
/// callable that takes a str, when no lock is held any more; its exception is rethrown where `body`
/// threw none. KeyboardInterrupt takes precedence over both.
void runNative(const NativeCall& call, const py::object& write, const std::function<void()>& body);

/// The same without a library that is loaded already. `body` gets what to do on SIGINT.
void runCaptured(const py::object& write, const std::function<void(OnInterrupt)>& body);

/// Whether the interpreter is on its way to its end.
bool isEnding();

/// Hands text that was captured to `write`; while the interpreter ends, to the process's own
/// stdout.
void writeText(const std::string& text, const py::object& write);

/// Warns of what the library reported although it succeeded, and of what it did to the arithmetic
/// of the process, once for each library.
void warnAfterCall(const Library& library);

}  // namespace passlib

#endif  // PASSLIB_BINDINGS_CALLS_NATIVE_CALL_H_
