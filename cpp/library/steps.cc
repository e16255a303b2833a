#include "library/steps.h"

#include <algorithm>
#include <optional>
#include <set>

#include "header.h"

namespace passlib {

namespace {

using mxnet::ext::JsonVal;

constexpr std::size_t kMostNested = 100;
constexpr int kMostTimes = 1000000;

bool isBare(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         std::string_view("_.+:/-").find(c) != std::string_view::npos;
}

/// Whether a JSON string holds a character as it is, and in one byte.
bool isPlain(char c) {
  return c >= 0x20 && c != '"' && c != '\\' && static_cast<unsigned char>(c) < 0x80;
}

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80; }

/// The number of characters in a text in UTF-8.
std::size_t charactersIn(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::count_if(text.begin(), text.end(), continues));
}

/// Whether half of a surrogate pair is at a place, in three bytes.
bool isHalf(std::string_view text, std::size_t place) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[place + i]); };
  return text.size() - place >= 3 && byte(0) == 0xED && byte(1) >= 0xA0 && byte(1) <= 0xBF &&
         continues(text[place + 2]);
}

bool hasHalves(std::string_view text) {
  std::size_t place = text.find('\xED');
  while (place != std::string_view::npos && !isHalf(text, place)) {
    place = text.find('\xED', place + 1);
  }
  return place != std::string_view::npos;
}

void appendUtf8(unsigned code, std::string* text) {
  const auto append = [text](unsigned byte) { *text += static_cast<char>(byte); };
  if (code < 0x80) return append(code);
  if (code < 0x800) {
    append(0xC0U | (code >> 6U));
  } else {
    if (code < 0x10000) {
      append(0xE0U | (code >> 12U));
    } else {
      append(0xF0U | (code >> 18U));
      append(0x80U | ((code >> 12U) & 0x3FU));
    }
    append(0x80U | ((code >> 6U) & 0x3FU));
  }
  append(0x80U | (code & 0x3FU));
}

void appendEscape(unsigned unit, std::string* text) {
  *text += "\\u";
  for (const unsigned shift : {12U, 8U, 4U, 0U})
    *text += "0123456789abcdef"[(unit >> shift) & 0xFU];
}

/// A JSON string with escapes for all characters that are not ASCII.
std::string quotedInAscii(const std::string& text) {
  std::string made = "\"";
  for (std::size_t i = 0; i < text.size();) {
    unsigned code = static_cast<unsigned char>(text[i++]);
    if (code < 0x7F) {
      const std::string quoted = JsonVal(text.substr(i - 1, 1)).dump();
      made.append(quoted, 1, quoted.size() - 2);
      continue;
    }
    if (code >= 0xC0) {
      code &= code < 0xE0 ? 0x1FU : code < 0xF0 ? 0xFU : 0x7U;
      for (; i < text.size() && continues(text[i]); ++i) {
        code = (code << 6U) | (static_cast<unsigned char>(text[i]) & 0x3FU);
      }
    }
    if (code < 0x10000) {
      appendEscape(code, &made);
    } else {
      appendEscape(0xD7C0U + (code >> 10U), &made);
      appendEscape(0xDC00U + (code & 0x3FFU), &made);
    }
  }
  return made + "\"";
}

std::string quotedUnlessBare(const std::string& text) {
  if (!text.empty() && std::all_of(text.begin(), text.end(), isBare)) return text;
  // Half of a surrogate pair cannot be printed.
  return hasHalves(text) ? quotedInAscii(text) : JsonVal(text).dump();
}

/// The text and a place in it.
class StepsReader {
 public:
  StepsReader(const std::string& text, const StepsHost& host) : text_(text), host_(host) {}

  std::vector<Step> read() {
    std::vector<std::vector<Step>> levels(1);
    std::vector<int> times;
    for (;;) {
      if (takes("repeat<")) {
        times.push_back(readTimes());
        if (times.size() > kMostNested) {
          fail("repeats nested at most " + std::to_string(kMostNested) + " deep");
        }
        levels.emplace_back();
        continue;
      }
      levels.back().push_back(readStep());
      while (!times.empty() && takes(")")) {
        Step repeat;
        repeat.times = times.back();
        repeat.steps = std::move(levels.back());
        times.pop_back();
        levels.pop_back();
        levels.back().push_back(std::move(repeat));
      }
      if (takes(",")) continue;
      if (!times.empty()) fail("',' or ')'");
      skip();
      if (place_ < text_.size()) fail("',' or the end");
      return std::move(levels.front());
    }
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    const std::size_t offset = charactersIn(std::string_view(text_).substr(0, place_));
    std::size_t end = place_;
    for (int i = 0; i < 12 && end < text_.size(); ++i) {
      do {
        ++end;
      } while (end < text_.size() && continues(text_[end]));
    }
    const std::string found = text_.substr(place_, end - place_);
    throw StepsError("pipeline " + host_.shown(text_) + ", character " +
                         std::to_string(offset + 1) + ": expected " + expected +
                         (found.empty() ? ", but the text ends" : ", not " + host_.shown(found)),
                     offset);
  }

  /// The place in characters. Places must not decrease from call to call.
  std::size_t character() {
    characters_ += charactersIn(std::string_view(text_).substr(counted_, place_ - counted_));
    counted_ = place_;
    return characters_;
  }

  void skip() {
    while (place_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[place_]) != std::string_view::npos) {
      ++place_;
    }
  }

  bool takes(std::string_view word) {
    skip();
    if (text_.compare(place_, word.size(), word) != 0) return false;
    place_ += word.size();
    return true;
  }

  void need(const char* character) {
    if (!takes(character)) fail(std::string("'") + character + "'");
  }

  char peek() {
    skip();
    return place_ < text_.size() ? text_[place_] : '\0';
  }

  std::string readWord(const char* expected) {
    if (peek() == '"') {
      const std::size_t start = place_;
      if (std::optional<std::string> word = readString()) return *std::move(word);
      place_ = start;
      fail(std::string(expected) + " as a JSON string");
    }
    std::size_t end = place_;
    while (end < text_.size() && isBare(text_[end])) ++end;
    if (end == place_) fail(expected);
    const std::string word = text_.substr(place_, end - place_);
    place_ = end;
    return word;
  }

  /// Reads a JSON string. Nothing if there is none.
  std::optional<std::string> readString() {
    std::string word;
    const char* const end = text_.data() + text_.size();
    for (++place_; place_ < text_.size();) {
      const char* const next = text_.data() + place_;
      if (*next == '"') {
        ++place_;
        return word;
      }
      if (*next == '\\') {
        if (!readEscape(&word)) return std::nullopt;
        continue;
      }
      auto size = static_cast<std::size_t>(std::find_if_not(next, end, isPlain) - next);
      if (size == 0 && static_cast<unsigned char>(*next) >= 0x20) {
        size = mxnet::ext::host::utf8Length(next, end);
        if (size == 0 && host_.accepts_halves && isHalf(text_, place_)) size = 3;
      }
      if (size == 0) return std::nullopt;
      word.append(next, size);
      place_ += size;
    }
    return std::nullopt;
  }

  bool readEscape(std::string* word) {
    constexpr std::string_view kFrom = "\"\\/bfnrt";
    constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
    const std::size_t simple =
        place_ + 1 < text_.size() ? kFrom.find(text_[place_ + 1]) : std::string_view::npos;
    if (simple != std::string_view::npos) {
      *word += kTo[simple];
      place_ += 2;
      return true;
    }
    const std::optional<unsigned> unit = unitAt(place_);
    if (!unit) return false;
    place_ += 6;
    unsigned code = *unit;
    if (code >= 0xD800 && code < 0xDC00) {
      const std::optional<unsigned> low = unitAt(place_);
      if (low && *low >= 0xDC00 && *low < 0xE000) {
        place_ += 6;
        code = 0x10000 + ((code - 0xD800) << 10U) + (*low - 0xDC00);
      }
    }
    if (code >= 0xD800 && code < 0xE000 && !host_.accepts_halves) return false;
    appendUtf8(code, word);
    return true;
  }

  /// The number of an escape such as \u00e9 at a place.
  std::optional<unsigned> unitAt(std::size_t place) const {
    if (text_.size() < place + 6 || text_.compare(place, 2, "\\u") != 0) return std::nullopt;
    unsigned unit = 0;
    for (std::size_t i = place + 2; i < place + 6; ++i) {
      constexpr std::string_view kDigits = "0123456789abcdefABCDEF";
      const std::size_t digit = kDigits.find(text_[i]);
      if (digit == std::string_view::npos) return std::nullopt;
      unit = unit * 16 + static_cast<unsigned>(digit < 16 ? digit : digit - 6);
    }
    return unit;
  }

  int readTimes() {
    const std::size_t start = place_;
    const std::string word = readWord("a number of times");
    const bool digits =
        !word.empty() && word.size() < 8 &&
        std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!digits) {
      place_ = start;
      fail("a number of times");
    }
    const int number = std::stoi(word);
    if (number < 1 || number > kMostTimes) {
      place_ = start;
      fail("a number of times from 1 to " + std::to_string(kMostTimes));
    }
    need(">");
    need("(");
    return number;
  }

  Step readStep() {
    skip();
    Step step;
    step.place = character();
    step.name = readWord("the name of a pass");
    if (!takes("{") || takes("}")) return step;
    std::set<std::string> known;
    for (;;) {
      skip();
      const std::size_t start = place_;
      step.option_places.push_back(character());
      std::string key = readWord("the name of an option");
      if (!known.insert(key).second) {
        place_ = start;
        fail("another option, since " + host_.shown(key) + " is given already");
      }
      need("=");
      std::string value = readValue();
      step.options.emplace_back(std::move(key), std::move(value));
      if (takes("}")) return step;
      // As in MLIR, options may also be separated by space alone.
      takes(",");
    }
  }

  std::string readValue() {
    if (!takes("[")) return readWord("a value");
    std::vector<std::string> items;
    while (!takes("]")) {
      items.push_back(readWord("an item"));
      if (!takes(",") && peek() != ']') fail("',' or ']'");
    }
    return printList(items);
  }

  const std::string& text_;
  const StepsHost& host_;
  std::size_t place_ = 0;
  std::size_t counted_ = 0;  ///< bytes before which `characters_` are
  std::size_t characters_ = 0;
};

/// Whether a text is a list as `readValue` returns it.
bool isList(const std::string& text) {
  if (text.size() < 2 || text.front() != '[') return false;
  try {
    const std::string pass = "p{v=" + text + "}";
    StepsHost host;
    host.accepts_halves = true;
    const std::vector<Step> steps = readSteps(pass, host);
    return steps.size() == 1 && steps[0].options.size() == 1 && steps[0].options[0].second == text;
  } catch (const StepsError&) {
    return false;
  }
}

}  // namespace

std::vector<Step> readSteps(const std::string& text, const StepsHost& host) {
  return StepsReader(text, host).read();
}

std::string printList(const std::vector<std::string>& items) {
  std::string text = "[";
  for (const std::string& item : items)
    text += (text.size() > 1 ? ", " : "") + quotedUnlessBare(item);
  return text + "]";
}

std::string printSteps(const std::vector<Step>& steps) {
  // Steps in progress, and the place in each.
  std::vector<std::pair<const std::vector<Step>*, std::size_t>> pending = {{&steps, 0}};
  std::string text;
  while (!pending.empty()) {
    auto& [list, place] = pending.back();
    if (place == list->size()) {
      pending.pop_back();
      if (!pending.empty()) text += ")";
      continue;
    }
    const Step& step = (*list)[place];
    if (place++ > 0) text += ", ";
    if (step.times > 0) {
      text += "repeat<" + std::to_string(step.times) + ">(";
      pending.emplace_back(&step.steps, 0);
      continue;
    }
    text += quotedUnlessBare(step.name);
    for (std::size_t i = 0; i < step.options.size(); ++i) {
      const auto& [key, value] = step.options[i];
      text += i == 0 ? "{" : ", ";
      text += quotedUnlessBare(key) + "=" + (isList(value) ? value : quotedUnlessBare(value));
    }
    if (!step.options.empty()) text += "}";
  }
  return text;
}

}  // namespace passlib
