// ---- attributes as values ----------------------------------------------------------------------

namespace detail {

/// Entry `index` of a list in text form, where a nested list is one entry.
inline std::string listEntry(const std::string& text, unsigned index, const char* what) {
  const std::size_t size = text.size();
  if (size >= 2 && text[0] == '[' && text[size - 1] == ']') {
    std::size_t start = 1;
    int depth = 0;
    for (std::size_t pos = 1; pos < size; ++pos) {
      if (depth == 0 && (text[pos] == ',' || pos == size - 1)) {
        if (index == 0 && pos > start) return text.substr(start, pos - start);
        if (index == 0) break;
        --index;
        start = pos + 1;
      }
      if (text[pos] == '[') ++depth;
      if (text[pos] == ']') --depth;
    }
  }
  throw std::out_of_range(std::string(what) + ": no such entry in " + text);
}

}  // namespace detail

inline std::string getShapeAt(const std::string& shape, unsigned index) {
  return detail::listEntry(shape, index, "getShapeAt");
}

inline std::string getDtypeAt(const std::string& dtype, unsigned index) {
  return detail::listEntry(dtype, index, "getDtypeAt");
}

namespace detail {

/// A text without the white space around it.
inline std::string trimmed(const std::string& text) {
  const char* const space = " \t\r\n";
  const std::size_t first = text.find_first_not_of(space);
  if (first == std::string::npos) return std::string();
  return text.substr(first, text.find_last_not_of(space) - first + 1);
}

inline bool readBoolean(const std::string& given, bool* value) {
  const std::string text = trimmed(given);
  *value = text == "True" || text == "true" || text == "1";
  return *value || text == "False" || text == "false" || text == "0";
}

/// Reads a whole number, also with a sign in front, and with the L behind that Python 2 wrote.
inline bool readInteger(const std::string& given, int64_t* value) {
  std::string text = trimmed(given);
  if (text.size() > 1 && text[text.size() - 1] == 'L') text.erase(text.size() - 1);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.erase(0, 1);
  return parseInteger(text.data(), text.size(), value);
}

inline bool readReal(const std::string& given, double* value) {
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
inline bool readList(const std::string& given, std::vector<std::string>* items) {
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
        inner = JsonReader(&text[pos], end - pos + 1).readString().str();
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
inline bool hasAttr(const Node* node, const char* key) {
  std::string text;
  return node != nullptr && detail::AttributeTexts(node->attrs).get(key, &text) && text != "None";
}

[[noreturn]] inline void failAttr(const Node* node, const char* key, const std::string& problem) {
  throw AttributeError("node " + detail::quoted(node->name) + " (" + node->op + "): attribute " +
                       detail::quoted(key) + " " + problem);
}

inline std::string needAttr(const Node* node, const char* key) {
  std::string text;
  if (node == nullptr) {
    throw AttributeError("there is no node to have the attribute " + detail::quoted(key));
  }
  if (!detail::AttributeTexts(node->attrs).get(key, &text) || text == "None")
    failAttr(node, key, "is missing");
  return text;
}

[[noreturn]] inline void failAttrType(const Node* node, const char* key, const char* wanted) {
  failAttr(node, key, "is " + detail::quoted(node->attrs.at(key)) + ", not " + wanted);
}

}  // namespace detail

inline int64_t intAttr(const Node* node, const char* key) {
  int64_t value = 0;
  if (!detail::readInteger(detail::needAttr(node, key), &value)) {
    detail::failAttrType(node, key, "a whole number of 64 bits");
  }
  return value;
}

inline int64_t intAttr(const Node* node, const char* key, int64_t preset) {
  return detail::hasAttr(node, key) ? intAttr(node, key) : preset;
}

inline std::vector<int64_t> intsAttr(const Node* node, const char* key) {
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

inline std::vector<int64_t> intsAttr(const Node* node, const char* key,
                                     const std::vector<int64_t>& preset) {
  return detail::hasAttr(node, key) ? intsAttr(node, key) : preset;
}

inline double realAttr(const Node* node, const char* key) {
  double value = 0;
  if (!detail::readReal(detail::needAttr(node, key), &value)) {
    detail::failAttrType(node, key, "a number");
  }
  return value;
}

inline double realAttr(const Node* node, const char* key, double preset) {
  return detail::hasAttr(node, key) ? realAttr(node, key) : preset;
}

inline bool boolAttr(const Node* node, const char* key) {
  bool value = false;
  if (!detail::readBoolean(detail::needAttr(node, key), &value)) {
    detail::failAttrType(node, key, "True or False");
  }
  return value;
}

inline bool boolAttr(const Node* node, const char* key, bool preset) {
  return detail::hasAttr(node, key) ? boolAttr(node, key) : preset;
}

inline std::string textAttr(const Node* node, const char* key) {
  std::string text;
  if (node == nullptr || !detail::AttributeTexts(node->attrs).get(key, &text)) {
    detail::failAttr(node, key, "is missing");
  }
  return text;
}

inline std::string textAttr(const Node* node, const char* key, const std::string& preset) {
  std::string text;
  return node != nullptr && detail::AttributeTexts(node->attrs).get(key, &text) ? text : preset;
}

template <typename Visit>
void NodeAttributes::forEach(Visit visit) const {
  detail::AttributeTexts(*this).visit(
      [&visit](const JsonReader::Slice& key, const JsonReader::Slice& text) {
        visit(key.str(), text.str());
      });
}

inline std::string dialectOf(const Graph* graph) {
  std::string name;
  return detail::GraphAttributeTexts::getString(graph->attrs, "dialect", &name) ? name : "mxnet";
}

inline void setAttr(const Graph*, Node* node, const char* key, const std::string& text) {
  detail::requireNode(node, "setAttr", "node");
  node->attrs[key] = text;
}

inline void setAttr(const Graph* graph, Node* node, const char* key, const char* text) {
  setAttr(graph, node, key, std::string(text));
}

inline void setAttr(const Graph* graph, Node* node, const char* key, bool value) {
  const std::string dialect = dialectOf(graph);
  const char* const texts[] = {"True", "False", "1", "0", "true", "false"};
  const int spelling = dialect == "mxnet" || dialect == "nnvm" ? 0 : dialect == "onnx" ? 2 : 4;
  setAttr(graph, node, key, texts[spelling + (value ? 0 : 1)]);
}

inline void setAttr(const Graph* graph, Node* node, const char* key, int value) {
  setAttr(graph, node, key, std::to_string(value));
}

inline void setAttr(const Graph* graph, Node* node, const char* key, int64_t value) {
  setAttr(graph, node, key, std::to_string(value));
}

namespace detail {

/// The shortest text that reads back as the same double, in the spelling of all dialects.
inline std::string realText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return shortestText(value);
}

/// A list in the spelling of the graph's dialect. Python's tuple of one item ends with a comma.
inline std::string listText(const Graph* graph, const std::vector<std::string>& items) {
  const std::string dialect = dialectOf(graph);
  const bool tuple = dialect == "mxnet" || dialect == "nnvm";
  std::string text(1, tuple ? '(' : '[');
  for (const std::string& item : items) text += (&item == &items[0] ? "" : ", ") + item;
  if (tuple && items.size() == 1) text += ",";
  return text + (tuple ? ')' : ']');
}

}  // namespace detail

inline void setAttr(const Graph* graph, Node* node, const char* key, double value) {
  setAttr(graph, node, key, detail::realText(value));
}

inline void setAttr(const Graph* graph, Node* node, const char* key,
                    const std::vector<int64_t>& values) {
  std::vector<std::string> items;
  for (const int64_t value : values) items.push_back(std::to_string(value));
  setAttr(graph, node, key, detail::listText(graph, items));
}

inline void setAttr(const Graph* graph, Node* node, const char* key,
                    const std::vector<double>& values) {
  std::vector<std::string> items;
  for (const double value : values) items.push_back(detail::realText(value));
  setAttr(graph, node, key, detail::listText(graph, items));
}
