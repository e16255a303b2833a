#include "onnx/types/annotations.h"

#include <utility>

#include "onnx/types/messages.h"
#include "onnx/wire/numbers.h"
#include "onnx/wire/output.h"

namespace passlib::onnx {
namespace {

/// What became of a value of the file.
struct Fate {
  Bytes name;  ///< at present; null for a value that is gone
  bool doubtful = false;
};

class Keeper {
 public:
  Keeper(const Draft& draft, const Names& names, const Changes& changes, const Settled& settled,
         Arena* arena)
      : draft_(draft),
        names_(names),
        changes_(changes),
        settled_(settled),
        arena_(arena) {}

  Annotations keep() {
    Annotations kept;
    if (draft_.file.values.empty() && draft_.file.annotations.empty()) return kept;
    noteOriginals();
    for (uint32_t i = 0; i < draft_.size(); ++i) noteRemaining(i);
    for (const Bytes value : draft_.file.values) {
      const Bytes old = bodyOf(value, numbers::kValueName);
      const Fate* fate = fates_.find(old);
      if (fate == nullptr) {
        kept.values.push_back({old, value, false});
      } else if (fate->name.data() != nullptr) {
        kept.values.push_back(
            {fate->name, withName(value, numbers::kValueName, fate->name, arena_), fate->doubtful});
      }
    }
    for (const Bytes annotation : draft_.file.annotations) {
      const Bytes made = renamed(annotation);
      if (made.data() != nullptr) kept.quantization.push_back(made);
    }
    return kept;
  }

 private:
  /// Notes all values of the file's graph as gone.
  void noteOriginals() {
    const Level& level = draft_.file.level;
    fates_ = NameMap<Fate>(level.nodes.size() + level.initializers.size() + level.sparse.size() +
                           draft_.file.inputs.size());
    for (const NodeRecord& node : level.nodes) {
      for (uint32_t i = 0; i < node.outputs.count; ++i) {
        fates_.insert(level.names[node.outputs.first + i], Fate());
      }
    }
    for (const Bytes value : draft_.file.inputs) {
      fates_.insert(bodyOf(value, numbers::kValueName), Fate());
    }
    for (const Initializer& initializer : level.initializers) {
      fates_.insert(initializer.tensor.name, Fate());
    }
    for (const auto& [name, has_input] : level.sparse) fates_.insert(name, Fate());
  }

  void note(Bytes old, Value value) {
    *fates_.insert(old, Fate()).first = Fate{names_.at(value), !settled_.has(value)};
  }

  void noteRemaining(uint32_t position) {
    const Original* claim = draft_.claim(position);
    if (claim == nullptr) return;
    const Node& node = draft_.node(position);
    if (isVariable(node)) {
      if (!changes_.isChanged(*claim)) note(claim->node->name, {position, 0});
      return;
    }
    if (claim->record().op != node.op || node.attrs != claim->node->attrs) return;
    const Range& outputs = claim->record().outputs;
    for (uint32_t i = 0; i < outputs.count; ++i) {
      const Bytes name = claim->name(outputs, i);
      if (!name.empty()) note(name, {position, i});
    }
  }

  /// Returns an annotation with the present names of values; null if one of them is gone.
  Bytes renamed(Bytes annotation) {
    const auto nameOf = [this](Bytes old) {
      const Fate* fate = fates_.find(old);
      return fate == nullptr ? old : fate->name;
    };
    const Bytes old = bodyOf(annotation, numbers::kTensorNameOf);
    const Bytes name = nameOf(old);
    bool gone = name.data() == nullptr;
    bool changed = name != old;
    std::string entries;
    forEachBody(annotation, numbers::kParameterNames, [&](Bytes entry) {
      const Bytes was = bodyOf(entry, numbers::kValue);
      const Bytes now = nameOf(was);
      gone = gone || now.data() == nullptr;
      changed = changed || now != was;
      if (!gone) {
        appendBody(numbers::kParameterNames,
                   now == was ? std::string(entry) : withBody(entry, numbers::kValue, now),
                   &entries);
      }
    });
    if (gone) return Bytes();
    if (!changed) return annotation;
    std::string made;
    appendBody(numbers::kTensorNameOf, name, &made);
    const auto keep = [](const Field& field) {
      return field.number != numbers::kTensorNameOf && field.number != numbers::kParameterNames;
    };
    appendFields(annotation, keep, &made);
    return arena_->emplace_back(made + entries);
  }

  const Draft& draft_;
  const Names& names_;
  const Changes& changes_;
  const Settled& settled_;
  Arena* arena_;
  NameMap<Fate> fates_;
};

}  // namespace

Annotations keepAnnotations(const Draft& draft, const Names& names, const Changes& changes,
                            const Settled& settled, Arena* arena) {
  return Keeper(draft, names, changes, settled, arena).keep();
}

}  // namespace passlib::onnx
