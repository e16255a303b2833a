#include "onnx/writing/node.h"

#include <algorithm>
#include <map>

#include "onnx/original/lineage.h"
#include "onnx/parts/long_attribute.h"
#include "onnx/types/settled.h"
#include "onnx/wire/numbers.h"
#include "onnx/wire/output.h"

namespace passlib::onnx {
namespace {

using namespace numbers;  // NOLINT: this file only

bool hasField(Bytes message, uint32_t number) {
  Field field;
  for (Fields fields(message); fields.next(&field);) {
    if (field.number == number && field.type == kBytes) return true;
  }
  return false;
}

bool sameNames(const std::vector<Bytes>& names, const Original& original, const Range& range) {
  if (names.size() != range.count) return false;
  for (uint32_t i = 0; i < range.count; ++i) {
    if (!sameText(names[i], original.name(range, i))) return false;
  }
  return true;
}

/// The messages of a node and of those that it stands for, in the order of the file.
using Sources = std::vector<Bytes>;

Sources sourcesOf(const Node& node, const Original* original, const Originals& originals) {
  std::vector<const Original*> found = lineageOf(node, original, originals);
  const bool itself = std::find(found.begin(), found.end(), original) != found.end();
  if (original != nullptr && !itself) found.push_back(original);
  std::sort(found.begin(), found.end(),
            [](const Original* one, const Original* other) { return one->index < other->index; });
  Sources messages;
  for (const Original* each : found) messages.push_back(each->message());
  return messages;
}

/// Whether a node stands for others that have metadata.
bool inherits(const Sources& sources, const Original* original) {
  const Bytes own = original == nullptr ? Bytes() : original->message();
  return std::any_of(sources.begin(), sources.end(), [own](Bytes source) {
    return source.data() != own.data() && hasField(source, kMetadata);
  });
}

/// Appends metadata: a pass's own attributes, `__mark__`, but the omitted one, and the entries of
/// the sources, of which one key gets all texts.
void appendMetadata(const Node& node, const WrittenAttributes& attributes, const Sources& sources,
                    Bytes own, Bytes omitted, std::string* out) {
  std::map<Bytes, Bytes> marks;
  forEachAttribute(node, [&](Bytes key, Bytes text) {
    if (isOwnName(key) && !isReservedName(key) && !isOmitted(key, omitted))
      marks.emplace(key, text);
  });
  for (const WrittenAttribute& value : attributes.list) marks.erase(value.name);
  const auto append = [out](Bytes key, Bytes text) {
    std::string entry;
    appendBody(kKey, key, &entry);
    appendBody(kValue, text, &entry);
    appendBody(kMetadata, entry, out);
  };
  std::vector<Bytes> keys;
  std::map<Bytes, std::vector<Bytes>> texts;
  std::map<Bytes, Bytes> whole;
  for (const Bytes source : sources) {
    forEachBody(source, kMetadata, [&](Bytes entry) {
      const Bytes key = bodyOf(entry, kKey);
      if (isOwnName(key) && source.data() != own.data()) return;  // about that node alone
      std::vector<Bytes>& known = texts[key];
      if (known.empty()) keys.push_back(key);
      const Bytes text = bodyOf(entry, kValue);
      if (std::find(known.begin(), known.end(), text) == known.end()) known.push_back(text);
      whole[key] = entry;
    });
  }
  for (const Bytes key : keys) {
    const auto mark = marks.find(key);
    if (mark != marks.end()) {
      append(mark->first, mark->second);
      marks.erase(mark);
    } else if (texts[key].size() == 1) {
      appendBody(kMetadata, whole[key], out);
    } else {
      std::string joined;
      for (const Bytes text : texts[key]) {
        if (!joined.empty()) joined += '\n';
        joined.append(text);
      }
      append(key, joined);
    }
  }
  for (const auto& [key, text] : marks) append(key, text);
}

/// Appends a text that nodes have as an attribute: that of the file if it is the same one.
void appendText(uint32_t number, Bytes text, Bytes plain, Bytes old, std::string* out) {
  if (text == bodyOf(old, number)) {
    appendFields(old, [number](const Field& field) { return field.number == number; }, out);
  } else if (!text.empty() && !plain.empty()) {
    appendBody(number, plain, out);
  }
}

}  // namespace

WrittenNode NodeWriter::write(const Node& node, const Original* original, const NodeNames& names,
                              const NestedWriter& nested) {
  const bool same_op = original != nullptr && original->record().op == node.op;
  const Bytes omitted = host_->omitted();
  const bool same_attributes = same_op && sameAttributesBut(omitted, node, *original->node);
  const Sources sources = sourcesOf(node, original, originals_);
  const bool inherited = inherits(sources, original);
  WrittenAttributes attributes;
  if (same_op) {
    const NodeRecord& record = original->record();
    const bool same = same_attributes && sameNames(names.inputs, *original, record.inputs) &&
                      sameNames(names.outputs, *original, record.outputs) &&
                      sameText(names.title, record.name) && !inherited;
    if (same && node.subgraphs.empty()) return {original->message(), true, true};
    if (same_attributes && node.subgraphs.empty()) {
      for (uint32_t i = 0; i < record.attributes.count; ++i) {
        const Attribute& value =
            original->graph->level.attributes[record.attributes.first + i].attribute;
        attributes.list.push_back({value.name, value.message});
      }
    } else {
      attributes = writeAttributes(node, original, originals_, nested, host_, &arena_);
    }
    if (same && !attributes.changed) return {original->message(), true, true};
  } else {
    attributes = writeAttributes(node, original, originals_, nested, host_, &arena_);
  }
  const Bytes old = same_op ? original->message() : Bytes("");
  const Bytes domain = attributeOf(node, keys::kDomain);
  std::string made;
  for (const Bytes name : names.inputs) appendBody(kNodeInput, name, &made);
  for (const Bytes name : names.outputs) appendBody(kNodeOutput, name, &made);
  if (!names.title.empty() || hasField(old, kNodeName)) {
    appendBody(kNodeName, names.title, &made);
  }
  appendBody(kOpType, node.op, &made);
  Pieces pieces;
  pieces.text()->append(made);
  bool cut = false;
  for (const WrittenAttribute& value : attributes.list) {
    appendHead(kAttribute, value.message.size(), pieces.text());
    pieces.append(value.message);
    std::string rest;
    const bool shorter = cutAttribute(domain, value.message, &rest);
    cut = cut || shorter;
    appendBody(kAttribute, shorter ? Bytes(rest) : value.message, &made);
  }
  const std::size_t end = made.size();
  const auto keep = [](const Field& field) {
    switch (field.number) {
      case kNodeInput:
      case kNodeOutput:
      case kNodeName:
      case kOpType:
      case kAttribute:
      case kDomain:
      case kOverload:
      case kMetadata:
        return false;
      default:
        return true;
    }
  };
  appendFields(old, keep, &made);
  // ONNX's checker does not know "ai.onnx" by that name.
  appendText(kDomain, domain, plainDomain(domain), old, &made);
  const Bytes overload = attributeOf(node, keys::kOverload);
  appendText(kOverload, overload, overload, old, &made);
  const Bytes own = original == nullptr ? Bytes() : original->message();
  appendMetadata(node, attributes, sources, own, omitted, &made);
  const bool same_domain = domain == bodyOf(old, kDomain);
  domains.emplace(same_domain ? domain : plainDomain(domain));
  if (!same_op && plainDomain(domain).empty()) operators.emplace(node.op, &node);
  const bool same_graphs = node.subgraphs.empty() || !attributes.changed;
  const std::string& message = arena_.emplace_back(std::move(made));
  if (cut) {
    pieces.text()->append(message, end, std::string::npos);
    whole.emplace(message.data(), std::move(pieces));
  }
  return {message, same_attributes && same_graphs, same_attributes};
}

}  // namespace passlib::onnx
