// ================================================================================================
// Bodies
// ================================================================================================

namespace mxnet {
namespace ext {
inline namespace passlib_api {

PASSLIB_COLD_CODE

// ---- errors ------------------------------------------------------------------------------------

namespace detail {

// Messages are put together by one function, from a form as that of printf: the pieces of each,
// added one by one, were a tenth of a library. A name with a NUL byte ends there.

inline std::string formatText(const char* form, va_list values) {
  va_list again;
  va_copy(again, values);
  const int size = vsnprintf(nullptr, 0, form, again);
  va_end(again);
  std::string text(static_cast<std::size_t>(size) + 1, '\0');
  vsnprintf(&text[0], text.size(), form, values);
  text.resize(static_cast<std::size_t>(size));
  return text;
}

PASSLIB_FORM(1) inline std::string printed(const char* form, ...) {
  va_list values;
  va_start(values, form);
  const std::string text = formatText(form, values);
  va_end(values);
  return text;
}

[[noreturn]] PASSLIB_FORM(1) inline void failGraph(const char* form, ...) {
  va_list values;
  va_start(values, form);
  const std::string text = formatText(form, values);
  va_end(values);
  throw GraphStructureError(text);
}

[[noreturn]] PASSLIB_FORM(1) inline void failCall(const char* form, ...) {
  va_list values;
  va_start(values, form);
  const std::string text = formatText(form, values);
  va_end(values);
  throw std::runtime_error(text);
}

__attribute__((noinline)) inline void PlainBytes::grow(std::size_t count) {
  const std::size_t room = (std::max)(2 * room_ + 64, size_ + count);
  void* const moved = realloc(data_, room);
  if (moved == nullptr) throw std::bad_alloc();
  data_ = static_cast<char*>(moved);
  room_ = room;
}

}  // namespace detail

inline MXerrorMsgs* MXerrorMsgs::get() {
  static MXerrorMsgs* const instance = new MXerrorMsgs();
  return instance;
}

inline std::stringstream& MXerrorMsgs::start() {
  messages_.reserve(1);
  messages_.push(new Message());
  return messages_.back()->stream;
}

inline std::stringstream& MXerrorMsgs::add(const char* file, int line) {
  detail::Mutex::Guard lock(mutex_);
  std::stringstream& stream = start();
  stream << file << "[" << line << "]: ";
  return stream;
}

inline void MXerrorMsgs::add(const std::string& text) {
  detail::Mutex::Guard lock(mutex_);
  start() << text;
}

inline int MXerrorMsgs::size() {
  detail::Mutex::Guard lock(mutex_);
  return static_cast<int>(messages_.size());
}

inline const std::string* MXerrorMsgs::get(int idx) {
  detail::Mutex::Guard lock(mutex_);
  if (idx < 0 || static_cast<std::size_t>(idx) >= messages_.size()) return nullptr;
  Message& message = *messages_[static_cast<std::size_t>(idx)];
  const std::string text = message.buffer.text();
  if (message.text == nullptr || *message.text != text) message.text = new std::string(text);
  return message.text;
}
