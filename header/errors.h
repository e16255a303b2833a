// ================================================================================================
// Errors
// ================================================================================================

enum MXReturnValue {
  MX_FAIL = 0,
  MX_SUCCESS = 1,
};

/// Messages of a library to its host: one store per library, safe to use from several threads.
class MXerrorMsgs {
 public:
  /// Lives until the process ends, since threads may use it while others exit.
  static MXerrorMsgs* get();
  /// Starts a message with "<file>[<line>]: "; the caller appends the rest to the stream.
  std::stringstream& add(const char* file, int line);
  /// Adds a whole message.
  void add(const std::string& text);
  int size();
  /// Returns message number idx, valid and unchanged until the process ends; null if out of range.
  const std::string* get(int idx);

 private:
  /// Collects what is written to a stream, while other threads may read it.
  class Buffer : public std::streambuf {
   public:
    std::string text() const {
      detail::Mutex::Guard lock(mutex_);
      return text_;
    }

   protected:
    int_type overflow(int_type character) override {
      detail::Mutex::Guard lock(mutex_);
      if (character != traits_type::eof()) text_ += traits_type::to_char_type(character);
      return traits_type::not_eof(character);
    }
    std::streamsize xsputn(const char* text, std::streamsize size) override {
      detail::Mutex::Guard lock(mutex_);
      text_.append(text, static_cast<std::size_t>(size));
      return size;
    }

   private:
    mutable detail::Mutex mutex_;
    std::string text_;
  };
  struct Message {
    Message() : text(nullptr) { static_cast<std::ios&>(stream).rdbuf(&buffer); }
    Buffer buffer;
    std::stringstream stream;
    const std::string* text;  // as last returned
  };
  MXerrorMsgs() {}
  std::stringstream& start();
  detail::Mutex mutex_;
  // What this points to is never deleted: streams may be in use, and texts be read by the host.
  detail::PlainList<Message*> messages_;
};

/// Reports the reason of a failure: MX_ERROR_MSG << "no weight named " << name; return MX_FAIL;
#define MX_ERROR_MSG mxnet::ext::MXerrorMsgs::get()->add(__FILE__, __LINE__)

enum JsonErrorCode {
  kJsonSyntax = 1,     ///< not JSON
  kJsonTruncated,      ///< the text ends too early
  kJsonTrailing,       ///< text after the value
  kJsonUtf8,           ///< invalid UTF-8, or half of a surrogate pair
  kJsonDepth,          ///< nested more deeply than allowed
  kJsonDuplicateKey,   ///< an object has the same key twice
  kJsonType,           ///< a value of the wrong type
  kJsonMissingKey,     ///< an object lacks a required key
  kJsonRange,          ///< a node, output or number out of range
  kJsonCycle,          ///< nodes that depend on each other
  kJsonDuplicateName,  ///< two variables of one name
};

/// A text is not JSON, or not a graph. what() includes the place in the text.
class JsonError : public std::runtime_error {
 public:
  JsonError(JsonErrorCode error_code, const std::string& message, std::size_t error_offset,
            std::size_t error_line, std::size_t error_column)
      : std::runtime_error(message),
        code(error_code),
        offset(error_offset),
        line(error_line),
        column(error_column) {}
  JsonErrorCode code;
  std::size_t offset;  ///< in bytes, from 0
  std::size_t line;    ///< from 1
  std::size_t column;  ///< in bytes, from 1
};

/// A graph is inconsistent: an edge to a node outside the graph, or a cycle.
class GraphStructureError : public std::runtime_error {
 public:
  explicit GraphStructureError(const std::string& message) : std::runtime_error(message) {}
};

PASSLIB_END_CODE
