// ---- messages and exceptions at the C functions ------------------------------------------------

namespace detail {

#if defined(__GLIBCXX__)
/// Where a thread that is being ended unwinds through, it must not be stopped.
#define PASSLIB_RETHROW_END_OF_THREAD \
  catch (abi::__forced_unwind&) {     \
    throw;                            \
  }
#else
#define PASSLIB_RETHROW_END_OF_THREAD
#endif

/// The text of an exception, also of one that has none.
inline std::string textOf(const std::exception& error) {
  const char* text = error.what();
  return text == nullptr ? std::string("an exception without text") : std::string(text);
}

template <typename Body>
int runBody(void* body) {
  return (*static_cast<Body*>(body))();
}

/// Runs run(body), the body of an entry point. Any exception becomes a message.
inline int runGuarded(const char* what, int (*run)(void*), void* body) {
  try {
    return run(body);
  } catch (const std::exception& error) {
    MXerrorMsgs::get()->add(printed("%s: %s", what, textOf(error).c_str()));
  }
  PASSLIB_RETHROW_END_OF_THREAD
  catch (...) {
    MXerrorMsgs::get()->add(printed("%s: something was thrown that is not a std::exception", what));
  }
  return MX_FAIL;
}

template <typename Body>
int guarded(const char* what, Body body) {
  return runGuarded(what, &runBody<Body>, &body);
}

/// Why the library cannot be used, a line for each reason: collected while it is loaded.
inline std::string& loadErrors() {
  static std::string& errors = *new std::string();
  return errors;
}

}  // namespace detail
