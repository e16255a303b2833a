#include "library/calls/call.h"

#include <algorithm>

namespace passlib {

void Forked::endChild() {
  static constexpr char kText[] =
      "passlib: a library forked during a call, and the child returned from it; it ends here\n";
  (void)!::write(STDERR_FILENO, kText, sizeof(kText) - 1);
  ::_exit(1);
}
namespace {

/// A text that the C++ standard library's exceptions have, and the mistake that leads to it.
struct StandardText {
  const char* text;
  bool whole;  ///< nothing follows it
  const char* meaning;
  bool word = false;  ///< also a word of other messages: it stands alone, or after a colon
};

constexpr const char* kNoKey =
    "at() was called with a key that the map does not have, usually an attribute or option that "
    "is absent because it has its default: look with find() first";
constexpr const char* kNoPlace =
    "an element was asked for beyond the end, usually an input, output or subgraph that a node "
    "does not have: compare with size() first";
constexpr const char* kNoNumber =
    "a text is no number, or one out of range, usually an attribute such as \"None\", \"True\" or "
    "\"(1, 1)\", or an empty one: check the text before it is converted";
constexpr const char* kNullText =
    "a std::string was made of a null pointer, such as an absent name";

constexpr StandardText kStandardTexts[] = {
    {"unordered_map::at", true, kNoKey},
    {"_Map_base::at", true, kNoKey},
    {"map::at", true, kNoKey},
    {"unordered_map::at: key not found", true, kNoKey},
    {"map::at:  key not found", true, kNoKey},
    {"vector::_M_range_check", false, kNoPlace},
    {"vector<bool>::_M_range_check", false, kNoPlace},
    {"vector", true, kNoPlace, true},  // this one and two more are libc++'s
    {"deque", true, kNoPlace, true},
    {"basic_string", true, kNoPlace, true},
    {"basic_string::erase", false, kNoPlace},
    {"basic_string::compare", false, kNoPlace},
    {"deque::_M_range_check", false, kNoPlace},
    {"array::at", false, kNoPlace},
    {"basic_string::at", false, kNoPlace},
    {"basic_string::substr", false, kNoPlace},
    {"stoi", true, kNoNumber},
    {"stol", true, kNoNumber},
    {"stoll", true, kNoNumber},
    {"stoul", true, kNoNumber},
    {"stoull", true, kNoNumber},
    {"stof", true, kNoNumber},
    {"stod", true, kNoNumber},
    {"stold", true, kNoNumber},
    {"basic_string: construction from null is not valid", true, kNullText},
    {"basic_string::_M_construct null not valid", true, kNullText},
    {"bad_function_call", true, "an empty std::function was called"},
    {"std::bad_alloc", true,
     "it asked for more memory than there is, often a size computed from a wrong attribute"},
    {"vector::_M_default_append", true, "a std::vector was given an impossible size"},
    {"cannot create std::vector larger than max_size()", true,
     "a std::vector was given an impossible size, often a negative number"},
    {"vector::reserve", true, "a std::vector was given an impossible size"},
};

/// Returns a message without what libc++ says after the name of a function that reads numbers.
std::string withoutReason(const std::string& message) {
  for (const char* reason : {": no conversion", ": out of range"}) {
    const std::string text = reason;
    const std::size_t kept = message.size() - std::min(message.size(), text.size());
    if (message.compare(kept, std::string::npos, text) == 0) return message.substr(0, kept);
  }
  return message;
}

/// Returns what the end of a message means, if it is the standard library's; else null.
const char* meaningOf(const std::string& given) {
  const std::string message = withoutReason(given);
  for (const StandardText& known : kStandardTexts) {
    const std::string text = known.text;
    const std::size_t place = message.rfind(text);
    if (place == std::string::npos) continue;
    const bool begins = place == 0 || message[place - 1] == ' ';
    if (known.word && place != 0 && (place < 2 || message[place - 2] != ':')) continue;
    if (begins && (!known.whole || place + text.size() == message.size())) return known.meaning;
  }
  return nullptr;
}

}  // namespace

std::string describeFailure(const std::string& what, const CallOutcome& outcome,
                            const std::string& refusal) {
  // The refusal may also have been thrown through the library or copied into its messages.
  const auto repeats = [&refusal](const std::string& other) {
    return !refusal.empty() && other.find(refusal) != std::string::npos;
  };
  std::string text = what;
  if (!refusal.empty() && std::none_of(outcome.messages.begin(), outcome.messages.end(), repeats)) {
    text += ": " + refusal;
  }
  if (!outcome.thrown.empty() && !repeats(outcome.thrown)) text += ": " + outcome.thrown;
  const char* meaning = meaningOf(outcome.thrown);
  for (const std::string& message : outcome.messages) {
    text += "\n  " + message;
    if (meaning == nullptr) meaning = meaningOf(message);
  }
  if (meaning != nullptr) text += std::string("\n  That text means: ") + meaning;
  if (outcome.messages.empty() && outcome.thrown.empty() && refusal.empty()) {
    text += " without saying why: it returned MX_FAIL and wrote nothing to MX_ERROR_MSG";
  }
  return text;
}

}  // namespace passlib
