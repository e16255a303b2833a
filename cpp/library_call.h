// One call into a library: what it threw, what it said, and how a failure reads.
#ifndef PASSLIB_LIBRARY_CALL_H_
#define PASSLIB_LIBRARY_CALL_H_

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "library.h"

namespace passlib {

struct CallOutcome {
  bool returned_success = false;
  std::string thrown;  ///< what was thrown, as a clause; "" if nothing
  std::vector<std::string> messages;

  bool succeeded() const { return returned_success && thrown.empty(); }
};

/// Runs `body`, a call into `library` that returns MX_SUCCESS or not. The caller holds its mutex.
template <typename Body>
CallOutcome callLibrary(const Library& library, Body body) {
  CallOutcome outcome;
  const int before = library.messageCount();
  try {
    outcome.returned_success = body() == mxnet::ext::MX_SUCCESS;
  } catch (const std::exception& error) {
    outcome.thrown = std::string("it threw: ") + error.what();
  } catch (...) {
    outcome.thrown = "it threw something that is not a std::exception";
  }
  outcome.messages = library.messagesFrom(before);
  return outcome;
}

/// The text of an error. `refusal`: what the host found wrong with the call itself, "" if nothing.
inline std::string describeFailure(const std::string& what, const CallOutcome& outcome,
                                   const std::string& refusal = "") {
  // A refusal may itself have been thrown, through the library or into its messages.
  const auto tells = [&refusal](const std::string& other) {
    return !refusal.empty() && other.find(refusal) != std::string::npos;
  };
  std::string text = what;
  if (!refusal.empty() && std::none_of(outcome.messages.begin(), outcome.messages.end(), tells)) {
    text += ": " + refusal;
  }
  if (!outcome.thrown.empty() && !tells(outcome.thrown)) text += ": " + outcome.thrown;
  for (const std::string& message : outcome.messages) text += "\n  " + message;
  if (outcome.messages.empty() && outcome.thrown.empty() && refusal.empty()) {
    text += " without saying why: it returned MX_FAIL and wrote nothing to MX_ERROR_MSG";
  }
  return text;
}

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_CALL_H_
