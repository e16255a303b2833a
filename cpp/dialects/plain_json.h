// Reading of JSON files that need no closer look.
#ifndef PASSLIB_DIALECTS_PLAIN_JSON_H_
#define PASSLIB_DIALECTS_PLAIN_JSON_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib_api.h"

namespace passlib {

// The checks of a JSON dialect stand in Python, where they make findings with places. Most files
// have nothing to find: a reader here builds their graphs at once, without a tree of objects, and
// gives up at the first thing that is not as expected. The file is then read by Python, which
// accepts it after all or says what is wrong. Hence a reader here may refuse anything, but must not
// accept what Python refuses, and must make the same graph.

/// Thrown where a file needs a closer look.
struct NotPlain {};

inline void require(bool plain) {
  if (!plain) throw NotPlain();
}

/// Calls read(), and returns nothing instead of its result if it gives up.
template <typename Read>
auto unlessRefused(Read read) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const NotPlain&) {
    return std::nullopt;
  } catch (const mxnet::ext::JsonError&) {
    return std::nullopt;  // Python reads the file again, and reports the place
  }
}

/// A JSON text, read value by value; every function throws NotPlain or JsonError where the next
/// value is another.
class PlainJson {
 public:
  /// The text must outlive the reader, `comments` as in JsonOptions.
  PlainJson(std::string_view text, std::size_t max_depth, bool comments = false)
      : text_(text), reader_(text.data(), text.size(), options(max_depth, comments)) {}

  /// Calls visit(key) for each member, which must read its value and notice repeated keys. The key
  /// is valid until then.
  template <typename Visit>
  void object(Visit visit) {
    bool first = true;
    Slice key;
    reader_.beginObject();
    while (reader_.nextKey(&first, &key)) visit(std::string_view(key.data, key.size));
  }

  /// Calls visit() for each item, which must read it.
  template <typename Visit>
  void list(Visit visit) {
    bool first = true;
    reader_.beginList();
    while (reader_.nextItem(&first)) visit();
  }

  /// A string, valid until the next call.
  std::string_view text() {
    const Slice slice = reader_.readString();
    return std::string_view(slice.data, slice.size);
  }

  /// A string, valid as long as the reader.
  std::string_view keptText() { return keep(text()); }

  bool boolean() { return reader_.readBool(); }

  /// Returns a text that is valid as long as the reader: itself if it is a part of the file.
  std::string_view keep(std::string_view text) {
    return isPart(text) ? text : std::string_view(kept_.emplace_back(text));
  }

  /// The text of a number, valid until the next call.
  std::string_view number() {
    const Slice slice = reader_.readNumber();
    return std::string_view(slice.data, slice.size);
  }

  /// A number that Python spells the same way and that has 64 bits.
  int64_t integer() {
    const Slice slice = reader_.readNumber();
    int64_t value = 0;
    require(mxnet::ext::host::parseInteger(slice.data, slice.size, &value));
    require(value != 0 || slice.size == 1);  // not -0
    return value;
  }

  int64_t integer(int64_t low, int64_t high) {
    const int64_t value = integer();
    require(low <= value && value <= high);
    return value;
  }

  /// Reads a value of any type without escapes in keys, and returns its text. Makes no tree of it,
  /// which would take a hundred times the memory of the text.
  std::string_view valueText();

  /// The first character of the next value, and its offset.
  char peek() { return reader_.peek(); }
  std::size_t offset() const { return reader_.offset(); }

  void finish() { reader_.finish(); }

 private:
  using Slice = mxnet::ext::JsonReader::Slice;

  bool isPart(std::string_view text) const {
    const std::less<> before;
    return !before(text.data(), text_.data()) && before(text.data(), text_.data() + text_.size());
  }

  static mxnet::ext::JsonOptions options(std::size_t max_depth, bool comments) {
    mxnet::ext::JsonOptions reading;
    reading.max_depth = max_depth;
    reading.allow_comments = comments;
    return reading;
  }

  /// Moves to the next value in the open containers of valueText; false at the end of the first.
  bool advance();

  struct Open {
    bool is_object;
    bool first;
    std::size_t keys;  // of the containers around it
  };

  std::string_view text_;
  mxnet::ext::JsonReader reader_;
  std::deque<std::string> kept_;
  std::vector<Open> open_;              // containers, of valueText
  std::vector<std::string_view> keys_;  // of the objects among them
};

/// The keys of an object that were met, of a set that is known beforehand.
class SeenKeys {
 public:
  /// Notes key number `key`, which must be new.
  void add(int key) {
    require((seen_ >> key & 1U) == 0);
    seen_ |= 1U << key;
  }
  bool has(int key) const { return (seen_ >> key & 1U) != 0; }

 private:
  unsigned seen_ = 0;
};

}  // namespace passlib

#endif  // PASSLIB_DIALECTS_PLAIN_JSON_H_
