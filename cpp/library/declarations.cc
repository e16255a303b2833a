#include "library/declarations.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <stdexcept>

#include "errors.h"
#include "header.h"

namespace passlib {

namespace {

using mxnet::ext::JsonType;
using mxnet::ext::JsonVal;

constexpr int kVersion = 1;
constexpr int kMostLevels = 8;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

/// A member of a JSON object. Throws FormatError unless it is there and of the type.
const JsonVal& member(const JsonVal& object, const char* name, JsonType type,
                      const std::string& place) {
  if (object.type != mxnet::ext::MAP) throw FormatError(place + " must be an object");
  const auto found = object.map.find(JsonVal(name));
  if (found == object.map.end()) throw FormatError(place + " has no '" + name + "'");
  if (type != mxnet::ext::ERR && found->second.type != type) {
    throw FormatError(place + ": '" + name + "' is of another type than it must be");
  }
  return found->second;
}

/// The same where it may be absent; null then.
const JsonVal* optionalMember(const JsonVal& object, const char* name, JsonType type,
                              const std::string& place) {
  return object.map.count(JsonVal(name)) == 0 ? nullptr : &member(object, name, type, place);
}

std::vector<std::string> namesIn(const JsonVal& list, const std::string& place) {
  std::vector<std::string> names;
  for (const JsonVal& item : list.list) {
    if (item.type != mxnet::ext::STR || item.str.empty()) {
      throw FormatError(place + " has something that is no name");
    }
    names.push_back(item.str);
  }
  return names;
}

bool isTrue(const JsonVal& value) { return value.num != 0; }

/// A value as pipelines spell it.
std::string textOf(const JsonVal& value) {
  if (value.type == mxnet::ext::BOOL) return isTrue(value) ? "true" : "false";
  if (value.type == mxnet::ext::STR) return value.str;
  if (value.type == mxnet::ext::NIL) return "None";
  if (value.type != mxnet::ext::LIST) return value.dump();
  std::string text = "[";
  for (const JsonVal& item : value.list) text += (text.size() > 1 ? ", " : "") + textOf(item);
  return text + "]";
}

OptionDeclaration readOption(const JsonVal& object, const std::string& place) {
  OptionDeclaration option;
  option.name = member(object, "name", mxnet::ext::STR, place).str;
  if (option.name.empty()) throw FormatError(place + " has no name");
  option.description = member(object, "description", mxnet::ext::STR, place).str;
  option.kind = member(object, "kind", mxnet::ext::STR, place).str;
  static constexpr const char* kKinds[] = {"boolean", "integer", "real", "text"};
  if (std::find(std::begin(kKinds), std::end(kKinds), option.kind) == std::end(kKinds)) {
    throw FormatError(place + " is of the unknown kind '" + option.kind + "'");
  }
  option.is_list = isTrue(member(object, "list", mxnet::ext::BOOL, place));
  option.default_text = textOf(member(object, "default", mxnet::ext::ERR, place));
  for (const JsonVal& choice : member(object, "choices", mxnet::ext::LIST, place).list) {
    option.choices.push_back(textOf(choice));
  }
  const JsonVal& range = member(object, "range", mxnet::ext::LIST, place);
  if (!range.list.empty()) {
    if (range.list.size() != 2) throw FormatError(place + " has a range that is none");
    option.low = range.list[0].toDouble();
    option.high = range.list[1].toDouble();
    option.low_text = range.list[0].dump();
    option.high_text = range.list[1].dump();
    if (*option.low > *option.high) throw FormatError(place + " has a range that is none");
  }
  return option;
}

void readJoins(const JsonVal& object, const std::string& place, Declaration* made) {
  if (const JsonVal* names = optionalMember(object, "pipelines", mxnet::ext::LIST, place)) {
    made->pipelines = namesIn(*names, place);
  }
  if (const JsonVal* after = optionalMember(object, "after", mxnet::ext::STR, place)) {
    made->after = after->str;
  }
  if (const JsonVal* cost = optionalMember(object, "cost", mxnet::ext::STR, place)) {
    made->cost = cost->str;
  }
  const auto options = [&](const char* name) {
    std::vector<std::pair<std::string, std::string>> texts;
    if (const JsonVal* given = optionalMember(object, name, mxnet::ext::MAP, place)) {
      for (const auto& [key, value] : given->map) texts.emplace_back(key.str, textOf(value));
    }
    return texts;
  };
  made->joined = options("options");
  made->rounding = options("rounding");
}

Declaration readDeclaration(const JsonVal& object, const std::string& place) {
  Declaration made;
  made.declared = true;
  made.name = member(object, "name", mxnet::ext::STR, place).str;
  made.description = member(object, "description", mxnet::ext::STR, place).str;
  made.any_options = isTrue(member(object, "any_options", mxnet::ext::BOOL, place));
  made.needs_weights = isTrue(member(object, "needs_weights", mxnet::ext::BOOL, place));
  made.needs_shapes = isTrue(member(object, "needs_shapes", mxnet::ext::BOOL, place));
  const auto flag = [&](const char* name) {
    const JsonVal* const found = optionalMember(object, name, mxnet::ext::BOOL, place);
    return found != nullptr && isTrue(*found);
  };
  made.weights_on_demand = flag("weights_on_demand");
  made.exact = flag("exact");
  made.enters_functions = flag("enters_functions");
  made.dialects = namesIn(member(object, "dialects", mxnet::ext::LIST, place), place);
  std::size_t number = 0;
  for (const JsonVal& option : member(object, "options", mxnet::ext::LIST, place).list) {
    made.options.push_back(
        readOption(option, "pass '" + made.name + "', option " + std::to_string(number++)));
  }
  if (const JsonVal* names = optionalMember(object, "triggers", mxnet::ext::LIST, place)) {
    made.triggers = namesIn(*names, place);
  }
  if (const JsonVal* joins = optionalMember(object, "joins", mxnet::ext::MAP, place)) {
    readJoins(*joins, place + ", joins", &made);
  }
  return made;
}

/// The items of a list: `[1, 2]`, `(1, 2)` or `1,2`; items in double quotes are JSON strings.
std::vector<std::string> itemsOf(const std::string& given) {
  std::string text = trimmed(given);
  if (text.size() >= 2 && ((text.front() == '[' && text.back() == ']') ||
                           (text.front() == '(' && text.back() == ')'))) {
    text = text.substr(1, text.size() - 2);
  }
  std::vector<std::string> items;
  std::size_t place = 0;
  while (place < text.size()) {
    place = std::min(text.find_first_not_of(" \t\r\n", place), text.size());
    if (place < text.size() && text[place] == '"') {
      auto end = static_cast<unsigned int>(place);
      try {
        items.push_back(JsonVal::parse(text, &end).str);
      } catch (const mxnet::ext::JsonError&) {
        throw std::invalid_argument(given);
      }
      place = std::min(text.find_first_not_of(" \t\r\n", end), text.size());
      if (place < text.size() && text[place] != ',') throw std::invalid_argument(given);
    } else {
      const std::size_t end = std::min(text.find(',', place), text.size());
      const std::string item = trimmed(text.substr(place, end - place));
      if (!item.empty()) items.push_back(item);
      place = end;
    }
    ++place;  // the comma
  }
  return items;
}

}  // namespace

std::string OptionDeclaration::typeText() const {
  std::string text;
  if (!choices.empty()) {
    text = "one of ";
    for (std::size_t i = 0; i < choices.size(); ++i) text += (i > 0 ? ", " : "") + choices[i];
  } else {
    text = kind == "boolean"   ? "true or false"
           : kind == "integer" ? "a whole number"
           : kind == "real"    ? "a number"
                               : "text";
    if (low && high) {
      text += " from " + low_text + " to " + high_text;
    } else if (low) {
      text += " of at least " + low_text;
    }
  }
  return is_list ? "a list, each item " + text : text;
}

bool Declaration::isFor(const std::string& dialect) const {
  return dialects.empty() || std::find(dialects.begin(), dialects.end(), dialect) != dialects.end();
}

std::string OptionDeclaration::checked(const std::string& text) const {
  const auto fail = [&]() {
    throw std::invalid_argument("option '" + name + "' takes " + typeText() + ", not '" + text +
                                "'");
  };
  // As a library gets it: Python's spelling of what is no list, and JSON in lists.
  const auto item = [&](const std::string& given) -> JsonVal {
    JsonVal value;
    if (kind == "boolean") {
      const std::string word = lower(given);
      const bool yes = word == "true" || word == "1" || word == "yes" || word == "on";
      if (!yes && word != "false" && word != "0" && word != "no" && word != "off") fail();
      value = JsonVal::boolean(yes);
    } else if (kind == "text") {
      value = JsonVal(given);
    } else {
      const std::string number = trimmed(given);
      char* end = nullptr;
      const double real = std::strtod(number.c_str(), &end);
      if (number.empty() || number.size() > 100 || *end != '\0' || std::isnan(real)) fail();
      if (number.find_first_of("xX") != std::string::npos) fail();
      if (kind == "integer") {
        const std::size_t sign = number[0] == '+' || number[0] == '-' ? 1 : 0;
        if (number.size() > 30 + sign || number.size() == sign ||
            number.find_first_not_of("0123456789", sign) != std::string::npos) {
          fail();
        }
        const std::size_t first = std::min(number.find_first_not_of('0', sign), number.size() - 1);
        const std::string digits = number.substr(first);
        const bool negative = number[0] == '-' && digits != "0";
        value = JsonVal(mxnet::ext::NUM, 0, (negative ? "-" : "") + digits);
      } else {
        value = std::isinf(real) ? JsonVal(real > 0 ? "inf" : "-inf") : JsonVal::real(real);
      }
      if ((low && real < *low) || (high && real > *high)) fail();
    }
    if (!choices.empty() &&
        std::find(choices.begin(), choices.end(), textOf(value)) == choices.end()) {
      fail();
    }
    return value;
  };
  if (!is_list) {
    const JsonVal value = item(text);
    if (value.type == mxnet::ext::BOOL) return isTrue(value) ? "True" : "False";
    return value.type == mxnet::ext::STR ? value.str : value.str.empty() ? value.dump() : value.str;
  }
  std::vector<std::string> items;
  try {
    items = itemsOf(text);
  } catch (const std::invalid_argument&) {
    fail();
  }
  std::string list = "[";
  for (const std::string& each : items) {
    const JsonVal value = item(each);
    const bool number = value.type == mxnet::ext::NUM && !value.str.empty();
    list += (list.size() > 1 ? ", " : "") + (number ? value.str : value.dump());
  }
  return list + "]";
}

std::vector<std::pair<std::string, std::string>> Declaration::checked(
    const std::vector<std::pair<std::string, std::string>>& given, std::size_t* place) const {
  std::vector<std::pair<std::string, std::string>> made;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto& [key, text] = given[i];
    *place = i;
    const auto named = [&key = key](const OptionDeclaration& each) { return each.name == key; };
    const auto found = std::find_if(options.begin(), options.end(), named);
    if (found != options.end()) {
      try {
        made.emplace_back(key, found->checked(text));
      } catch (const std::invalid_argument& error) {
        throw std::invalid_argument("pass '" + name + "': " + error.what());
      }
      continue;
    }
    if (declared && !any_options) {
      std::string have = "it has none";
      for (std::size_t k = 0; k < options.size(); ++k) {
        have = (k == 0 ? "it has: " : have + ", ") + options[k].name;
      }
      throw std::invalid_argument("pass '" + name + "' has no option '" + key + "' (" + have + ")");
    }
    made.emplace_back(key, text);
  }
  *place = given.size();
  return made;
}

std::vector<std::string> listedIn(const std::vector<std::pair<std::string, std::string>>& options,
                                  const std::string& name) {
  std::vector<std::string> items;
  for (const auto& [key, text] : options) {
    if (key != name) continue;
    for (const JsonVal& item : JsonVal::parse(text).list) items.push_back(item.str);
  }
  return items;
}

std::vector<Declaration> readDeclarations(const std::string& text) {
  std::vector<Declaration> made;
  if (text.empty()) return made;
  JsonVal value;
  try {
    mxnet::ext::JsonOptions reading;
    reading.max_depth = kMostLevels;
    mxnet::ext::JsonReader reader(text.data(), text.size(), reading);
    value = reader.readValue();
    reader.finish();
  } catch (const mxnet::ext::JsonError& error) {
    throw FormatError(error.what());
  }
  if (member(value, "version", mxnet::ext::NUM, "the text").num != kVersion) {
    throw FormatError("it is of another version than " + std::to_string(kVersion) +
                      "; compile the library with the lib_api.h of this passlib");
  }
  std::size_t number = 0;
  for (const JsonVal& item : member(value, "passes", mxnet::ext::LIST, "the text").list) {
    made.push_back(readDeclaration(item, "passes[" + std::to_string(number++) + "]"));
  }
  return made;
}

}  // namespace passlib
