// ---- JSON: the reader --------------------------------------------------------------------------

namespace detail {

/// Length of the UTF-8 sequence at p, or 0 if there is none. Rejects overlong forms, surrogates and
/// code points beyond U+10FFFF.
inline std::size_t utf8Length(const char* cursor, const char* end) {
  const unsigned char* unit = reinterpret_cast<const unsigned char*>(cursor);
  const std::size_t left = static_cast<std::size_t>(end - cursor);
  const auto follows = [&](std::size_t pos, unsigned low, unsigned high) {
    return pos < left && unit[pos] >= low && unit[pos] <= high;
  };
  if (unit[0] < 0x80) return 1;
  if (unit[0] >= 0xC2 && unit[0] <= 0xDF) return follows(1, 0x80, 0xBF) ? 2 : 0;
  if (unit[0] >= 0xE0 && unit[0] <= 0xEF) {
    const unsigned low = unit[0] == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = unit[0] == 0xED ? 0x9F : 0xBF;
    return follows(1, low, high) && follows(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (unit[0] >= 0xF0 && unit[0] <= 0xF4) {
    const unsigned low = unit[0] == 0xF0 ? 0x90 : 0x80;
    const unsigned high = unit[0] == 0xF4 ? 0x8F : 0xBF;
    return follows(1, low, high) && follows(2, 0x80, 0xBF) && follows(3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

/// Marks the first of eight bytes that is a quote, a backslash, a control character or not ASCII,
/// and perhaps others behind it, by their highest bits.
inline uint64_t special(uint64_t bytes) {
  const uint64_t ones = 0x0101010101010101ULL;
  const uint64_t highs = 0x8080808080808080ULL;
  const uint64_t quote = bytes ^ (ones * '"');
  const uint64_t backslash = bytes ^ (ones * '\\');
  const uint64_t zeros = ((quote - ones) & ~quote) | ((backslash - ones) & ~backslash);
  const uint64_t control = (bytes - ones * 0x20) & ~bytes;
  return (zeros | control | bytes) & highs;
}

/// Whether no byte of a text is special.
inline bool isPlain(const char* text, std::size_t size) {
  uint64_t bytes = 0;
  if (size < 8) {
    memset(&bytes, ' ', 8);
    for (std::size_t pos = 0; pos < size; ++pos) reinterpret_cast<char*>(&bytes)[pos] = text[pos];
    return special(bytes) == 0;
  }
  const char* const last = text + size - 8;
  for (; text < last; text += 8) {
    memcpy(&bytes, text, 8);
    if (special(bytes) != 0) return false;
  }
  memcpy(&bytes, last, 8);
  return special(bytes) == 0;
}

/// The first special byte, or one of the few before it.
inline const char* skipPlain(const char* cursor, const char* end) {
  while (end - cursor >= 8) {
    uint64_t bytes;
    memcpy(&bytes, cursor, 8);
    const uint64_t marks = special(bytes);
    if (marks != 0) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
      cursor += __builtin_ctzll(marks) / 8;
#endif
      break;
    }
    cursor += 8;
  }
  return cursor;
}

inline bool isDigit(char character) { return character >= '0' && character <= '9'; }

inline std::string quoted(const std::string& name) { return "'" + name + "'"; }

/// The limit of numbers that a graph stores as int.
const int64_t kIntMax = (std::numeric_limits<int>::max)();

}  // namespace detail

inline JsonReader::JsonReader(const char* text, std::size_t size, const JsonOptions& options)
    : begin_(text), end_(text + size), cursor_(text), depth_(0), options_(options) {}

inline void JsonReader::fail(JsonErrorCode code, const std::string& message,
                             std::size_t place) const {
  std::size_t line = 1;
  std::size_t line_begin = 0;
  for (std::size_t pos = 0; pos < place && begin_ + pos < end_; ++pos) {
    if (begin_[pos] == '\n') {
      ++line;
      line_begin = pos + 1;
    }
  }
  const std::size_t column = place - line_begin + 1;
  throw JsonError(code,
                  detail::printed("%s (line %zu, column %zu, offset %zu)", message.c_str(), line,
                                  column, place),
                  place, line, column);
}

inline void JsonReader::failAt(JsonErrorCode code, std::size_t place, const char* form, ...) const {
  va_list values;
  va_start(values, form);
  const std::string message = detail::printText(form, values);
  va_end(values);
  fail(code, message, place);
}

inline void JsonReader::unexpected(const char* wanted) const {
  const std::size_t place = offset();
  if (cursor_ == end_) failAt(kJsonTruncated, place, "the text ends where %s should stand", wanted);
  const unsigned char character = static_cast<unsigned char>(*cursor_);
  const bool shown = character >= 0x20 && character < 0x7F;
  fail(kJsonSyntax, (shown ? detail::printed("'%c'", character)
                           : detail::printed("byte 0x%02x", static_cast<unsigned>(character))) +
                        " where " + wanted + " should stand");
}

inline void JsonReader::skipSpace() {
  for (;;) {
    while (cursor_ < end_ &&
           (*cursor_ == ' ' || *cursor_ == '\n' || *cursor_ == '\r' || *cursor_ == '\t')) {
      ++cursor_;
    }
    if (!options_.allow_comments || end_ - cursor_ < 2 || cursor_[0] != '/' || cursor_[1] != '/') {
      return;
    }
    while (cursor_ < end_ && *cursor_ != '\n') ++cursor_;
  }
}

inline char JsonReader::peek() {
  skipSpace();
  return cursor_ < end_ ? *cursor_ : '\0';
}

inline void JsonReader::enter() {
  if (++depth_ > options_.max_depth) {
    failAt(kJsonDepth, offset(), "nested deeper than %zu levels", options_.max_depth);
  }
  ++cursor_;
}

inline void JsonReader::beginObject() {
  if (peek() != '{') unexpected("an object");
  enter();
}

inline void JsonReader::beginList() {
  if (peek() != '[') unexpected("a list");
  enter();
}

inline bool JsonReader::nextElement(bool* first, char close, const char* where) {
  const char character = peek();
  if (character == close && cursor_ < end_) {
    ++cursor_;
    --depth_;
    return false;
  }
  if (*first) {
    *first = false;
    return true;
  }
  if (character != ',') unexpected(where);
  ++cursor_;
  if (options_.allow_comments && peek() == close && cursor_ < end_) {
    ++cursor_;
    --depth_;
    return false;
  }
  return true;
}

inline bool JsonReader::nextKey(bool* first, Slice* key) {
  if (!nextElement(first, '}', "',' or '}'")) return false;
  if (peek() != '"') unexpected("a key in quotes");
  *key = readString();
  if (peek() != ':') unexpected("':'");
  ++cursor_;
  return true;
}

inline bool JsonReader::nextItem(bool* first) {
  if (!nextElement(first, ']', "',' or ']'")) return false;
  if (peek() == ']') unexpected("a value");
  return true;
}

inline const char* JsonReader::checkUtf8(const char* cursor) const {
  const std::size_t length = detail::utf8Length(cursor, end_);
  if (length == 0) failHere(kJsonUtf8, cursor, "not UTF-8");
  return cursor + length;
}

inline const char* JsonReader::scanString(const char* cursor) const {
  for (;;) {
    cursor = detail::skipPlain(cursor, end_);
    if (cursor == end_) failHere(kJsonTruncated, cursor, "the text ends inside a string");
    const unsigned char character = static_cast<unsigned char>(*cursor);
    if (character == '"' || character == '\\') return cursor;
    if (character < 0x20 && !options_.allow_control_characters) {
      failHere(kJsonSyntax, cursor, "a control character inside a string must be escaped");
    }
    cursor = character < 0x80 ? cursor + 1 : checkUtf8(cursor);
  }
}

inline unsigned JsonReader::readHex4(const char* cursor) const {
  if (end_ - cursor < 4) failHere(kJsonTruncated, cursor, "the text ends inside an escape");
  unsigned value = 0;
  for (int pos = 0; pos < 4; ++pos) {
    const char character = cursor[pos];
    unsigned digit = 0;
    if (detail::isDigit(character)) {
      digit = static_cast<unsigned>(character - '0');
    } else if (character >= 'a' && character <= 'f') {
      digit = static_cast<unsigned>(character - 'a') + 10;
    } else if (character >= 'A' && character <= 'F') {
      digit = static_cast<unsigned>(character - 'A') + 10;
    } else {
      failHere(kJsonSyntax, cursor, "\\u wants four hexadecimal digits");
    }
    value = value * 16 + digit;
  }
  return value;
}

inline const char* JsonReader::decodeEscape(const char* cursor) {
  const char* const place = cursor;
  ++cursor;
  if (cursor == end_) failHere(kJsonTruncated, place, "the text ends inside an escape");
  static const char from[] = "\"\\/bfnrt";
  static const char target[] = "\"\\/\b\f\n\r\t";
  if (const char* simple = *cursor != '\0' ? strchr(from, *cursor) : nullptr) {
    scratch_ += target[simple - from];
    return cursor + 1;
  }
  if (*cursor != 'u') failHere(kJsonSyntax, place, "unknown escape");
  unsigned code = readHex4(cursor + 1);
  cursor += 5;
  if (code >= 0xDC00 && code <= 0xDFFF)
    failHere(kJsonUtf8, place, "second half of a surrogate pair");
  if (code >= 0xD800 && code <= 0xDBFF) {
    if (end_ - cursor < 2 || cursor[0] != '\\' || cursor[1] != 'u') {
      failHere(kJsonUtf8, place, "half of a surrogate pair");
    }
    const unsigned low = readHex4(cursor + 2);
    if (low < 0xDC00 || low > 0xDFFF) failHere(kJsonUtf8, place, "half of a surrogate pair");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    cursor += 6;
  }
  const auto append = [this](unsigned byte) { scratch_ += static_cast<char>(byte); };
  if (code < 0x80) {
    append(code);
  } else if (code < 0x800) {
    append(0xC0 | (code >> 6));
    append(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    append(0xE0 | (code >> 12));
    append(0x80 | ((code >> 6) & 0x3F));
    append(0x80 | (code & 0x3F));
  } else {
    append(0xF0 | (code >> 18));
    append(0x80 | ((code >> 12) & 0x3F));
    append(0x80 | ((code >> 6) & 0x3F));
    append(0x80 | (code & 0x3F));
  }
  return cursor;
}

inline JsonReader::Slice JsonReader::readString() {
  if (peek() != '"') unexpected("a string");
  const char* start = cursor_ + 1;
  const char* cursor = scanString(start);
  if (*cursor == '"') {
    cursor_ = cursor + 1;
    return Slice{start, static_cast<std::size_t>(cursor - start)};
  }
  scratch_.assign(start, static_cast<std::size_t>(cursor - start));
  while (*cursor != '"') {
    cursor = decodeEscape(cursor);
    const char* stop = scanString(cursor);
    scratch_.append(cursor, static_cast<std::size_t>(stop - cursor));
    cursor = stop;
  }
  cursor_ = cursor + 1;
  return Slice{scratch_.data(), scratch_.size()};
}

inline JsonReader::Slice JsonReader::readNumber() {
  const char character = peek();
  if (character != '-' && !detail::isDigit(character)) unexpected("a number");
  const char* start = cursor_;
  const auto digits = [this]() {
    if (cursor_ == end_ || !detail::isDigit(*cursor_)) unexpected("a digit");
    while (cursor_ < end_ && detail::isDigit(*cursor_)) ++cursor_;
  };
  if (character == '-') ++cursor_;
  if (cursor_ < end_ && *cursor_ == '0') {
    ++cursor_;
    if (cursor_ < end_ && detail::isDigit(*cursor_)) {
      failHere(kJsonSyntax, start, "a number must not begin with 0");
    }
  } else {
    digits();
  }
  if (cursor_ < end_ && *cursor_ == '.') {
    ++cursor_;
    digits();
  }
  if (cursor_ < end_ && (*cursor_ == 'e' || *cursor_ == 'E')) {
    ++cursor_;
    if (cursor_ < end_ && (*cursor_ == '+' || *cursor_ == '-')) ++cursor_;
    digits();
  }
  return Slice{start, static_cast<std::size_t>(cursor_ - start)};
}

namespace detail {

/// Reads a decimal integer; false for anything else and for what does not fit in 64 bits.
inline bool parseInteger(const char* text, std::size_t size, int64_t* value) {
  const char* cursor = text;
  const char* end = text + size;
  const bool negative = cursor < end && *cursor == '-';
  if (negative) ++cursor;
  if (cursor == end || end - cursor > 19) return false;
  uint64_t magnitude = 0;
  for (; cursor < end; ++cursor) {
    if (!isDigit(*cursor)) return false;
    magnitude = magnitude * 10 + static_cast<uint64_t>(*cursor - '0');
  }
  const uint64_t limit = static_cast<uint64_t>((std::numeric_limits<int64_t>::max)());
  if (magnitude > limit + (negative ? 1 : 0)) return false;
  *value = negative ? static_cast<int64_t>(0 - magnitude) : static_cast<int64_t>(magnitude);
  return true;
}

/// The decimal separator of the C library's numbers, which depends on the locale.
inline std::string decimalPoint() {
  char buffer[32];
  const int size = snprintf(buffer, sizeof(buffer), "%.1f", 0.5);
  return size > 2 ? std::string(buffer + 1, static_cast<std::size_t>(size) - 2) : std::string(".");
}

/// Reads a decimal number as the nearest double, infinity where it is too large, independent of the
/// locale. Returns false if text is left. Without streams, which take many times as long.
inline bool scanDouble(const std::string& text, double* value) {
  // The C library reads hexadecimal numbers and names too.
  if (text.find_first_not_of("0123456789.eE+-") != std::string::npos) return false;
  char* end = nullptr;
  *value = strtod(text.c_str(), &end);
  if (*end != '.') return *end == '\0' && end != text.c_str();
  std::string local = text;
  local.replace(static_cast<std::size_t>(end - text.c_str()), 1, decimalPoint());
  *value = strtod(local.c_str(), &end);
  return *end == '\0';
}

/// The double as text of `digits` digits, independent of the locale.
inline std::string printDouble(double value, int digits) {
  char buffer[64];  // the longest has 24 characters and a point of several bytes
  std::string text(
      buffer, static_cast<std::size_t>(snprintf(buffer, sizeof(buffer), "%.*g", digits, value)));
  const std::size_t point = text.find_first_not_of("0123456789+-e");
  if (point == std::string::npos || text[point] == '.') return text;
  const std::size_t fraction = text.find_first_of("0123456789", point);
  return text.replace(point, fraction - point, ".");
}

/// Reads a number in JSON's grammar as double, independent of the locale.
inline double parseDouble(const std::string& text) {
  double value = 0;
#if defined(__cpp_lib_to_chars)
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, value).ec == std::errc()) return value;
#endif
  scanDouble(text, &value);
  return value;
}

/// `num` of a number: truncated towards zero and clamped to the range of int.
inline int toInt(double value) {
  if (value >= static_cast<double>((std::numeric_limits<int>::max)())) {
    return (std::numeric_limits<int>::max)();
  }
  if (value <= static_cast<double>((std::numeric_limits<int>::min)())) {
    return (std::numeric_limits<int>::min)();
  }
  return static_cast<int>(value);
}

}  // namespace detail

inline int64_t JsonReader::readInteger(const char* what, int64_t low, int64_t high) {
  const char character = peek();
  const std::size_t place = offset();
  if (cursor_ == end_) unexpected(what);
  if (character != '-' && !detail::isDigit(character)) {
    failAt(kJsonType, place, "%s must be an integer", what);
  }
  const Slice text = readNumber();
  int64_t value = 0;
  if (!detail::parseInteger(text.data, text.size, &value)) {
    for (std::size_t pos = 0; pos < text.size; ++pos) {
      if (strchr(".eE", text.data[pos]) == nullptr) continue;
      failAt(kJsonType, place, "%s must be an integer", what);
    }
    failAt(kJsonRange, place, "%s %s is out of range", what, text.str().c_str());
  }
  if (value < low || value > high) {
    failAt(kJsonRange, place, "%s %lld is not within %lld to %lld", what,
           static_cast<long long>(value), static_cast<long long>(low),
           static_cast<long long>(high));
  }
  return value;
}

inline void JsonReader::expectWord(const char* word) {
  for (const char* expected = word; *expected != '\0'; ++expected, ++cursor_) {
    if (cursor_ == end_ || *cursor_ != *expected) unexpected(word);
  }
}

inline bool JsonReader::readBool() {
  const char character = peek();
  if (character != 't' && character != 'f') unexpected("true or false");
  expectWord(character == 't' ? "true" : "false");
  return character == 't';
}

inline void JsonReader::readNull() {
  if (peek() != 'n') unexpected("null");
  expectWord("null");
}

inline void JsonReader::finish() {
  if (peek() != '\0' || cursor_ < end_) {
    failHere(kJsonTrailing, cursor_, "something follows the end of the JSON text");
  }
}

namespace detail {

/// Append-only text, mostly of short pieces. Kept in blocks, so that a long text is never moved
/// while it grows, or in memory of the host, which can grow in place.
class TextBuffer {
 public:
  class Memory {
   public:
    /// Returns memory of at least *size bytes, which it sets to what there is. The text so far, of
    /// `used` bytes, is at its beginning.
    virtual char* grow(std::size_t used, std::size_t* size) = 0;

   protected:
    ~Memory() = default;
  };

  explicit TextBuffer(Memory* memory = nullptr)
      : memory_(memory), size_(0), room_(nullptr), left_(0), ascii_(true) {}
  TextBuffer(const TextBuffer&) = delete;
  TextBuffer& operator=(const TextBuffer&) = delete;
  ~TextBuffer() { clear(); }

  /// Room for `count` more bytes, to be claimed with advance.
  char* room(std::size_t count) {
    if (left_ < count) addBlock(count);
    return room_;
  }
  void advance(std::size_t count) {
    room_ += count;
    left_ -= count;
  }
  /// Claims the room up to `end`.
  void advanceTo(const char* end) { advance(static_cast<std::size_t>(end - room_)); }
  void append(const char* text, std::size_t count) {
    memcpy(room(count), text, count);
    advance(count);
  }
  void append(const std::string& text) { append(text.data(), text.size()); }
  template <std::size_t TextSize>
  void append(const char (&text)[TextSize]) {
    append(text, TextSize - 1);
  }
  void push_back(char character) {
    *room(1) = character;
    advance(1);
  }
  /// Appends what was written before, at this place of a text in memory of the host.
  void repeat(std::size_t place, std::size_t count) {
    char* const target = room(count);
    memcpy(target, target - size() + place, count);
    advance(count);
  }
  /// Whether the text lies in one piece.
  bool isWhole() const { return memory_ != nullptr; }
  void noteNotAscii() { ascii_ = false; }
  bool isAscii() const { return ascii_; }
  std::size_t size() const { return size_ - left_; }

  /// Moves a text in blocks to memory of its size, block by block: a long one is never in memory
  /// twice.
  void moveTo(char* target) {
    closeBlock();
    for (Block& block : blocks_) {
      memcpy(target, block.text, block.size);
      target += block.size;
      free(block.text);
      block.text = nullptr;
    }
    clear();
  }
  void clear() {
    for (const Block& block : blocks_) free(block.text);
    blocks_.clear();
    room_ = nullptr;
    left_ = size_ = 0;
  }
  std::string str() {
    std::string text(size(), '\0');
    moveTo(&text[0]);
    return text;
  }

 private:
  struct Block {
    char* text;
    std::size_t size;
  };

  void closeBlock() {
    if (!blocks_.empty()) blocks_.back().size -= left_;
    size_ -= left_;
    left_ = 0;
  }
  __attribute__((__noinline__)) void addBlock(std::size_t count) {
    if (memory_ != nullptr) {
      const std::size_t used = size();
      size_ = (std::max)(2 * used, used + count);
      room_ = memory_->grow(used, &size_) + used;
      left_ = size_ - used;
      return;
    }
    closeBlock();
    // Little memory for small texts, few blocks for large ones.
    const std::size_t last = blocks_.empty() ? 256 : blocks_.back().size;
    const std::size_t size = (std::max)(count, std::min<std::size_t>(2 * last, 1 << 20));
    blocks_.push_back(Block{nullptr, 0});
    room_ = static_cast<char*>(malloc(size));
    if (room_ == nullptr) throw std::bad_alloc();
    blocks_.back() = Block{room_, size};
    size_ += size;
    left_ = size;
  }

  Memory* memory_;
  std::size_t size_;  // of that memory, or of the blocks
  PlainList<Block> blocks_;
  char* room_;
  std::size_t left_;
  bool ascii_;
};

/// Appends a string in quotes. `raw_controls`: leave control characters other than \n \r \t
/// unescaped, which is not JSON, but the format of MXNet.
inline void appendString(const char* text, std::size_t size, bool raw_controls, TextBuffer* out) {
  const char* cursor = text;
  const char* end = text + size;
  const char* written = text;
  if (isPlain(text, size)) {
    char* const room = out->room(size + 2);
    room[0] = '"';
    if (size != 0) memcpy(room + 1, text, size);
    room[size + 1] = '"';
    out->advance(size + 2);
    return;
  }
  out->push_back('"');
  while (cursor < end) {
    cursor = skipPlain(cursor, end);
    if (cursor == end) break;
    const unsigned char character = static_cast<unsigned char>(*cursor);
    if (character >= 0x80) {
      const std::size_t length = utf8Length(cursor, end);
      if (length == 0) {
        const std::size_t place = static_cast<std::size_t>(cursor - text);
        throw JsonError(kJsonUtf8,
                        printed("a string holds bytes that are not UTF-8, which JSON cannot "
                                "express (byte %zu of the string)",
                                place),
                        place, 1, place + 1);
      }
      out->noteNotAscii();
      cursor += length;
      continue;
    }
    if (character >= 0x20 && character != '"' && character != '\\') {
      ++cursor;
      continue;
    }
    static const char from[] = "\"\\\n\r\t\b\f";
    static const char target[] = "\"\\nrtbf";
    const char* simple = character != 0 ? strchr(from, static_cast<char>(character)) : nullptr;
    const bool plain =
        simple == nullptr ? character >= 0x20 || raw_controls : raw_controls && simple - from >= 5;
    if (plain) {
      ++cursor;
      continue;
    }
    out->append(written, static_cast<std::size_t>(cursor - written));
    if (simple != nullptr) {
      out->push_back('\\');
      out->push_back(target[simple - from]);
    } else {
      const char digits[] = "0123456789abcdef";
      out->append("\\u00");
      out->push_back(digits[character >> 4]);
      out->push_back(digits[character & 15]);
    }
    written = ++cursor;
  }
  out->append(written, static_cast<std::size_t>(end - written));
  out->push_back('"');
}

/// Appends a list of texts.
inline void appendTexts(const std::vector<std::string>& texts, TextBuffer* out) {
  out->push_back('[');
  for (const std::string& text : texts) {
    if (&text != &texts[0]) out->push_back(',');
    appendString(text.data(), text.size(), false, out);
  }
  out->push_back(']');
}

/// Prints a number to `target`, which has room for 20 bytes, and returns its end.
inline char* printInteger(int64_t value, char* target) {
  if (value >= 0 && value < 10) {
    *target = static_cast<char>('0' + value);
    return target + 1;
  }
  char digits[20];
  char* cursor = digits + sizeof(digits);
  uint64_t rest = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  do {
    *--cursor = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest != 0);
  if (value < 0) *--cursor = '-';
  const std::size_t size = static_cast<std::size_t>(digits + sizeof(digits) - cursor);
  memcpy(target, cursor, size);
  return target + size;
}

/// A JSON value with its children as it was read, to become text or a JsonVal. An item names its
/// relatives by their numbers; that of the root, 0, stands for none. A child has a higher number
/// than its parent.
class JsonTree {
 public:
  typedef JsonReader::Slice Slice;
  struct Item {
    std::size_t parent;
    std::size_t first;  // child
    std::size_t last;
    std::size_t next;   // child of the same parent
    std::size_t count;  // of children
    std::size_t key;    // where it begins in the texts
    std::size_t key_size;
    std::size_t text;  // of a scalar
    std::size_t text_size;
    std::size_t place;  // behind the key of a member, for errors
    JsonType type;
    bool lines;  // whether MXNet writes the children on lines
  };

  explicit JsonTree(JsonType type = ERR) { clear(type); }
  /// Leaves an empty root of this type.
  void clear(JsonType type) {
    items_.clear();
    texts_.clear();
    items_.resize(items_.size() + 1);
    items_[0].type = type;
  }
  std::size_t size() const { return items_.size(); }
  const Item& operator[](std::size_t item) const { return items_[item]; }
  Slice key(const Item& item) const { return Slice{texts_.data() + item.key, item.key_size}; }
  Slice text(const Item& item) const { return Slice{texts_.data() + item.text, item.text_size}; }
  bool isComposite(std::size_t item) const {
    return items_[item].type == LIST || items_[item].type == MAP;
  }

  void setType(std::size_t item, JsonType type) {
    items_[item].type = type;
    Item& parent = items_[items_[item].parent];
    if (isComposite(item) && item != 0 && parent.type == LIST) parent.lines = true;
  }
  /// `text`: of a string without escapes, otherwise as in JSON.
  void setScalar(std::size_t item, JsonType type, const Slice& text) {
    items_[item].type = type;
    items_[item].text_size = text.size;
    items_[item].text = keep(text);
  }
  /// Adds a child to a list, or a member to an object.
  std::size_t add(std::size_t parent, const Slice& key = Slice{"", 0}, std::size_t place = 0);
  /// Sorts the members of an object by key. Returns null, or the first that has the key of one
  /// before it.
  const Item* sort(std::size_t object);
  /// Appends an item as JSON, on one line or in the layout of MXNet's writer, of which `depth` is
  /// the indentation.
  void print(std::size_t root, bool pretty, std::size_t depth, TextBuffer* out) const;
  /// Appends the members of the root.
  void print(JsonMembers* members) const;

 private:
  std::size_t keep(const Slice& text) {
    const std::size_t place = texts_.size();
    texts_.append(text.data, text.size);
    return place;
  }
  void begin(std::size_t item, bool pretty, std::size_t depth, TextBuffer* out) const;

  PlainList<Item> items_;
  std::string texts_;
};

inline std::size_t JsonTree::add(std::size_t parent, const Slice& key, std::size_t place) {
  const std::size_t number = items_.size();
  items_.resize(items_.size() + 1);
  Item& item = items_[number];
  item.parent = parent;
  item.key_size = key.size;
  item.key = keep(key);
  item.place = place;
  Item& above = items_[parent];
  (above.count == 0 ? above.first : items_[above.last].next) = number;
  above.last = number;
  ++above.count;
  if (above.count > (above.type == MAP ? 1u : 10u)) above.lines = true;
  return number;
}

inline const JsonTree::Item* JsonTree::sort(std::size_t object) {
  PlainList<NumberedText> keys;
  bool sorted = true;
  for (std::size_t item = items_[object].first; item != 0; item = items_[item].next) {
    const NumberedText next = {key(items_[item]), item};
    sorted = sorted && (keys.empty() || keys.back().text < next.text);
    keys.push_back(next);
  }
  if (sorted) return nullptr;
  sortTexts(&keys);
  std::size_t twice = 0;
  for (std::size_t pos = 1; pos < keys.size(); ++pos) {
    items_[keys[pos - 1].number].next = keys[pos].number;
    // Sorted: if it is not before the next one, it is the same.
    if (keys[pos - 1].text < keys[pos].text || (twice != 0 && twice < keys[pos].number)) continue;
    twice = keys[pos].number;
  }
  items_[object].first = keys[0].number;
  items_[object].last = keys.back().number;
  items_[keys.back().number].next = 0;
  return twice == 0 ? nullptr : &items_[twice];
}

/// How many levels the layout of MXNet's writer indents at most, here and in GraphWriter: the text
/// of what is deeply nested would grow with the square of its depth.
const std::size_t kMostIndented = 64;

inline void appendLine(std::size_t depth, TextBuffer* out) {
  const std::size_t size = 2 * (std::min)(depth, kMostIndented);
  out->push_back('\n');
  memset(out->room(size), ' ', size);
  out->advance(size);
}

/// Writes what comes before the children of an item, or all of a scalar.
inline void JsonTree::begin(std::size_t item, bool pretty, std::size_t depth,
                            TextBuffer* out) const {
  const Item& from = items_[item];
  if (from.type == STR) return appendString(text(from).data, from.text_size, pretty, out);
  if (!isComposite(item)) return out->append(text(from).data, from.text_size);
  out->push_back(from.type == LIST ? '[' : '{');
  if (pretty && from.lines) appendLine(depth + 1, out);
}

inline void JsonTree::print(std::size_t root, bool pretty, std::size_t depth,
                            TextBuffer* out) const {
  std::size_t item = root;
  begin(item, pretty, depth, out);
  for (;;) {
    if (items_[item].first != 0) {
      item = items_[item].first;
      ++depth;
    } else {
      // The values that end here, up to one with another child behind it.
      for (bool leaf = true;; leaf = false) {
        if (!leaf && pretty && items_[item].lines) appendLine(depth, out);
        if (isComposite(item)) out->push_back(items_[item].type == LIST ? ']' : '}');
        if (item == root) return;
        if (items_[item].next != 0) break;
        item = items_[item].parent;
        --depth;
      }
      const bool lines = pretty && items_[items_[item].parent].lines;
      item = items_[item].next;
      out->append(", ");
      if (lines) appendLine(depth, out);
    }
    if (items_[items_[item].parent].type == MAP) {
      appendString(key(items_[item]).data, items_[item].key_size, pretty, out);
      out->append(": ");
    }
    begin(item, pretty, depth, out);
  }
}

inline void JsonTree::print(JsonMembers* members) const {
  for (std::size_t item = items_[0].first; item != 0; item = items_[item].next) {
    TextBuffer out;
    print(item, false, 0, &out);
    members->emplace_back(key(items_[item]).str(), out.str());
  }
}

}  // namespace detail

inline void JsonReader::_readItem(detail::JsonTree* tree, std::size_t root) {
  for (std::size_t item = root;;) {
    const char character = peek();
    switch (character) {
      case '{':
        beginObject();
        tree->setType(item, MAP);
        break;
      case '[':
        beginList();
        tree->setType(item, LIST);
        break;
      case '"':
        tree->setScalar(item, STR, readString());
        break;
      case 't':
      case 'f':
        readBool();
        tree->setScalar(item, BOOL, character == 't' ? Slice{"true", 4} : Slice{"false", 5});
        break;
      case 'n':
        readNull();
        tree->setScalar(item, NIL, Slice{"null", 4});
        break;
      default:
        if (character != '-' && !detail::isDigit(character)) unexpected("a value");
        tree->setScalar(item, NUM, readNumber());
    }
    const bool composite = tree->isComposite(item);
    if (item == root && !composite) return;
    for (std::size_t open = composite ? item : (*tree)[item].parent;; open = (*tree)[open].parent) {
      bool first = (*tree)[open].count == 0;
      if ((*tree)[open].type == LIST) {
        if (nextItem(&first)) {
          item = tree->add(open);
          break;
        }
      } else {
        Slice key;
        if (nextKey(&first, &key)) {
          item = tree->add(open, key, offset());
          break;
        }
        _sort(tree, open);
      }
      if (open == root) return;
    }
  }
}

inline void JsonReader::_sort(detail::JsonTree* tree, std::size_t object) const {
  const detail::JsonTree::Item* const twice = tree->sort(object);
  if (twice == nullptr) return;
  failAt(kJsonDuplicateKey, twice->place, "the key '%s' occurs twice in one object",
         tree->key(*twice).str().c_str());
}
