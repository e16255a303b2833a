// ================================================================================================
// JSON
// ================================================================================================

/// Kind of a JSON value. BOOL and NIL are additions to MXNet's header, which cannot read them.
enum JsonType { ERR, STR, NUM, LIST, MAP, BOOL, NIL };

/// One JSON value with its children. A template, so that only what is used of it is compiled:
/// JsonVal is the one that there is.
///
/// Numbers: `num` is the number as an int, truncated towards zero and clamped to the range of int.
/// If that loses anything, `str` has the original text, which dump() writes unless `num` was set to
/// another value.
template <typename Unused>
struct JsonValue {
  JsonValue() : type(ERR), num(-1) {}
  explicit JsonValue(JsonType kind) : type(kind), num(-1) {}
  explicit JsonValue(std::string text) : type(STR), num(-1), str(std::move(text)) {}
  explicit JsonValue(const char* text) : type(STR), num(-1), str(text) {}
  explicit JsonValue(int number) : type(NUM), num(number) {}
  JsonValue(JsonType kind, int number, std::string text)
      : type(kind), num(number), str(std::move(text)) {}
  JsonValue(const JsonValue& other);
  JsonValue(JsonValue&& other) = default;
  JsonValue& operator=(const JsonValue& other);
  JsonValue& operator=(JsonValue&& other) noexcept;
  ~JsonValue() {
    if (!list.empty() || !map.empty()) clear();
  }

  static JsonValue boolean(bool value) { return JsonValue(BOOL, value ? 1 : 0, std::string()); }
  static JsonValue null() { return JsonValue(NIL); }
  static JsonValue integer(int64_t value);
  /// The number as the shortest text that reads back as the same double. Throws
  /// std::invalid_argument for NaN and infinities, which JSON cannot express.
  static JsonValue real(double value);

  /// The value of a NUM or BOOL as double; 0 for other types.
  double toDouble() const;
  /// Gets the value of a NUM as 64-bit integer. Returns false if it is not one.
  bool toInteger(int64_t* value) const;

  /// A strict weak order over all values: by type, then by value.
  bool operator<(const JsonValue& other) const;
  bool operator==(const JsonValue& other) const;

  /// JSON text: keys sorted, " : " between key and value, "," between items.
  std::string dump() const;
  /// For debugging: json(STR:x), json(INT:5), json(LIST:[..,]), json(MAP:{k : v,}).
  std::string toString() const;

  /// Reads a whole JSON text (RFC 8259, nothing looser). Throws JsonError.
  static JsonValue parse(const std::string& json);
  /// Reads one value that begins at *idx, and moves *idx to its end.
  static JsonValue parse(const std::string& json, unsigned int* idx);
  static JsonValue parse_string(const std::string& json, unsigned int* idx) {
    return parse(json, idx);
  }
  static JsonValue parse_num(const std::string& json, unsigned int* idx) {
    return parse(json, idx);
  }
  static JsonValue parse_list(const std::string& json, unsigned int* idx) {
    return parse(json, idx);
  }
  static JsonValue parse_map(const std::string& json, unsigned int* idx) {
    return parse(json, idx);
  }

  JsonType type;
  int num;
  std::string str;
  std::vector<JsonValue> list;
  std::map<JsonValue, JsonValue> map;

 private:
  void clear();
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
      return strlen(word) == size && memcmp(word, data, size) == 0;
    }
    bool operator<(const Slice& other) const {
      const int order = memcmp(data, other.data, (std::min)(size, other.size));
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
  PASSLIB_ON_DEMAND JsonVal readValue();
  /// The same, into an item of a tree.
  void _readItem(detail::JsonTree* tree, std::size_t item);
  /// Sorts the members of an object by key. Fails if there are two of one key.
  void _sort(detail::JsonTree* tree, std::size_t object) const;
  void finish();
  /// Whether a string has escapes, so that it is valid until the next call alone; others are valid
  /// for as long as the text.
  bool isDecoded(const Slice& text) const { return text.data == scratch_.data(); }

  std::size_t offset() const { return static_cast<std::size_t>(cursor_ - begin_); }
  /// What is left of the text.
  Slice _rest() const { return Slice{cursor_, static_cast<std::size_t>(end_ - cursor_)}; }
  /// Moves over bytes that were read before at the same place of the grammar. Returns false, and
  /// stays, if they do not follow.
  PASSLIB_INLINE bool _skipKnown(const char* text, std::size_t size) {
    if (static_cast<std::size_t>(end_ - cursor_) < size) return false;
    if (!detail::sameBytes(cursor_, text, size)) return false;
    cursor_ += size;
    return true;
  }
  /// Moves over bytes that were compared.
  void _skip(std::size_t size) { cursor_ += size; }
  /// Whether another object or list may begin here without nesting too deeply.
  bool _mayEnter() const { return depth_ < options_.max_depth; }
  /// Reads an integer of a few digits right here. Returns false, and stays, if there is none.
  PASSLIB_INLINE bool _readDigits(int* value) {
    const char* cursor = cursor_;
    if (!_scanDigits(&cursor, value)) return false;
    cursor_ = cursor;
    return true;
  }
  /// Reads a list of `count` such integers right here. Returns false, and stays, if there is none.
  PASSLIB_INLINE bool _readTuple(int* values, int count) {
    const char* cursor = cursor_;
    if (cursor == end_ || *cursor != '[' || !_mayEnter()) return false;
    for (int pos = 0; pos < count; ++pos) {
      ++cursor;  // over the bracket or the comma
      if (cursor != end_ && *cursor == ' ') ++cursor;
      if (!_scanDigits(&cursor, &values[pos])) return false;
      if (*cursor != (pos + 1 < count ? ',' : ']')) return false;
    }
    cursor_ = cursor + 1;
    return true;
  }
  [[noreturn]] void fail(JsonErrorCode code, const std::string& message, std::size_t place) const;
  [[noreturn]] void fail(JsonErrorCode code, const std::string& message) const {
    fail(code, message, offset());
  }
  /// The same with a message in the form of printf.
  [[noreturn]] PASSLIB_FORM(4) void _fail(JsonErrorCode code, std::size_t place, const char* form,
                                          ...) const;

 private:
  /// Moves behind an integer of at most eight digits, something other than a digit after it.
  PASSLIB_INLINE bool _scanDigits(const char** place, int* value) const {
    const char* cursor = *place;
    if (end_ - cursor < 10) return false;
    unsigned digit = static_cast<unsigned char>(*cursor) - static_cast<unsigned>('0');
    if (digit > 9) return false;
    unsigned sum = digit;
    const char* const first = cursor++;
    for (; (digit = static_cast<unsigned char>(*cursor) - static_cast<unsigned>('0')) <= 9;
         ++cursor) {
      if (sum == 0 || cursor - first == 8) return false;
      sum = 10 * sum + digit;
    }
    if (*cursor == '.' || *cursor == 'e' || *cursor == 'E') return false;
    *place = cursor;
    *value = static_cast<int>(sum);
    return true;
  }
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
    _fail(code, static_cast<std::size_t>(place - begin_), "%s", message);
  }

  const char* begin_;
  const char* end_;
  const char* cursor_;
  std::size_t depth_;
  JsonOptions options_;
  std::string scratch_;
};

PASSLIB_END_CODE
