#include "library/declarations.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <stdexcept>

#include "errors.h"
#include "graph/text_table.h"
#include "header.h"
#include "library/library.h"
#include "onnx/text/strings.h"

namespace passlib {

namespace {

using mxnet::ext::JsonType;
using mxnet::ext::JsonVal;
using mxnet::ext::host::memberOf;
using mxnet::ext::host::trimmed;

constexpr int kVersion = 1;
constexpr int kMostLevels = 8;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

constexpr std::size_t kMostShown = 80;

/// A value in messages.
std::string shortText(const JsonVal& value) { return onnx::shortened(value.dump(), kMostShown); }

/// A name of a library in messages.
std::string named(const std::string& name) {
  return onnx::shown(onnx::shortened(name, kMostShown));
}

/// A member of an object.
struct Member {
  const char* name;
  JsonType type;  ///< ERR for any
  bool optional = false;
};

const char* nameOf(JsonType type) {
  return type == mxnet::ext::STR    ? "a string"
         : type == mxnet::ext::NUM  ? "a number"
         : type == mxnet::ext::BOOL ? "true or false"
         : type == mxnet::ext::LIST ? "an array"
                                    : "an object";
}

/// Throws FormatError unless a value is an object with these members and no others.
void requireMembers(const JsonVal& object, const std::vector<Member>& members,
                    const std::string& place) {
  if (object.type != mxnet::ext::MAP) {
    throw FormatError(place + " must be an object, not " + shortText(object));
  }
  for (const Member& member : members) {
    const JsonVal* const found = memberOf(object, member.name);
    if (found == nullptr) {
      if (!member.optional) throw FormatError(place + " has no '" + member.name + "'");
    } else if (member.type != mxnet::ext::ERR && found->type != member.type) {
      throw FormatError(place + ": '" + member.name + "' must be " + nameOf(member.type) +
                        ", not " + shortText(*found));
    }
  }
  for (const auto& [key, value] : object.map) {
    const auto is_it = [&key = key](const Member& each) { return key.str == each.name; };
    if (std::none_of(members.begin(), members.end(), is_it)) {
      throw FormatError(place + " has an unknown member " + named(key.str));
    }
  }
}

/// A member of an object; one that is absent is of the type ERR.
const JsonVal& in(const JsonVal& object, const char* name) {
  static const JsonVal absent;
  const JsonVal* const found = memberOf(object, name);
  return found == nullptr ? absent : *found;
}

/// The names in an array.
std::vector<std::string> namesIn(const JsonVal& list, const char* kind, const std::string& place) {
  std::vector<std::string> names;
  for (const JsonVal& item : list.list) {
    if (item.type != mxnet::ext::STR || item.str.empty()) {
      throw FormatError(place + ": " + kind + " must be a name, not " + shortText(item));
    }
    names.push_back(item.str);
  }
  return names;
}

bool isTrue(const JsonVal& value) { return value.type == mxnet::ext::BOOL && value.num != 0; }

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

/// Whether the text of a number is a whole one, of at most 30 digits.
bool isInteger(const std::string& text) {
  constexpr std::size_t kMost = 30;
  const std::size_t sign = !text.empty() && (text[0] == '+' || text[0] == '-') ? 1 : 0;
  return text.size() > sign && text.size() <= kMost + sign &&
         text.find_first_not_of("0123456789", sign) == std::string::npos;
}

/// Whether a number, as text, is less than another one. Whole ones may be beyond what a double has.
bool isLess(const std::string& left, const std::string& right) {
  if (!isInteger(left) || !isInteger(right)) {
    double one = 0;
    double other = 0;
    mxnet::ext::host::readReal(left, &one);
    mxnet::ext::host::readReal(right, &other);
    return one < other;
  }
  const auto digits = [](const std::string& text) {
    const std::size_t first = text.find_first_of("123456789");
    return first == std::string::npos ? std::string() : text.substr(first);
  };
  const std::string one = digits(left);
  const std::string other = digits(right);
  const bool negative = left[0] == '-' && !one.empty();
  if (negative != (right[0] == '-' && !other.empty())) return negative;
  const auto smaller = [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  };
  return negative ? smaller(other, one) : smaller(one, other);
}

/// The text of a value of an option's kind. Whole numbers are real ones as well.
std::string valueOf(const JsonVal& value, const std::string& kind, const std::string& place) {
  const bool number = value.type == mxnet::ext::NUM;
  const bool fits = kind == "boolean"   ? value.type == mxnet::ext::BOOL
                    : kind == "text"    ? value.type == mxnet::ext::STR
                    : kind == "integer" ? number && isInteger(value.dump())
                                        : number;
  if (fits) return textOf(value);
  throw FormatError(place + " is of kind " + kind + ", but has the value " + shortText(value));
}

/// A value of an option, as `checked` takes it.
std::string givenText(const JsonVal& value, const OptionDeclaration& option,
                      const std::string& place) {
  if (!option.is_list) return valueOf(value, option.kind, place);
  if (value.type != mxnet::ext::LIST) {
    throw FormatError(place + " is a list, but has the value " + shortText(value));
  }
  std::string text = "[";
  for (const JsonVal& item : value.list) {
    const std::string made = valueOf(item, option.kind, place);
    text += (text.size() > 1 ? ", " : "") + (option.kind == "text" ? item.dump() : made);
  }
  return text + "]";
}

OptionDeclaration readOption(const JsonVal& object, std::string place) {
  requireMembers(object,
                 {{"name", mxnet::ext::STR},
                  {"description", mxnet::ext::STR},
                  {"kind", mxnet::ext::STR},
                  {"list", mxnet::ext::BOOL},
                  {"default", mxnet::ext::ERR},
                  {"choices", mxnet::ext::LIST},
                  {"range", mxnet::ext::LIST}},
                 place);
  OptionDeclaration option;
  option.name = in(object, "name").str;
  if (option.name.empty()) throw FormatError(place + " has no name");
  place += " (" + named(option.name) + ")";
  option.description = in(object, "description").str;
  option.kind = in(object, "kind").str;
  static constexpr const char* kKinds[] = {"boolean", "integer", "real", "text"};
  if (std::find(std::begin(kKinds), std::end(kKinds), option.kind) == std::end(kKinds)) {
    throw FormatError(place + " is of the unknown kind " + named(option.kind));
  }
  for (const JsonVal& choice : in(object, "choices").list) {
    option.choices.push_back(valueOf(choice, option.kind, place));
  }
  const JsonVal& range = in(object, "range");
  if (!range.list.empty()) {
    const bool numbers = option.kind == "integer" || option.kind == "real";
    const bool two = numbers && range.list.size() == 2;
    for (const JsonVal& bound : range.list) {
      if (two) valueOf(bound, option.kind, place);
    }
    option.low = range.list[0].dump();
    option.high = range.list.back().dump();
    if (!two || isLess(option.high, option.low)) {
      throw FormatError(place + " has the range " + shortText(range) + ", which is none");
    }
  }
  option.is_list = isTrue(in(object, "list"));
  const JsonVal& preset = in(object, "default");
  if (option.is_list && preset.type != mxnet::ext::LIST) {
    throw FormatError(place + " is a list, but its default is " + shortText(preset));
  }
  try {
    option.checked(givenText(preset, option, place));
  } catch (const std::invalid_argument& error) {
    throw FormatError(place + ": its default is not accepted: " + error.what());
  }
  option.default_text = textOf(preset);
  return option;
}

void readJoins(const JsonVal& object, const std::string& place, Declaration* made) {
  requireMembers(object,
                 {{"pipelines", mxnet::ext::LIST},
                  {"after", mxnet::ext::STR},
                  {"options", mxnet::ext::MAP},
                  {"rounding", mxnet::ext::MAP},
                  {"cost", mxnet::ext::STR}},
                 place);
  made->pipelines = namesIn(in(object, "pipelines"), "a pipeline", place);
  made->after = in(object, "after").str;
  made->cost = in(object, "cost").str;
  if (made->cost != "nodes" && made->cost != "weights" && made->cost != "runs") {
    throw FormatError(place + ": cost is one of nodes, weights, runs, not " + named(made->cost));
  }
  const auto options = [&](const char* name) {
    std::vector<std::pair<std::string, std::string>> texts;
    for (const auto& [key, value] : in(object, name).map) {
      const auto is_it = [&key = key](const OptionDeclaration& each) {
        return each.name == key.str;
      };
      const auto found = std::find_if(made->options.begin(), made->options.end(), is_it);
      const bool is_declared = found != made->options.end();
      const std::string option = place + ", option " + named(key.str);
      texts.emplace_back(key.str, is_declared ? givenText(value, *found, option) : textOf(value));
    }
    std::size_t at = 0;
    try {
      made->checked(texts, &at);
    } catch (const std::invalid_argument& error) {
      throw FormatError(place + ": " + error.what());
    }
    return texts;
  };
  made->joined = options("options");
  made->rounding = options("rounding");
}

Declaration readDeclaration(const JsonVal& object, const std::string& place) {
  requireMembers(object,
                 {{"name", mxnet::ext::STR},
                  {"description", mxnet::ext::STR},
                  {"dialects", mxnet::ext::LIST},
                  {"options", mxnet::ext::LIST},
                  {"any_options", mxnet::ext::BOOL},
                  {"needs_weights", mxnet::ext::BOOL},
                  {"needs_shapes", mxnet::ext::BOOL},
                  {"weights_on_demand", mxnet::ext::BOOL, true},
                  {"exact", mxnet::ext::BOOL, true},
                  {"enters_functions", mxnet::ext::BOOL, true},
                  {"triggers", mxnet::ext::LIST, true},
                  {"joins", mxnet::ext::MAP, true}},
                 place);
  Declaration made;
  made.declared = true;
  made.name = in(object, "name").str;
  made.description = in(object, "description").str;
  made.any_options = isTrue(in(object, "any_options"));
  made.needs_weights = isTrue(in(object, "needs_weights"));
  made.needs_shapes = isTrue(in(object, "needs_shapes"));
  made.weights_on_demand = isTrue(in(object, "weights_on_demand"));
  made.exact = isTrue(in(object, "exact"));
  made.enters_functions = isTrue(in(object, "enters_functions"));
  const std::string pass = "pass " + named(made.name);
  made.dialects = namesIn(in(object, "dialects"), "a dialect", pass);
  made.triggers = namesIn(in(object, "triggers"), "a trigger", pass);
  TextSet names;
  for (const JsonVal& item : in(object, "options").list) {
    const std::string number = std::to_string(made.options.size());
    made.options.push_back(readOption(item, pass + ", option " + number));
    const std::string& name = made.options.back().name;
    if (names.insert(name).second) continue;
    throw FormatError(pass + " declares the option " + named(name) + " twice");
  }
  const JsonVal& joins = in(object, "joins");
  if (!joins.map.empty()) readJoins(joins, pass + ", joins", &made);
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
    for (std::size_t i = 0; i < choices.size(); ++i) {
      text += (i > 0 ? ", " : "") + onnx::printable(choices[i]);
    }
  } else {
    text = kind == "boolean"   ? "true or false"
           : kind == "integer" ? "a whole number"
           : kind == "real"    ? "a number"
                               : "text";
    if (!low.empty() && !high.empty()) {
      text += " from " + low + " to " + high;
    } else if (!low.empty()) {
      text += " of at least " + low;
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
      double real = 0;
      if (number.size() > 100 || !mxnet::ext::host::readReal(number, &real)) fail();
      if (std::isnan(real)) fail();
      if (number.find_first_of("xX") != std::string::npos) fail();
      if (kind == "integer") {
        if (!isInteger(number)) fail();
        const std::size_t sign = number[0] == '+' || number[0] == '-' ? 1 : 0;
        const std::size_t first = std::min(number.find_first_not_of('0', sign), number.size() - 1);
        const std::string digits = number.substr(first);
        const bool negative = number[0] == '-' && digits != "0";
        value = JsonVal(mxnet::ext::NUM, 0, (negative ? "-" : "") + digits);
      } else {
        value = std::isinf(real) ? JsonVal(real > 0 ? "inf" : "-inf") : JsonVal::real(real);
      }
      if (!low.empty() && isLess(number, low)) fail();
      if (!high.empty() && isLess(high, number)) fail();
    }
    const auto is_it = [&](const std::string& choice) {
      if (kind == "text") return choice == value.str;
      if (kind == "boolean") return choice == textOf(value);
      const std::string number = trimmed(given);  // which has more than one text
      return !isLess(number, choice) && !isLess(choice, number);
    };
    if (!choices.empty() && std::none_of(choices.begin(), choices.end(), is_it)) fail();
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

std::vector<Declaration> readDeclarations(const JsonVal& value) {
  requireMembers(value, {{"version", mxnet::ext::ERR}, {"passes", mxnet::ext::LIST}}, "the text");
  const JsonVal& version = in(value, "version");
  if (version.type != mxnet::ext::NUM || version.dump() != std::to_string(kVersion)) {
    throw FormatError("it is of version " + shortText(version) + ", and passlib reads version " +
                      std::to_string(kVersion) +
                      "; compile the library with the lib_api.h of this passlib");
  }
  std::vector<Declaration> made;
  TextSet names;
  for (const JsonVal& item : in(value, "passes").list) {
    made.push_back(readDeclaration(item, "passes[" + std::to_string(made.size()) + "]"));
    if (names.insert(made.back().name).second) continue;
    throw FormatError("the pass " + named(made.back().name) + " is declared twice");
  }
  return made;
}

std::vector<Declaration> declarationsOf(const Library& library) {
  const std::string& text = library.declarations();
  if (text.empty()) return {};
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
  std::vector<Declaration> made = readDeclarations(value);
  TextSet passes;
  for (const Library::Pass& pass : library.passes()) passes.insert(pass.name);
  for (const Declaration& each : made) {
    if (passes.count(each.name) != 0) continue;
    throw FormatError(named(each.name) + " is declared, but no pass has that name");
  }
  return made;
}

}  // namespace passlib
