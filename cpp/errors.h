// The exceptions of the host, as C++ sees them; bindings.cc turns them into passlib.errors.
#ifndef PASSLIB_ERRORS_H_
#define PASSLIB_ERRORS_H_

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace passlib {

/// A library could not be loaded, or refused to be.
struct LoadError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A graph is not sound; the text names the nodes.
struct GraphError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A pass failed. `messages`: what its library said during the call.
struct PassError : std::runtime_error {
  explicit PassError(const std::string& what, std::vector<std::string> said = {})
      : std::runtime_error(what), messages(std::move(said)) {}
  std::vector<std::string> messages;
};

/// A pass succeeded by its own account, but gave back something that is no sound graph.
struct PassResultError : PassError {
  using PassError::PassError;
};

}  // namespace passlib

#endif  // PASSLIB_ERRORS_H_
