#include "onnx/writing/attributes.h"

#include <algorithm>
#include <utility>

#include "errors.h"
#include "onnx/parts/long_attribute.h"
#include "onnx/text/strings.h"
#include "onnx/types/messages.h"
#include "onnx/wire/numbers.h"
#include "onnx/wire/output.h"

namespace passlib::onnx {
namespace {

using namespace numbers;  // NOLINT: this file only

/// The numbers of nested graphs that a text such as `subgraph[0]` or `subgraph[0:2]` states.
struct Numbers {
  std::size_t first = 0;
  std::size_t end = 0;
  bool several = false;
};

bool readNumbers(Bytes text, Numbers* numbers) {
  constexpr Bytes kStart = "subgraph[";
  if (text.substr(0, kStart.size()) != kStart || text.back() != ']') return false;
  text = text.substr(kStart.size(), text.size() - kStart.size() - 1);
  const std::size_t colon = text.find(':');
  if (!parsePosition(text.substr(0, colon), &numbers->first)) return false;
  numbers->several = colon != Bytes::npos;
  numbers->end = numbers->first + 1;
  if (numbers->several && !parsePosition(text.substr(colon + 1), &numbers->end)) return false;
  numbers->end = std::max(numbers->end, numbers->first);
  return true;
}

class AttributeWriter {
 public:
  AttributeWriter(const Node& node, const Original* original, const Originals& originals,
                  const NestedWriter& nested, WriteHost* host, Arena* arena)
      : node_(node),
        original_(original),
        originals_(originals),
        nested_(nested),
        host_(*host),
        arena_(*arena),
        used_(node.subgraphs.size(), false) {}

  WrittenAttributes write() {
    NameMap<const AttributeRecord*> old;
    if (original_ != nullptr) {
      const Range& range = original_->record().attributes;
      for (uint32_t i = 0; i < range.count; ++i) {
        const AttributeRecord& was = original_->graph->level.attributes[range.first + i];
        old.insert(was.attribute.name, &was);
        const bool kept = isOmitted(was.attribute.name, host_.omitted());
        const Bytes text = attributeOf(kept ? *original_->node : node_, was.attribute.name);
        if (text.data() == nullptr) {
          written_.changed = true;
        } else if (!isReservedName(was.attribute.name)) {
          add(was.attribute.name, text, &was);
        }
      }
    }
    std::vector<std::pair<Bytes, Bytes>> fresh;
    forEachAttribute(node_, [&](Bytes key, Bytes text) {
      if (old.find(key) == nullptr && !isOwnName(key)) fresh.emplace_back(key, text);
    });
    std::sort(fresh.begin(), fresh.end());
    for (const auto& [key, text] : fresh) add(key, text, nullptr);
    checkNested();
    return std::move(written_);
  }

 private:
  std::string title() const { return "node " + shown(node_.name) + " (" + node_.op + ")"; }

  void add(Bytes key, Bytes text, const AttributeRecord* was) {
    Bytes message;
    Numbers numbers;
    const bool may_hold = was == nullptr || was->attribute.isGraph();
    if (may_hold && readNumbers(text, &numbers)) {
      message = holdGraphs(key, numbers, was);
    } else if (was != nullptr && attributeOf(*original_->node, key) == text) {
      message = was->attribute.message;
    } else {
      message = make(key, text, was);
    }
    written_.changed =
        written_.changed || was == nullptr || message.data() != was->attribute.message.data();
    written_.list.push_back({key, message});
  }

  /// Makes an attribute from its new text.
  Bytes make(Bytes key, Bytes text, const AttributeRecord* was) {
    if (isSummary(text)) {
      const Attribute* const found = originals_.summarised(text);
      if (found != nullptr) {
        return found->name == key ? found->message
                                  : arena_.emplace_back(withBody(found->message, kName, key));
      }
      throw UnsupportedError(title() + ": attribute " + shown(key) +
                             " is a summary of a long one that the file does not have: set it to "
                             "the list itself");
    }
    const bool typed = was != nullptr && was->attribute.reference.empty();
    MadeAttribute made =
        host_.attribute(node_, key, text, typed ? static_cast<int>(was->attribute.kind) : 0);
    if (!made.place) return arena_.emplace_back(std::move(made.message));
    const Bytes place = *made.place;
    const std::size_t slash = place.find('/');
    const Original* owner = originals_.find(place.substr(0, slash));
    if (owner != nullptr && owner->what == Original::kOperator && slash != Bytes::npos) {
      const Range& range = owner->record().attributes;
      for (uint32_t i = 0; i < range.count; ++i) {
        const Attribute& found = owner->graph->level.attributes[range.first + i].attribute;
        if (found.name == place.substr(slash + 1)) {
          return arena_.emplace_back(withBody(found.message, kName, key));
        }
      }
    }
    throw UnsupportedError(title() + ": attribute " + shown(key) + " refers to " + shown(place) +
                           ", which the file does not have");
  }

  /// Makes an attribute that holds nested graphs.
  Bytes holdGraphs(Bytes key, const Numbers& numbers, const AttributeRecord* was) {
    for (std::size_t number = numbers.first; number < numbers.end; ++number) {
      if (number >= used_.size() || used_[number]) {
        throw GraphError("attribute " + shown(key) + " of " + title() +
                         " refers to a nested graph that is missing or in another attribute; the "
                         "node has " +
                         std::to_string(used_.size()));
      }
      used_[number] = true;
    }
    const Range before = was == nullptr ? Range() : was->levels;
    const bool several =
        numbers.several || (was != nullptr && was->attribute.kind == Kind::kGraphs);
    std::vector<Bytes> graphs;
    bool kept = was != nullptr && numbers.end - numbers.first == before.count;
    for (std::size_t i = 0; i < numbers.end - numbers.first; ++i) {
      const OriginalGraph* graph =
          i < before.count ? &originals_.graphAt(before.first + i) : nullptr;
      const std::string number = several ? "[" + std::to_string(i) + "]" : "";
      const NestedGraph made = nested_(numbers.first + i, graph, std::string(key) + number);
      kept = kept && made.same;
      graphs.push_back(made.message);
    }
    if (kept) return was->attribute.message;
    std::string made;
    if (was == nullptr) {
      appendBody(kName, key, &made);
    } else {
      const auto keep = [](const Field& field) {
        return field.number != kG && field.number != kGraphs && field.number != kType;
      };
      appendFields(was->attribute.message, keep, &made);
    }
    for (const Bytes graph : graphs) appendBody(several ? kGraphs : kG, graph, &made);
    appendNumber(kType, static_cast<uint64_t>(several ? Kind::kGraphs : Kind::kGraph), &made);
    return arena_.emplace_back(std::move(made));
  }

  /// Checks that every nested graph is in an attribute.
  void checkNested() const {
    const auto unused = std::find(used_.begin(), used_.end(), false);
    if (unused == used_.end()) return;
    const std::string number = std::to_string(unused - used_.begin());
    throw GraphError("no attribute of " + title() + " refers to its nested graph " + number +
                     ": set the attribute it belongs to to 'subgraph[" + number + "]'");
  }

  const Node& node_;
  const Original* original_;
  const Originals& originals_;
  const NestedWriter& nested_;
  WriteHost& host_;
  Arena& arena_;
  WrittenAttributes written_;
  std::vector<bool> used_;  ///< nested graphs that are in an attribute
};

}  // namespace

bool isOwnName(Bytes key) {
  return key.size() >= 2 && key.substr(0, 2) == "__" && key.substr(key.size() - 2) == "__";
}

bool isReservedName(Bytes key) {
  if (!isOwnName(key)) return false;
  static constexpr Bytes kOwn[] = {keys::kId,       keys::kDomain, keys::kOverload, keys::kFormal,
                                   keys::kCaptured, keys::kOuter,  keys::kOpaque,   keys::kDefault};
  return std::find(std::begin(kOwn), std::end(kOwn), key) != std::end(kOwn);
}

WrittenAttributes writeAttributes(const Node& node, const Original* original,
                                  const Originals& originals, const NestedWriter& nested,
                                  WriteHost* host, Arena* arena) {
  return AttributeWriter(node, original, originals, nested, host, arena).write();
}

}  // namespace passlib::onnx
