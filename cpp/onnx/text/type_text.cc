#include "onnx/text/type_text.h"

#include <charconv>
#include <map>
#include <utility>
#include <vector>

#include "onnx/text/strings.h"
#include "onnx/wire/output.h"

namespace passlib::onnx {
namespace {

using mxnet::ext::JsonVal;

enum class Form : uint8_t { kText, kInt32, kInt64, kMessage, kMessages };
enum class Name : uint8_t {
  kType,
  kTensorType,
  kElementType,
  kMapType,
  kOpaqueType,
  kShape,
  kDimension
};

/// A field of one of these messages. Of the fields that are `alternative`, a message has one.
struct Rule {
  const char* name;
  Form form;
  Name message;
  bool alternative;
};

using MessageRules = std::map<uint32_t, Rule>;

const MessageRules& rulesOf(Name message) {
  constexpr Form kSub = Form::kMessage;
  static const std::map<Name, MessageRules> rules = {
      {Name::kType,
       {{1, {"tensorType", kSub, Name::kTensorType, true}},
        {4, {"sequenceType", kSub, Name::kElementType, true}},
        {5, {"mapType", kSub, Name::kMapType, true}},
        {6, {"denotation", Form::kText, Name::kType, false}},
        {7, {"opaqueType", kSub, Name::kOpaqueType, true}},
        {8, {"sparseTensorType", kSub, Name::kTensorType, true}},
        {9, {"optionalType", kSub, Name::kElementType, true}}}},
      {Name::kTensorType,
       {{1, {"elemType", Form::kInt32, Name::kType, false}},
        {2, {"shape", kSub, Name::kShape, false}}}},
      {Name::kElementType, {{1, {"elemType", kSub, Name::kType, false}}}},
      {Name::kMapType,
       {{1, {"keyType", Form::kInt32, Name::kType, false}},
        {2, {"valueType", kSub, Name::kType, false}}}},
      {Name::kOpaqueType,
       {{1, {"domain", Form::kText, Name::kType, false}},
        {2, {"name", Form::kText, Name::kType, false}}}},
      {Name::kShape, {{1, {"dim", Form::kMessages, Name::kDimension, false}}}},
      {Name::kDimension,
       {{1, {"dimValue", Form::kInt64, Name::kType, true}},
        {2, {"dimParam", Form::kText, Name::kType, true}},
        {3, {"denotation", Form::kText, Name::kType, false}}}},
  };
  return rules.at(message);
}

struct PresentField {
  const Rule* rule;
  Field last;
  Message merged;
  std::vector<Bytes> all;
};

/// Text to be written, or a message to be spelled out.
struct Task {
  std::string text;
  Bytes message;
  Name name;
  bool is_text;
};

Task textTask(std::string text) { return {std::move(text), {}, Name::kType, true}; }

bool fits(const Rule& rule, const Field& field) {
  const bool number = rule.form == Form::kInt32 || rule.form == Form::kInt64;
  return field.type == (number ? kVarint : kBytes);
}

std::map<uint32_t, PresentField> presentFields(Bytes message, Name name, Arena* arena) {
  const MessageRules& rules = rulesOf(name);
  std::map<uint32_t, PresentField> present;
  Field field;
  for (Fields fields(message); fields.next(&field);) {
    const auto rule = rules.find(field.number);
    if (rule == rules.end() || !fits(rule->second, field)) continue;
    if (rule->second.alternative) {
      for (auto other = present.begin(); other != present.end();) {
        const bool replaced = other->first != field.number && other->second.rule->alternative;
        other = replaced ? present.erase(other) : std::next(other);
      }
    }
    PresentField& entry = present[field.number];
    entry.rule = &rule->second;
    entry.last = field;
    if (rule->second.form == Form::kMessage) entry.merged.add(field.body, arena);
    if (rule->second.form == Form::kMessages) entry.all.push_back(field.body);
  }
  return present;
}

/// Splits a message into tasks, in order.
std::vector<Task> spelled(Bytes message, Name name, Arena* arena) {
  std::vector<Task> tasks;
  std::string text = "{";
  bool first = true;
  for (const auto& [number, entry] : presentFields(message, name, arena)) {
    const Rule& rule = *entry.rule;
    if (!first) text += ", ";
    first = false;
    text.append("\"").append(rule.name).append("\": ");
    switch (rule.form) {
      case Form::kText:
        appendJsonString(decoded(entry.last.body), true, &text);
        break;
      case Form::kInt32:
        text += std::to_string(static_cast<int32_t>(entry.last.value));
        break;
      case Form::kInt64:
        text += "\"" + std::to_string(static_cast<int64_t>(entry.last.value)) + "\"";
        break;
      case Form::kMessage:
        tasks.push_back(textTask(std::move(text)));
        tasks.push_back({"", entry.merged.bytes(), rule.message, false});
        text.clear();
        break;
      case Form::kMessages:
        text += "[";
        for (const Bytes& body : entry.all) {
          tasks.push_back(textTask(std::move(text)));
          tasks.push_back({"", body, rule.message, false});
          text = ", ";
        }
        text = "]";
        break;
    }
  }
  tasks.push_back(textTask(text + "}"));
  return tasks;
}

/// More levels than this are beyond protobuf's readers.
constexpr std::size_t kMostLevels = 100;

/// A member of an object; protobuf takes null for an absent one.
const JsonVal* presentMember(const JsonVal& object, const char* name) {
  const JsonVal* const found = mxnet::ext::host::memberOf(object, name);
  return found == nullptr || found->type == mxnet::ext::NIL ? nullptr : found;
}

/// Whether a value is an object with members of a message only, and one alternative at most.
bool isMessage(const JsonVal& value, const MessageRules& rules) {
  if (value.type != mxnet::ext::MAP) return false;
  std::size_t known = 0, alternatives = 0;
  for (const auto& [number, rule] : rules) {
    known += value.map.count(JsonVal(rule.name));
    if (rule.alternative && presentMember(value, rule.name) != nullptr) ++alternatives;
  }
  return known == value.map.size() && alternatives <= 1;
}

/// Appends a number, which may be in quotes.
bool appendInteger(const JsonVal& value, Form form, uint32_t field, std::string* out) {
  int64_t number = 0;
  const bool is_text = value.type == mxnet::ext::STR;
  if (is_text) {
    const char* const end = value.str.data() + value.str.size();
    const auto read = std::from_chars(value.str.data(), end, number);
    if (read.ec != std::errc() || read.ptr != end) return false;
  } else if (value.type != mxnet::ext::NUM || !value.toInteger(&number)) {
    return false;
  }
  if (form == Form::kInt32 && number != static_cast<int32_t>(number)) return false;
  appendNumber(field, static_cast<uint64_t>(number), out);
  return true;
}

/// A message that is being made.
struct Made {
  const JsonVal* value;
  const MessageRules* rules;
  MessageRules::const_iterator next;
  uint32_t field;        ///< of the message around it
  std::size_t item = 0;  ///< of a list of messages
  std::string body;
};

/// Appends the next field of the last message, or begins the message that it is. Returns false if
/// its value is of another form.
bool appendField(std::vector<Made>* open) {
  Made& made = open->back();
  const auto& [field, rule] = *made.next;
  const JsonVal* value = presentMember(*made.value, rule.name);
  const bool in_list = value != nullptr && rule.form == Form::kMessages;
  if (in_list && value->type != mxnet::ext::LIST) return false;
  if (value == nullptr || (in_list && made.item == value->list.size())) {
    made.item = 0;
    ++made.next;
    return true;
  }
  if (in_list) {
    value = &value->list[made.item++];
  } else {
    ++made.next;
  }
  switch (rule.form) {
    case Form::kText:
      if (value->type != mxnet::ext::STR) return false;
      appendBody(field, value->str, &made.body);
      return true;
    case Form::kInt32:
    case Form::kInt64:
      return appendInteger(*value, rule.form, field, &made.body);
    default:
      const MessageRules& rules = rulesOf(rule.message);
      if (open->size() == kMostLevels || !isMessage(*value, rules)) return false;
      open->push_back({value, &rules, rules.begin(), field, 0, ""});  // moves `made`
      return true;
  }
}

}  // namespace

bool readType(const JsonVal& value, std::string* message) {
  const MessageRules& rules = rulesOf(Name::kType);
  if (!isMessage(value, rules)) return false;
  std::vector<Made> open;
  open.push_back({&value, &rules, rules.begin(), 0, 0, ""});
  for (;;) {
    if (open.back().next != open.back().rules->end()) {
      if (!appendField(&open)) return false;
      continue;
    }
    const Made made = std::move(open.back());
    open.pop_back();
    if (open.empty()) {
      message->append(made.body);
      return true;
    }
    appendBody(made.field, made.body, &open.back().body);
  }
}

void appendTypeText(Bytes type, Arena* arena, std::string* out) {
  std::vector<Task> pending(1, {"", type, Name::kType, false});
  while (!pending.empty()) {
    const Task task = std::move(pending.back());
    pending.pop_back();
    if (task.is_text) {
      out->append(task.text);
      continue;
    }
    std::vector<Task> tasks = spelled(task.message, task.name, arena);
    pending.insert(pending.end(), std::make_move_iterator(tasks.rbegin()),
                   std::make_move_iterator(tasks.rend()));
  }
}

}  // namespace passlib::onnx
