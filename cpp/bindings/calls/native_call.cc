#include "bindings/calls/native_call.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <memory>
#include <new>

#include "bindings/calls/exit_gate.h"
#include "library/calls/call.h"
#include "library/calls/output.h"
#include "platform/system.h"

namespace passlib {
namespace {

/// Returns the effect of SIGINT on this call. Signals reach Python in the main thread only.
OnInterrupt onInterrupt() {
  if (!platform::isMainThread()) return OnInterrupt::kNothing;
  const py::module_ signals = py::module_::import("signal");
  const py::object handler = signals.attr("getsignal")(SIGINT);
  if (handler.is(signals.attr("default_int_handler"))) return OnInterrupt::kSpeak;
  return PyCallable_Check(handler.ptr()) != 0 ? OnInterrupt::kTell : OnInterrupt::kNothing;
}

void writeToFile(int file, const std::string& text) {
  for (std::size_t written = 0; written < text.size();) {
    const ssize_t size = ::write(file, text.data() + written, text.size() - written);
    if (size < 0 && errno != EINTR) return;
    if (size > 0) written += static_cast<std::size_t>(size);
  }
}

/// Hands text to `write` at the end of a scope, even when an exception passes through.
class Delivery {
 public:
  Delivery(const py::object& write, std::unique_ptr<py::error_already_set>* failure)
      : write_(write), failure_(*failure) {}
  ~Delivery() {
    // Else KeyboardInterrupt is raised where the text is written, which is then lost.
    if (PyErr_CheckSignals() != 0) failure_ = std::make_unique<py::error_already_set>();
    try {
      writeText(text, write_);
    } catch (py::error_already_set& error) {
      if (failure_ == nullptr) failure_ = std::make_unique<py::error_already_set>(error);
    }
  }
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;

  std::string text;

 private:
  const py::object& write_;
  std::unique_ptr<py::error_already_set>& failure_;
};

}  // namespace

bool isEnding() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

void writeText(const std::string& text, const py::object& write) {
  if (isEnding()) {  // sys.stdout may be gone
    writeToFile(STDOUT_FILENO, text);
    return;
  }
  // In pieces, so that a large text is not in memory three times.
  constexpr std::size_t kPiece = 1 << 20;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = std::min(begin + kPiece, text.size());
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    write(decode(text.substr(begin, end - begin)));
    begin = end;
  }
}

namespace {

/// Warns. Paths in the text may not be UTF-8.
void warn(const std::string& text) {
  if (PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "%U", decode(text).ptr()) != 0) {
    throw py::error_already_set();
  }
}

}  // namespace

void warnAfterCall(const Library& library) {
  for (const std::string& message : library.state().takeMessages()) {
    const std::string text = "library " + mxnet::ext::host::quoted(library.path()) +
                             " succeeded, but reported by MX_ERROR_MSG: " + message;
    warn(text);
  }
  if (!library.state().takeArithmeticNote()) return;
  const std::string text =
      "library " + mxnet::ext::host::quoted(library.path()) +
      " changed how this process computes with floating-point numbers (rounding, or numbers near 0 "
      "taken as 0); passlib has restored it. Link the library without -Ofast and -ffast-math";
  warn(text);
}

void runCaptured(const py::object& write, const std::function<void(OnInterrupt)>& body) {
  const OnInterrupt how = onInterrupt();
  std::unique_ptr<py::error_already_set> failure;
  try {
    Delivery delivery(write, &failure);
    const ReleasedGil released;
    const CapturedOutput output(&delivery.text);
    body(how);
  } catch (const std::exception&) {
    if (failure != nullptr && failure->matches(PyExc_KeyboardInterrupt)) {
      throw py::error_already_set(*failure);
    }
    throw;
  }
  if (failure != nullptr) throw py::error_already_set(*failure);
}

void runNative(const NativeCall& call, const py::object& write, const std::function<void()>& body) {
  try {
    runCaptured(write, [&](OnInterrupt how) {
      const Visit visit(call.library, how, call.what);
      body();
    });
  } catch (const std::bad_alloc&) {
    call.fail("needs more memory than the system has");
  }
  warnAfterCall(call.library);
}

}  // namespace passlib
