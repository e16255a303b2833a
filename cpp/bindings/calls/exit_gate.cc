#include "bindings/calls/exit_gate.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "bindings/bindings.h"
#include "fork_mutex.h"
#include "library/calls/interrupt.h"
#include "library/calls/state.h"
#include "platform/system.h"

namespace passlib {

namespace py = pybind11;

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPause = std::chrono::milliseconds(2);

/// How deep this thread is in holds.
thread_local int depth = 0;

[[noreturn]] void sleepForever() {
  for (;;) pause();
}

/// Counts the threads in C++ code of the bindings.
class Gate {
 public:
  /// With the GIL. `wanting`: see below.
  void enter(bool wanting) {
    if (depth++ > 0) return;
    {
      const std::lock_guard<ForkMutex<std::mutex>> lock(mutex_);
      renew();
      if (!closed_ || isCloser()) {
        ++inside_;
        if (wanting) ++wanting_;
        return;
      }
    }
    PyEval_SaveThread();
    sleepForever();
  }

  void exit(bool wanting) {
    if (--depth > 0) return;
    const std::lock_guard<ForkMutex<std::mutex>> lock(mutex_);
    // Threads that were inside at a fork are not counted in the child.
    if (inside_ > 0) --inside_;
    if (wanting && wanting_ > 0) --wanting_;
  }

  /// Before this thread releases the GIL, or after.
  void release() {
    const std::lock_guard<ForkMutex<std::mutex>> lock(mutex_);
    if (wanting_ > 0) --wanting_;
  }

  /// Before it takes the GIL again: does not return if the interpreter may be gone.
  void regain() {
    {
      const std::lock_guard<ForkMutex<std::mutex>> lock(mutex_);
      renew();
      if (!abandoned_ || isCloser()) {
        ++wanting_;
        return;
      }
    }
    sleepForever();
  }

  /// Without the GIL. Returns how many threads are inside for longer than that.
  int close(double seconds) {
    {
      const std::lock_guard<ForkMutex<std::mutex>> lock(mutex_);
      renew();
      closed_ = true;
      closer_ = std::this_thread::get_id();
    }
    const auto bound =
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    await(&Gate::inside_, bound);
    {
      const std::lock_guard<ForkMutex<std::mutex>> lock(mutex_);
      if (inside_ == 0) return 0;
      abandoned_ = true;
    }
    await(&Gate::wanting_, bound);
    const std::lock_guard<ForkMutex<std::mutex>> lock(mutex_);
    return inside_;
  }

 private:
  bool isCloser() const { return std::this_thread::get_id() == closer_; }

  void renew() {
    if (process_ == forkCount()) return;
    process_ = forkCount();
    inside_ = wanting_ = 0;
    closed_ = abandoned_ = false;
  }

  void await(int Gate::* count, Clock::duration bound) {
    for (const auto end = Clock::now() + bound; Clock::now() < end;) {
      {
        const std::lock_guard<ForkMutex<std::mutex>> lock(mutex_);
        if (this->*count == 0) return;
      }
      std::this_thread::sleep_for(kPause);
    }
  }

  ForkMutex<std::mutex> mutex_;
  unsigned process_ = forkCount();
  int inside_ = 0;
  int wanting_ = 0;  ///< of inside_: those that have the GIL or wait for it
  bool closed_ = false;
  bool abandoned_ = false;
  std::thread::id closer_;
};

Gate& gate() {
  static Gate* instance = new Gate();  // never destroyed, since threads may outlive the rest
  return *instance;
}

/// At the end of the process: says which native call ended it by exit(), and that this is no
/// success. An interpreter that ends by itself is gone by then.
void reportExit(int status) {
  if (Py_IsInitialized() == 0) return;
  std::string calls;
  for (const std::string& call : runningCalls()) calls += (calls.empty() ? "" : " or ") + call;
  if (calls.empty()) return;
  const bool is_known = status != platform::kUnknownStatus;
  const std::string code = is_known ? std::to_string(status) : "";
  const std::string text = "\npasslib: " + calls + " called exit(" + code +
                           "), which ends this process; a library returns MX_FAIL instead\n";
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) {
    // stderr is closed: there is nobody to tell.
  }
  _exit(status == 0 || !is_known ? EXIT_FAILURE : status);
}

/// Before the destructors of libraries whose files were overwritten: their code in memory has
/// changed.
void skipDestructors(int status) {
  if (status == platform::kUnknownStatus) return;
  std::fflush(nullptr);
  _exit(status);
}

int closeGate(double seconds) {
  const int left = gate().close(seconds);
  // Handlers run in the reverse order of their registration.
  if (CallState::anyOverwritten()) platform::atExit(&skipDestructors);
  return left;
}

}  // namespace

GateHold::GateHold(Gil gil) : gil_(gil) { gate().enter(gil_ == Gil::kOurs); }

GateHold::~GateHold() { gate().exit(gil_ == Gil::kOurs); }

/// A GateHold for a with statement.
class ForeignCall {
 public:
  void enter() { hold_.emplace(GateHold::Gil::kForeign); }
  void exit(const py::args&) { hold_.reset(); }

 private:
  std::optional<GateHold> hold_;
};

ReleasedGil::ReleasedGil() {
  gate().release();
  released_.emplace();
}

ReleasedGil::~ReleasedGil() {
  gate().regain();
  released_.reset();
}

BorrowedGil::BorrowedGil() {
  gate().regain();
  acquired_.emplace();
}

BorrowedGil::~BorrowedGil() {
  acquired_.reset();
  gate().release();
}

void withGil(void (*body)(void* object), void* object) {
  if (PyGILState_Check() != 0) return body(object);
  const BorrowedGil borrowed;
  body(object);
}

void bindExitGate(py::module_* m) {
  platform::atExit(&reportExit);
  m->def("report_as_command", &reportAsCommand, py::arg("prog"));
  m->def("close_gate", &closeGate, py::arg("seconds"), py::call_guard<py::gil_scoped_release>());
  py::class_<ForeignCall>(*m, "ForeignCall")
      .def(py::init<>())
      .def("__enter__", &ForeignCall::enter)
      .def("__exit__", &ForeignCall::exit);
}

}  // namespace passlib
