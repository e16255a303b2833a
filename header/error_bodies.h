// ================================================================================================
// Bodies
// ================================================================================================

// ---- errors ------------------------------------------------------------------------------------

namespace detail {

// Messages in the form of printf: text that is put together where it is needed would be a tenth of
// a library. A name with a NUL byte ends there.

inline std::string printText(const char* form, va_list values) {
  va_list again;
  va_copy(again, values);
  const int size = vsnprintf(nullptr, 0, form, again);
  va_end(again);
  std::string text(static_cast<std::size_t>(size) + 1, '\0');
  vsnprintf(&text[0], text.size(), form, values);
  text.resize(static_cast<std::size_t>(size));
  return text;
}

__attribute__((__format__(PASSLIB_PRINTF, 1, 2))) inline std::string printed(const char* form,
                                                                             ...) {
  va_list values;
  va_start(values, form);
  const std::string text = printText(form, values);
  va_end(values);
  return text;
}

[[noreturn]] __attribute__((__cold__, __format__(PASSLIB_PRINTF, 1, 2))) inline void failGraph(
    const char* form, ...) {
  va_list values;
  va_start(values, form);
  const std::string text = printText(form, values);
  va_end(values);
  throw GraphStructureError(text);
}

[[noreturn]] __attribute__((__cold__, __format__(PASSLIB_PRINTF, 1, 2))) inline void failCall(
    const char* form, ...) {
  va_list values;
  va_start(values, form);
  const std::string text = printText(form, values);
  va_end(values);
  throw std::runtime_error(text);
}

}  // namespace detail

/// A message, whose text is collected while other threads may read it.
struct MXerrorMsgs::Message {
  class Buffer : public std::streambuf {
   public:
    std::string text() const {
      const std::lock_guard<std::mutex> lock(mutex_);
      return text_;
    }

   protected:
    int_type overflow(int_type character) override {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (character != traits_type::eof()) text_ += traits_type::to_char_type(character);
      return traits_type::not_eof(character);
    }
    std::streamsize xsputn(const char* text, std::streamsize size) override {
      const std::lock_guard<std::mutex> lock(mutex_);
      text_.append(text, static_cast<std::size_t>(size));
      return size;
    }

   private:
    mutable std::mutex mutex_;
    std::string text_;
  };
  Message() : text(nullptr) {
    static_cast<std::ios&>(stream).rdbuf(&buffer);
    // A C++ library that is linked in statically may not find its facets by the identities that it
    // shares with the process's, and would print no number.
    if (!std::has_facet<std::num_put<char> >(stream.getloc())) {
      std::locale own(stream.getloc(), new std::num_put<char>());
      own = std::locale(own, new std::numpunct<char>());
      stream.imbue(std::locale(own, new std::ctype<char>()));
    }
  }
  Buffer buffer;
  std::stringstream stream;
  const std::string* text;  // as last returned
};

struct MXerrorMsgs::Store {
  std::mutex mutex;
  detail::PlainList<Message*> messages;
};

inline MXerrorMsgs::MXerrorMsgs() : store_(new Store()) {}

inline MXerrorMsgs* MXerrorMsgs::get() {
  static MXerrorMsgs* const instance = new MXerrorMsgs();
  return instance;
}

inline std::stringstream& MXerrorMsgs::start() {
  store_->messages.push_back(new Message());
  return store_->messages.back()->stream;
}

inline std::stringstream& MXerrorMsgs::add(const char* file, int line) {
  const std::lock_guard<std::mutex> lock(store_->mutex);
  std::stringstream& stream = start();
  stream << file << "[" << line << "]: ";
  return stream;
}

inline void MXerrorMsgs::add(const std::string& text) {
  const std::lock_guard<std::mutex> lock(store_->mutex);
  start() << text;
}

inline int MXerrorMsgs::size() {
  const std::lock_guard<std::mutex> lock(store_->mutex);
  return static_cast<int>(store_->messages.size());
}

inline const std::string* MXerrorMsgs::get(int idx) {
  const std::lock_guard<std::mutex> lock(store_->mutex);
  if (idx < 0 || static_cast<std::size_t>(idx) >= store_->messages.size()) return nullptr;
  Message& message = *store_->messages[static_cast<std::size_t>(idx)];
  const std::string text = message.buffer.text();
  if (message.text == nullptr || *message.text != text) message.text = new std::string(text);
  return message.text;
}
