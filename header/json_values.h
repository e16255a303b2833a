// ---- JSON: values ------------------------------------------------------------------------------

namespace detail {

/// Gets `num` of a number's text. Returns whether the text says no more.
inline bool scanNum(const std::string& text, int* num) {
  int64_t integer = 0;
  if (!parseInteger(text.data(), text.size(), &integer)) {
    *num = toInt(parseDouble(text));
    return false;
  }
  *num = toInt(static_cast<double>(integer));
  return *num == integer && text != "-0";
}

/// The shortest text that reads back as the same double. Throws std::invalid_argument for numbers
/// that JSON does not have.
inline std::string shortestText(double value) {
  if (!std::isfinite(value)) throw std::invalid_argument("JSON has no NaN and no infinity");
  std::string text;
  for (int digits = 15; digits <= 17; ++digits) {
#if defined(__cpp_lib_to_chars)
    char buffer[32];  // the longest has 24 characters
    const std::to_chars_result result =
        std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::general, digits);
    text.assign(buffer, result.ptr);
#else
    text = printDouble(value, digits);
#endif
    if (!(parseDouble(text) < value) && !(parseDouble(text) > value)) break;
  }
  return text;
}

inline JsonVal makeNumber(std::string text) {
  int num = 0;
  const bool same = scanNum(text, &num);
  return JsonVal(NUM, num, same ? std::string() : std::move(text));
}

/// The text of a number: the original one, unless `num` was changed since.
inline std::string numberText(const JsonVal& value) {
  int num = 0;
  if (!value.str.empty()) scanNum(value.str, &num);
  return !value.str.empty() && num == value.num ? value.str : printed("%d", value.num);
}

/// Moves out of `value` every child that has children of its own.
inline void takeDeepChildren(JsonVal* value, std::vector<JsonVal>* taken) {
  const auto take = [taken](JsonVal* child) {
    if (!child->list.empty() || !child->map.empty()) taken->push_back(std::move(*child));
  };
  for (JsonVal& child : value->list) take(&child);
  for (auto& member : value->map) take(&member.second);
}

/// Adds a member to an object, behind those with lower keys, which are there.
inline JsonVal* addMember(JsonVal key, std::map<JsonVal, JsonVal>* object) {
  return &object->emplace_hint(object->end(), std::move(key), JsonVal())->second;
}

/// A value and that which becomes its copy.
struct JsonCopy {
  const JsonVal* from;
  JsonVal* target;
};

/// Copies type, number and text, and makes room for children, which are queued.
inline void copyShallow(const JsonVal& from, JsonVal* target, PlainList<JsonCopy>* queue) {
  target->type = from.type;
  target->num = from.num;
  target->str = from.str;
  target->list.resize(from.list.size());
  for (std::size_t pos = 0; pos < from.list.size(); ++pos) {
    queue->push_back(JsonCopy{&from.list[pos], &target->list[pos]});
  }
  for (const auto& member : from.map) {
    queue->push_back(JsonCopy{&member.second, addMember(member.first, &target->map)});
  }
}

inline int sign(bool less, bool greater) { return less ? -1 : greater ? 1 : 0; }

/// Order of two values without their children: type, number, text.
inline int compareScalars(const JsonVal& left, const JsonVal& right) {
  if (left.type != right.type) return sign(left.type<right.type, left.type> right.type);
  if (left.type == STR) return sign(left.str < right.str, right.str < left.str);
  if (left.type == BOOL) return sign(left.num<right.num, left.num> right.num);
  if (left.type == NUM) {
    if (left.str.empty() && right.str.empty()) return sign(left.num<right.num, left.num> right.num);
    const double left_number = left.toDouble();
    const double right_number = right.toDouble();
    if (left_number < right_number || right_number < left_number)
      return sign(left_number < right_number, right_number < left_number);
    const std::string text_a = numberText(left);
    const std::string text_b = numberText(right);
    return sign(text_a < text_b, text_b < text_a);
  }
  return 0;
}

/// Lexicographic order of two values with all their children; iterative.
inline int compareJson(const JsonVal& left, const JsonVal& right) {
  // A step without values compares two lengths, after all elements were equal.
  struct Step {
    const JsonVal* left;
    const JsonVal* right;
    int verdict;
  };
  PlainList<Step> steps;
  steps.push_back(Step{&left, &right, 0});
  while (!steps.empty()) {
    const Step step = steps.back();
    steps.pop_back();
    const int order = step.left == nullptr ? step.verdict : compareScalars(*step.left, *step.right);
    if (order != 0) return order;
    if (step.left == nullptr || (step.left->type != LIST && step.left->type != MAP)) continue;
    const bool lists = step.left->type == LIST;
    const std::size_t size_a = lists ? step.left->list.size() : step.left->map.size();
    const std::size_t size_b = lists ? step.right->list.size() : step.right->map.size();
    steps.push_back(Step{nullptr, nullptr, sign(size_a<size_b, size_a> size_b)});
    const std::size_t first_child = steps.size();
    if (lists) {
      for (std::size_t pos = 0; pos < (std::min)(size_a, size_b); ++pos) {
        steps.push_back(Step{&step.left->list[pos], &step.right->list[pos], 0});
      }
    } else {
      auto pos = step.left->map.begin();
      auto other_pos = step.right->map.begin();
      for (; pos != step.left->map.end() && other_pos != step.right->map.end();
           ++pos, ++other_pos) {
        steps.push_back(Step{&pos->first, &other_pos->first, 0});
        steps.push_back(Step{&pos->second, &other_pos->second, 0});
      }
    }
    for (std::size_t low = first_child, high = steps.size(); low + 1 < high; ++low) {
      const Step first = steps[low];
      steps[low] = steps[--high];
      steps[high] = first;
    }
  }
  return 0;
}

/// Walks a value in the order of its text, iteratively.
class JsonWalk {
 public:
  /// kBegin: a container begins, or a scalar; kChild: a child follows; kClose: a container ends.
  enum Event { kBegin, kChild, kClose, kEnd };
  explicit JsonWalk(const JsonVal& root) : value(&root), key(nullptr) {}
  Event next() {
    if (event_ == kEnd || event_ == kChild) return event_ = kBegin;
    if (event_ == kBegin && (value->type == LIST || value->type == MAP)) {
      open_.push_back(Frame{value, 0, nullptr});
    }
    if (event_ == kClose) open_.pop_back();
    if (open_.empty()) return event_ = kEnd;
    Frame& top = open_.back();
    index = top.index++;
    if (top.container->type == LIST && index < top.container->list.size()) {
      value = &top.container->list[index];
      key = nullptr;
      return event_ = kChild;
    }
    if (top.container->type == MAP && index < top.container->map.size()) {
      const std::map<JsonVal, JsonVal>& map = top.container->map;
      const auto member = top.key == nullptr ? map.begin() : map.upper_bound(*top.key);
      key = top.key = &member->first;
      value = &member->second;
      return event_ = kChild;
    }
    value = top.container;
    return event_ = kClose;
  }

  const JsonVal* value;   ///< what begins, follows or ends
  const JsonVal* key;     ///< of the child; null in lists
  std::size_t index = 0;  ///< of a child; of what ends, the number of its children

 private:
  struct Frame {
    const JsonVal* container;
    std::size_t index;
    const JsonVal* key;  // of the last member; iterators of a library's debug mode are not plain
  };
  PlainList<Frame> open_;
  Event event_ = kEnd;
};

inline void appendScalar(const JsonVal& value, TextBuffer* out) {
  switch (value.type) {
    case STR:
      appendString(value.str.data(), value.str.size(), false, out);
      break;
    case NUM:
      out->append(numberText(value));
      break;
    case BOOL:
      out->append(std::string(value.num != 0 ? "true" : "false"));
      break;
    case NIL:
      out->append("null");
      break;
    default:
      throw std::invalid_argument("a JsonVal of type ERR cannot be written as JSON");
  }
}

/// Writes a value, with these texts between items, and between key and value.
inline void printValue(const JsonVal& root, const std::string& comma, const std::string& colon,
                       TextBuffer* out) {
  typedef JsonWalk Walk;
  Walk walk(root);
  for (;;) {
    const Walk::Event event = walk.next();
    const bool in_list = walk.value->type == LIST;
    if (event == Walk::kEnd) return;
    if (event == Walk::kClose) {
      out->push_back(in_list ? ']' : '}');
    } else if (event == Walk::kChild) {
      if (walk.index > 0) out->append(comma);
      if (walk.key == nullptr) continue;
      // Keys of other types, which JSON does not allow, are written as strings.
      const std::string name = walk.key->type == STR ? walk.key->str : walk.key->dump();
      appendString(name.data(), name.size(), false, out);
      out->append(colon);
    } else if (in_list || walk.value->type == MAP) {
      out->push_back(in_list ? '[' : '{');
    } else {
      appendScalar(*walk.value, out);
    }
  }
}

/// Makes the value that a tree describes.
inline JsonVal valueOf(const JsonTree& tree) {
  JsonVal root;
  PlainList<JsonVal*> targets;  // of the items
  targets.resize(tree.size());
  targets[0] = &root;
  for (std::size_t pos = 0; pos < tree.size(); ++pos) {
    const JsonTree::Item& item = tree[pos];
    JsonVal* const target = targets[pos];
    target->type = item.type;
    if (item.type == STR) target->str = tree.text(item).str();
    if (item.type == NUM) *target = makeNumber(tree.text(item).str());
    if (item.type == BOOL) target->num = tree.text(item) == "true" ? 1 : 0;
    if (item.type == LIST) target->list.resize(item.count);
    std::size_t nth = 0;
    for (std::size_t child = item.first; child != 0; child = tree[child].next) {
      targets[child] = item.type == LIST
                           ? &target->list[nth++]
                           : addMember(JsonVal(tree.key(tree[child]).str()), &target->map);
    }
  }
  return root;
}

}  // namespace detail

inline void JsonVal::clear() {
  std::vector<JsonVal> deep;
  detail::takeDeepChildren(this, &deep);
  list.clear();
  map.clear();
  while (!deep.empty()) {
    JsonVal last = std::move(deep.back());
    deep.pop_back();
    detail::takeDeepChildren(&last, &deep);
    last.list.clear();
    last.map.clear();
  }
}

inline JsonVal::JsonVal(const JsonVal& other) : type(other.type), num(other.num) {
  detail::PlainList<detail::JsonCopy> queue;
  detail::copyShallow(other, this, &queue);
  while (!queue.empty()) {
    const detail::JsonCopy next = queue.back();
    queue.pop_back();
    detail::copyShallow(*next.from, next.target, &queue);
  }
}

inline JsonVal& JsonVal::operator=(const JsonVal& other) {
  if (this != &other) {
    JsonVal copy(other);
    *this = std::move(copy);
  }
  return *this;
}

inline JsonVal& JsonVal::operator=(JsonVal&& other) noexcept {
  // `other` may be a child of this value: it must be moved out before the children go.
  JsonVal taken(std::move(other));
  this->~JsonVal();
  return *::new (static_cast<void*>(this)) JsonVal(std::move(taken));
}

inline JsonVal JsonVal::integer(int64_t value) {
  return detail::makeNumber(detail::printed("%lld", static_cast<long long>(value)));
}

inline JsonVal JsonVal::real(double value) {
  return detail::makeNumber(detail::shortestText(value));
}

inline double JsonVal::toDouble() const {
  if (type == BOOL) return num;
  if (type != NUM) return 0;
  return str.empty() ? num : detail::parseDouble(detail::numberText(*this));
}

inline bool JsonVal::toInteger(int64_t* value) const {
  if (type != NUM) return false;
  const std::string text = detail::numberText(*this);
  return detail::parseInteger(text.data(), text.size(), value);
}

inline bool JsonVal::operator<(const JsonVal& other) const {
  if (type == STR && other.type == STR) return str < other.str;  // keys: the usual case
  return detail::compareJson(*this, other) < 0;
}

inline bool JsonVal::operator==(const JsonVal& other) const {
  return detail::compareJson(*this, other) == 0;
}

inline std::string JsonVal::dump() const {
  detail::TextBuffer out;
  detail::printValue(*this, ",", " : ", &out);
  return out.str();
}

inline std::string JsonVal::toString() const {
  std::string out;
  typedef detail::JsonWalk Walk;
  Walk walk(*this);
  for (;;) {
    const Walk::Event event = walk.next();
    const bool in_list = walk.value->type == LIST;
    if (event == Walk::kEnd) return out;
    if (event == Walk::kClose) {
      if (walk.index > 0) out += ',';
      out += in_list ? "])" : "})";
    } else if (event == Walk::kChild) {
      if (walk.index > 0) out += ',';
      if (walk.key != nullptr) out.append(walk.key->toString()).append(" : ");
    } else {
      const bool text = walk.value->type == STR;
      switch (walk.value->type) {
        case STR:
        case NUM:
          out.append(text ? "json(STR:" : "json(INT:");
          out.append(text ? walk.value->str : detail::numberText(*walk.value)).append(")");
          break;
        case LIST:
        case MAP:
          out += in_list ? "json(LIST:[" : "json(MAP:{";
          break;
        case BOOL:
          out += walk.value->num != 0 ? "json(BOOL:true)" : "json(BOOL:false)";
          break;
        case NIL:
          out += "json(NULL)";
          break;
        default:
          out += "json(Error)";
      }
    }
  }
}

inline JsonVal JsonReader::readValue() {
  detail::JsonTree tree;
  _readItem(&tree, 0);
  return detail::valueOf(tree);
}

inline JsonVal JsonVal::parse(const std::string& json) {
  JsonReader reader(json.data(), json.size());
  JsonVal value = reader.readValue();
  reader.finish();
  return value;
}

inline JsonVal JsonVal::parse(const std::string& json, unsigned int* idx) {
  const std::size_t start = std::min<std::size_t>(*idx, json.size());
  JsonReader reader(json.data() + start, json.size() - start);
  JsonVal value = reader.readValue();
  *idx = static_cast<unsigned int>(start + reader.offset());
  return value;
}
