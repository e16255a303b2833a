// ================================================================================================
// JSON
// ================================================================================================

#ifndef PASSLIB_JSON_MAX_DEPTH
#define PASSLIB_JSON_MAX_DEPTH 1000000  // depth costs heap, but no stack
#endif

namespace detail {
class JsonTree;
}  // namespace detail

/// Kind of a JSON value. BOOL and NIL are additions to MXNet's header, which cannot read them.
enum JsonType { ERR, STR, NUM, LIST, MAP, BOOL, NIL };

/// One JSON value with its children.
///
/// Numbers: `num` is the number as an int, truncated towards zero and clamped to the range of int.
/// If that loses anything, `str` has the original text, which dump() writes unless `num` was set to
/// another value.
struct JsonVal {
  JsonVal() : type(ERR), num(-1) {}
  explicit JsonVal(JsonType kind) : type(kind), num(-1) {}
  explicit JsonVal(std::string text) : type(STR), num(-1), str(std::move(text)) {}
  explicit JsonVal(const char* text) : type(STR), num(-1), str(text) {}
  explicit JsonVal(int number) : type(NUM), num(number) {}
  JsonVal(JsonType kind, int number, std::string text)
      : type(kind), num(number), str(std::move(text)) {}
  JsonVal(const JsonVal& other);
  JsonVal(JsonVal&& other) = default;
  JsonVal& operator=(const JsonVal& other);
  JsonVal& operator=(JsonVal&& other) noexcept;
  ~JsonVal() {
    if (!list.empty() || !map.empty()) clear();
  }

  static JsonVal boolean(bool value) { return JsonVal(BOOL, value ? 1 : 0, std::string()); }
  static JsonVal null() { return JsonVal(NIL); }
  static JsonVal integer(int64_t value);
  /// The number as the shortest text that reads back as the same double. Throws
  /// std::invalid_argument for NaN and infinities, which JSON cannot express.
  static JsonVal real(double value);

  /// The value of a NUM or BOOL as double; 0 for other types.
  double toDouble() const;
  /// Gets the value of a NUM as 64-bit integer. Returns false if it is not one.
  bool toInteger(int64_t* value) const;

  /// A strict weak order over all values: by type, then by value.
  bool operator<(const JsonVal& other) const;
  bool operator==(const JsonVal& other) const;

  /// JSON text: keys sorted, " : " between key and value, "," between items.
  std::string dump() const;
  /// For debugging: json(STR:x), json(INT:5), json(LIST:[..,]), json(MAP:{k : v,}).
  std::string toString() const;

  /// Reads a whole JSON text (RFC 8259, nothing looser). Throws JsonError.
  static JsonVal parse(const std::string& json);
  /// Reads one value that begins at *idx, and moves *idx to its end.
  static JsonVal parse(const std::string& json, unsigned int* idx);
  static JsonVal parse_string(const std::string& json, unsigned int* idx) {
    return parse(json, idx);
  }
  static JsonVal parse_num(const std::string& json, unsigned int* idx) { return parse(json, idx); }
  static JsonVal parse_list(const std::string& json, unsigned int* idx) { return parse(json, idx); }
  static JsonVal parse_map(const std::string& json, unsigned int* idx) { return parse(json, idx); }

  JsonType type;
  int num;
  std::string str;
  std::vector<JsonVal> list;
  std::map<JsonVal, JsonVal> map;

 private:
  void clear();
};

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

/// Limits and extensions of a reader of JSON.
struct JsonOptions {
  std::size_t max_depth = PASSLIB_JSON_MAX_DEPTH;
  /// Accept unescaped control characters inside strings, which MXNet's writer produces.
  bool allow_control_characters = false;
  /// Accept comments from // to the end of the line, and a comma after the last item or member.
  bool allow_comments = false;
};

/// A pull reader of JSON text: the caller requests the next expected token. Never recurses, never
/// reads outside the text, and throws JsonError with the place of an unexpected token.
class JsonReader {
 public:
  /// A string of the text: points into the text, or into the reader if it has escapes. Valid until
  /// the reader's next call.
  struct Slice {
    const char* data;
    std::size_t size;
    bool operator==(const char* word) const {
      // An empty text may have no address.
      return strlen(word) == size && (size == 0 || memcmp(word, data, size) == 0);
    }
    bool operator<(const Slice& other) const {
      const std::size_t common = (std::min)(size, other.size);
      const int order = common == 0 ? 0 : memcmp(data, other.data, common);
      return order < 0 || (order == 0 && size < other.size);
    }
    std::string str() const { return std::string(data, size); }
  };

  /// The text is borrowed and must outlive the reader.
  JsonReader(const char* text, std::size_t size, const JsonOptions& options = JsonOptions());

  /// Skips white space and returns the first character of the next token: { [ " t f n - or a digit;
  /// 0 at the end.
  char peek();
  void beginObject();
  /// Moves to the next member of an object and reads its key. Returns false at the closing brace.
  /// `first` is a variable of the caller's loop, true before the first call.
  bool nextKey(bool* first, Slice* key);
  void beginList();
  bool nextItem(bool* first);
  Slice readString();
  /// Reads the text of a number and checks it against the grammar.
  Slice readNumber();
  /// Reads a number without fraction and exponent, within the limits.
  int64_t readInteger(const char* what, int64_t low, int64_t high);
  bool readBool();
  void readNull();
  /// Reads a value of any type with its children.
  JsonVal readValue();
  /// The same, into an item of a tree.
  void _readItem(detail::JsonTree* tree, std::size_t item);
  /// Sorts the members of an object by key. Fails if there are two of one key.
  void _sort(detail::JsonTree* tree, std::size_t object) const;
  void finish();
  /// Whether a string has escapes, so that it is valid until the next call alone; others are valid
  /// for as long as the text.
  bool isDecoded(const Slice& text) const { return text.data == scratch_.data(); }

  std::size_t offset() const { return static_cast<std::size_t>(cursor_ - begin_); }
  /// The unread rest of the text.
  Slice _rest() const { return Slice{cursor_, static_cast<std::size_t>(end_ - cursor_)}; }
  /// Moves over bytes that were compared.
  void _skip(std::size_t size) { cursor_ += size; }
  /// Whether another object or list may begin here without nesting too deeply.
  bool _mayEnter() const { return depth_ < options_.max_depth; }
  [[noreturn]] __attribute__((__cold__)) void fail(JsonErrorCode code, const std::string& message,
                                                   std::size_t place) const;
  [[noreturn]] __attribute__((__cold__)) void fail(JsonErrorCode code,
                                                   const std::string& message) const {
    fail(code, message, offset());
  }

  /// The same with a message in the form of printf.
  [[noreturn]] __attribute__((__cold__, __format__(PASSLIB_PRINTF, 4, 5))) void failAt(
      JsonErrorCode code, std::size_t place, const char* form, ...) const;

 private:
  void skipSpace();
  void enter();
  bool nextElement(bool* first, char close, const char* where);
  void expectWord(const char* word);
  const char* scanString(const char* cursor) const;
  const char* checkUtf8(const char* cursor) const;
  const char* decodeEscape(const char* cursor);
  unsigned readHex4(const char* cursor) const;
  [[noreturn]] __attribute__((__cold__)) void unexpected(const char* wanted) const;
  [[noreturn]] __attribute__((__cold__)) void failHere(JsonErrorCode code, const char* place,
                                                       const char* message) const {
    failAt(code, static_cast<std::size_t>(place - begin_), "%s", message);
  }

  const char* begin_;
  const char* end_;
  const char* cursor_;
  std::size_t depth_;
  JsonOptions options_;
  std::string scratch_;
};
