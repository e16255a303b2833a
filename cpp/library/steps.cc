#include "library/steps.h"

#include <algorithm>

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

std::string quotedUnlessBare(const std::string& text) {
  const bool bare = !text.empty() && std::all_of(text.begin(), text.end(), isBare);
  return bare ? text : JsonVal(text).dump();
}

/// The text and a place in it.
class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}

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
    const std::size_t offset = charactersBefore(text_, place_);
    std::size_t end = place_;
    for (int i = 0; i < 12 && end < text_.size(); ++i) {
      do {
        ++end;
      } while (end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xC0U) == 0x80);
    }
    const std::string found = text_.substr(place_, end - place_);
    throw StepsError("pipeline '" + text_ + "', character " + std::to_string(offset + 1) +
                         ": expected " + expected +
                         (found.empty() ? ", but the text ends" : ", not '" + found + "'"),
                     offset);
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
      try {
        auto end = static_cast<unsigned int>(place_);
        const JsonVal word = JsonVal::parse(text_, &end);
        place_ = end;
        return word.str;
      } catch (const mxnet::ext::JsonError&) {
        place_ = start;
        fail(std::string(expected) + " as a JSON string");
      }
    }
    std::size_t end = place_;
    while (end < text_.size() && isBare(text_[end])) ++end;
    if (end == place_) fail(expected);
    const std::string word = text_.substr(place_, end - place_);
    place_ = end;
    return word;
  }

  int readTimes() {
    skip();
    const std::size_t start = place_;
    const std::string word = readWord("a number of times");
    const bool digits =
        word.size() < 8 &&
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
    step.place = charactersBefore(text_, place_);
    step.name = readWord("the name of a pass");
    if (!takes("{") || takes("}")) return step;
    for (;;) {
      skip();
      const std::size_t start = place_;
      std::string key = readWord("the name of an option");
      for (const auto& [known, value] : step.options) {
        if (known != key) continue;
        place_ = start;
        fail("another option, since '" + key + "' is given already");
      }
      step.option_places.push_back(charactersBefore(text_, start));
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
    std::string list;
    while (!takes("]")) {
      if (!list.empty()) list += ", ";
      list += quotedUnlessBare(readWord("an item"));
      if (!takes(",") && peek() != ']') fail("',' or ']'");
    }
    return "[" + list + "]";
  }

  const std::string& text_;
  std::size_t place_ = 0;
};

/// Whether a text is a list as `readValue` returns it.
bool isList(const std::string& text) {
  if (text.size() < 2 || text.front() != '[') return false;
  try {
    const std::string pass = "p{v=" + text + "}";
    const std::vector<Step> steps = readSteps(pass);
    return steps.size() == 1 && steps[0].options.size() == 1 && steps[0].options[0].second == text;
  } catch (const StepsError&) {
    return false;
  }
}

}  // namespace

std::size_t charactersBefore(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, byte);
  return static_cast<std::size_t>(std::count_if(before.begin(), before.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80;
  }));
}

std::vector<Step> readSteps(const std::string& text) { return Reader(text).read(); }

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
