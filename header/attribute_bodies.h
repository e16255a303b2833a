// ---- attributes as values ----------------------------------------------------------------------

namespace detail {

/// A text without the white space around it.
PASSLIB_ON_DEMAND std::string trimmed(const std::string& text) {
  const char* const space = " \t\r\n";
  const std::size_t first = text.find_first_not_of(space);
  if (first == std::string::npos) return std::string();
  return text.substr(first, text.find_last_not_of(space) - first + 1);
}

PASSLIB_ON_DEMAND bool readBoolean(const std::string& given, bool* value) {
  const std::string text = trimmed(given);
  *value = text == "True" || text == "true" || text == "1";
  return *value || text == "False" || text == "false" || text == "0";
}

/// Reads a whole number, also with a sign in front, and with the L behind that Python 2 wrote.
PASSLIB_ON_DEMAND bool readInteger(const std::string& given, int64_t* value) {
  std::string text = trimmed(given);
  if (text.size() > 1 && text[text.size() - 1] == 'L') text.erase(text.size() - 1);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.erase(0, 1);
  return parseInteger(text.data(), text.size(), value);
}

PASSLIB_ON_DEMAND bool readReal(const std::string& given, double* value) {
  const std::string text = trimmed(given);
  const bool negative = !text.empty() && text[0] == '-';
  const std::string size = text.substr(!text.empty() && (negative || text[0] == '+') ? 1 : 0);
  if (size == "inf" || size == "Infinity") {
    *value = std::numeric_limits<double>::infinity() * (negative ? -1 : 1);
    return true;
  }
  if (size == "nan" || size == "NaN") {
    *value = std::numeric_limits<double>::quiet_NaN();
    return true;
  }
  if (size.empty() || size.find_first_not_of("0123456789.eE+-") != std::string::npos) return false;
  return scanDouble(text, value);
}

/// Reads a list: "(1, 2)", "[1, 2]" or "1, 2". Items in quotes, which JSON and Python put around
/// texts, lose these. False for brackets or quotes that do not match.
PASSLIB_ON_DEMAND bool readList(const std::string& given, std::vector<std::string>* items) {
  std::string text = trimmed(given);
  const char first = text.empty() ? '\0' : text[0];
  if (first == '[' || first == '(') {
    const char last = first == '[' ? ']' : ')';
    if (text.size() < 2 || text[text.size() - 1] != last) return false;
    text = trimmed(text.substr(1, text.size() - 2));
  }
  for (std::size_t pos = 0; pos < text.size();) {
    pos = text.find_first_not_of(" \t\r\n", pos);
    if (pos == std::string::npos) return true;  // after the comma of Python's "(1,)"
    std::size_t end = pos;
    if (text[pos] == '"' || text[pos] == '\'') {
      for (++end; end < text.size() && text[end] != text[pos]; ++end) end += text[end] == '\\';
      if (end >= text.size()) return false;
      std::string inner = text.substr(pos + 1, end - pos - 1);
      if (text[pos] == '"') {
        inner = JsonVal::parse(text.substr(pos, end - pos + 1)).str;
      } else {
        for (std::size_t at = inner.find('\\'); at != std::string::npos;
             at = inner.find('\\', at + 1)) {
          inner.erase(at, 1);
        }
      }
      items->push_back(inner);
      end = text.find_first_not_of(" \t\r\n", end + 1);
      if (end == std::string::npos) return true;
      if (text[end] != ',') return false;
    } else {
      end = (std::min)(text.find(',', pos), text.size());
      items->push_back(trimmed(text.substr(pos, end - pos)));
      if (items->back().empty()) return false;
    }
    pos = end + 1;
  }
  return true;
}

/// Whether a node has an attribute other than "None".
PASSLIB_ON_DEMAND bool hasAttr(const Node* node, const char* key) {
  std::string text;
  return node != nullptr && node->attrs._get(key, &text) && text != "None";
}

PASSLIB_ON_DEMAND [[noreturn]] void failAttr(const Node* node, const char* key,
                                             const std::string& problem) {
  throw AttributeError("node " + detail::quoted(node->name) + " (" + node->op + "): attribute " +
                       detail::quoted(key) + " " + problem);
}

PASSLIB_ON_DEMAND std::string needAttr(const Node* node, const char* key) {
  std::string text;
  if (node == nullptr) {
    throw AttributeError("there is no node to have the attribute " + detail::quoted(key));
  }
  if (!node->attrs._get(key, &text) || text == "None") failAttr(node, key, "is missing");
  return text;
}

PASSLIB_ON_DEMAND [[noreturn]] void failAttrType(const Node* node, const char* key,
                                                 const char* wanted) {
  failAttr(node, key, "is " + detail::quoted(node->attrs.at(key)) + ", not " + wanted);
}

}  // namespace detail

PASSLIB_DEMANDED int64_t intAttr(const Node* node, const char* key) {
  int64_t value = 0;
  if (!detail::readInteger(detail::needAttr(node, key), &value)) {
    detail::failAttrType(node, key, "a whole number of 64 bits");
  }
  return value;
}

PASSLIB_DEMANDED int64_t intAttr(const Node* node, const char* key, int64_t preset) {
  return detail::hasAttr(node, key) ? intAttr(node, key) : preset;
}

PASSLIB_DEMANDED std::vector<int64_t> intsAttr(const Node* node, const char* key) {
  std::vector<std::string> items;
  bool valid = false;
  try {
    valid = detail::readList(detail::needAttr(node, key), &items);
  } catch (const JsonError&) {
  }
  std::vector<int64_t> values(items.size());
  for (std::size_t pos = 0; valid && pos < items.size(); ++pos) {
    valid = detail::readInteger(items[pos], &values[pos]);
  }
  if (!valid) detail::failAttrType(node, key, "a list of whole numbers of 64 bits");
  return values;
}

PASSLIB_DEMANDED std::vector<int64_t> intsAttr(const Node* node, const char* key,
                                               const std::vector<int64_t>& preset) {
  return detail::hasAttr(node, key) ? intsAttr(node, key) : preset;
}

PASSLIB_DEMANDED double realAttr(const Node* node, const char* key) {
  double value = 0;
  if (!detail::readReal(detail::needAttr(node, key), &value)) {
    detail::failAttrType(node, key, "a number");
  }
  return value;
}

PASSLIB_DEMANDED double realAttr(const Node* node, const char* key, double preset) {
  return detail::hasAttr(node, key) ? realAttr(node, key) : preset;
}

PASSLIB_DEMANDED bool boolAttr(const Node* node, const char* key) {
  bool value = false;
  if (!detail::readBoolean(detail::needAttr(node, key), &value)) {
    detail::failAttrType(node, key, "True or False");
  }
  return value;
}

PASSLIB_DEMANDED bool boolAttr(const Node* node, const char* key, bool preset) {
  return detail::hasAttr(node, key) ? boolAttr(node, key) : preset;
}

PASSLIB_DEMANDED std::string textAttr(const Node* node, const char* key) {
  std::string text;
  if (node == nullptr || !node->attrs._get(key, &text)) {
    detail::failAttr(node, key, "is missing");
  }
  return text;
}

PASSLIB_DEMANDED std::string textAttr(const Node* node, const char* key,
                                      const std::string& preset) {
  std::string text;
  return node != nullptr && node->attrs._get(key, &text) ? text : preset;
}
