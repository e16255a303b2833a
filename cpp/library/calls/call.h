// Calls into a library: its exception, its messages, and the text of a failure.
#ifndef PASSLIB_LIBRARY_CALLS_CALL_H_
#define PASSLIB_LIBRARY_CALLS_CALL_H_

#include <sys/types.h>
#include <unistd.h>

#include <exception>
#include <string>
#include <vector>

#include "library/calls/floating_point.h"
#include "library/calls/interrupt.h"
#include "library/calls/state.h"
#include "library/library.h"

namespace passlib {

/// A pass, partitioning or computation by a library: one or more calls of its C functions. No lock
/// is held between the calls.
class Visit {
 public:
  /// `what`: "pass 'x' of library 'y'". Throws LoadError if the library may not be called any more.
  Visit(const Library& library, OnInterrupt how, const std::string& what)
      : state_(usable(library)), watch_(how, state_.interruptFlag(), what) {}

 private:
  static CallState& usable(const Library& library) {
    library.state().requireUsable();
    return library.state();
  }

  CallState& state_;
  InterruptWatch watch_;
};

/// Ends a child that a library forked when it returns from the call: it would run the caller's
/// program a second time, with its files.
class Forked {
 public:
  ~Forked() {
    if (::getpid() != process_) endChild();
  }

 private:
  [[noreturn]] static void endChild();
  const pid_t process_ = ::getpid();
};

struct CallOutcome {
  bool returned_success = false;
  std::string thrown;  ///< the exception as a clause; "" if there was none
  std::vector<std::string> messages;

  bool succeeded() const { return returned_success && thrown.empty(); }
};

/// Runs `body`, a call of a C function of `library` that returns an MXReturnValue, under the
/// library's lock and with its floating-point environment kept apart. `body` runs no Python.
template <typename Body>
CallOutcome callLibrary(const Library& library, Body body) {
  CallOutcome outcome;
  const CallState::Lock lock(&library.state());
  const int before = library.messageCount();
  const FloatingPoint arithmetic;
  try {
    const Forked forked;
    outcome.returned_success = body() == mxnet::ext::MX_SUCCESS;
  } catch (const std::exception& error) {
    outcome.thrown = "it threw: " + mxnet::ext::host::textOf(error);
  }
  PASSLIB_RETHROW_END_OF_THREAD
  catch (...) {
    outcome.thrown = "it threw something that is not a std::exception";
  }
  if (arithmetic.restore()) library.state().noteArithmetic();
  outcome.messages = library.messagesFrom(before);
  if (outcome.succeeded()) library.state().noteMessages(outcome.messages);
  return outcome;
}

/// Returns the text of an error. `refusal`: why the host itself failed the call, or "". Where the
/// library gave only a text of the standard library, the kind of mistake that it means is added.
std::string describeFailure(const std::string& what, const CallOutcome& outcome,
                            const std::string& refusal = "");

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_CALLS_CALL_H_
