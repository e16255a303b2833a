// One call into a library: its exception, its messages, and the text of a failure.
#ifndef PASSLIB_LIBRARY_CALL_H_
#define PASSLIB_LIBRARY_CALL_H_

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "library/library.h"

namespace passlib {

struct CallOutcome {
  bool returned_success = false;
  std::string thrown;  ///< the exception as a clause; "" if there was none
  std::vector<std::string> messages;

  bool succeeded() const { return returned_success && thrown.empty(); }
};

/// Runs `body`, a call into `library` that returns an MXReturnValue. The caller holds its mutex.
template <typename Body>
CallOutcome callLibrary(const Library& library, Body body) {
  CallOutcome outcome;
  const int before = library.messageCount();
  try {
    outcome.returned_success = body() == mxnet::ext::MX_SUCCESS;
  } catch (const std::exception& error) {
    outcome.thrown = "it threw: " + mxnet::ext::detail::textOf(error);
  }
  PASSLIB_RETHROW_END_OF_THREAD
  catch (...) {
    outcome.thrown = "it threw something that is not a std::exception";
  }
  outcome.messages = library.messagesFrom(before);
  return outcome;
}

/// Returns the text of an error. `refusal`: why the host itself failed the call, or "".
inline std::string describeFailure(const std::string& what, const CallOutcome& outcome,
                                   const std::string& refusal = "") {
  // The refusal may also have been thrown through the library or copied into its messages.
  const auto repeats = [&refusal](const std::string& other) {
    return !refusal.empty() && other.find(refusal) != std::string::npos;
  };
  std::string text = what;
  if (!refusal.empty() && std::none_of(outcome.messages.begin(), outcome.messages.end(), repeats)) {
    text += ": " + refusal;
  }
  if (!outcome.thrown.empty() && !repeats(outcome.thrown)) text += ": " + outcome.thrown;
  for (const std::string& message : outcome.messages) text += "\n  " + message;
  if (outcome.messages.empty() && outcome.thrown.empty() && refusal.empty()) {
    text += " without saying why: it returned MX_FAIL and wrote nothing to MX_ERROR_MSG";
  }
  return text;
}

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_CALL_H_
