// passlib for C++17: objects of passlib.h that free themselves, and errors as exceptions.
#ifndef PASSLIB_HPP_
#define PASSLIB_HPP_

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "passlib.h"

namespace passlib::api {

/// A function of passlib failed; `kind` and `offset` are those of passlib_error.
struct Error : std::runtime_error {
  Error(const passlib_error* error)
      : std::runtime_error(passlib_error_message(error)),
        kind(passlib_error_get_kind(error)),
        offset(passlib_error_offset(error)) {}
  passlib_error_kind kind;
  int64_t offset;
};

/// Calls a function with its arguments and an error; throws Error if it fails.
template <typename Function, typename... Arguments>
auto call(Function function, Arguments... arguments) {
  passlib_error* error = nullptr;
  auto made = function(arguments..., &error);
  if (error == nullptr) return made;
  const std::unique_ptr<passlib_error, void (*)(passlib_error*)> owned(error, passlib_error_free);
  throw Error(error);
}

struct Free {
  void operator()(passlib_session* session) const { passlib_session_free(session); }
  void operator()(passlib_model* model) const { passlib_model_free(model); }
  void operator()(passlib_edit* edit) const { passlib_edit_free(edit); }
  void operator()(char* text) const { passlib_free(text); }
};
using Text = std::unique_ptr<char, Free>;

/// The passes that are known.
class Session {
 public:
  explicit Session(const passlib_session_options* options = nullptr)
      : handle_(call(passlib_session_new, options)) {}
  void load(const std::string& path, bool replaces = false) {
    call(passlib_session_load, handle_.get(), path.c_str(), replaces ? 1 : 0);
  }
  passlib_session* get() const { return handle_.get(); }

 private:
  std::unique_ptr<passlib_session, Free> handle_;
};

/// A graph with its weights.
class Model {
 public:
  explicit Model(const std::string& path) : handle_(call(passlib_model_load, path.c_str())) {}
  void run(const Session& session, const std::string& pipeline,
           const passlib_run_options* options = nullptr) {
    call(passlib_model_run, handle_.get(), session.get(), pipeline.c_str(), options);
  }
  void save(const std::string& path) const { call(passlib_model_save, get(), path.c_str()); }
  const passlib_model* get() const { return handle_.get(); }
  passlib_model* get() { return handle_.get(); }

 private:
  std::unique_ptr<passlib_model, Free> handle_;
};

}  // namespace passlib::api

#endif  // PASSLIB_HPP_
