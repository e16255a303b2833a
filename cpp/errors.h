// The exceptions of the host, as C++ sees them; bindings.cc turns them into passlib.errors.
#ifndef PASSLIB_ERRORS_H_
#define PASSLIB_ERRORS_H_

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace passlib {

/// A library could not be loaded, or may not be called any more.
struct LoadError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A graph is not sound; the text names the nodes.
struct GraphError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A file does not follow its format; `offset` is the place, or kNoOffset.
struct FormatError : std::runtime_error {
  static constexpr std::size_t kNoOffset = static_cast<std::size_t>(-1);
  explicit FormatError(const std::string& what, std::size_t place = kNoOffset)
      : std::runtime_error(what), offset(place) {}
  std::size_t offset;
};

/// Something is well-formed, but not supported, or the ABI cannot express it; the text names it.
struct UnsupportedError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A function of a library failed. `messages`: what the library said during the call.
struct LibraryError : std::runtime_error {
  explicit LibraryError(const std::string& what, std::vector<std::string> said = {})
      : std::runtime_error(what), messages(std::move(said)) {}
  std::vector<std::string> messages;
};

/// A pass failed.
struct PassError : LibraryError {
  using LibraryError::LibraryError;
};

/// A pass succeeded by its own account, but gave back something that is no sound graph.
struct PassResultError : PassError {
  using PassError::PassError;
};

/// An operator of a library failed, or did what operators must not do.
struct OperatorError : LibraryError {
  OperatorError(const std::string& what, std::vector<std::string> said, std::string operator_name,
                std::string library_path, std::string node_name)
      : LibraryError(what, std::move(said)),
        op(std::move(operator_name)),
        library(std::move(library_path)),
        node(std::move(node_name)) {}
  std::string op;
  std::string library;
  std::string node;
};

}  // namespace passlib

#endif  // PASSLIB_ERRORS_H_
