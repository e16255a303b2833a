#include "onnx/types/annotations.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "onnx/original/lineage.h"
#include "onnx/reading/name_index.h"
#include "onnx/types/messages.h"
#include "onnx/wire/numbers.h"
#include "onnx/wire/output.h"

namespace passlib::onnx {
namespace {

/// The fate of a value of the file.
struct Fate {
  Bytes name;  ///< at present; null for a value that is gone
  bool doubtful = false;
  bool changed = false;   ///< it has other elements
  bool replaced = false;  ///< it is a constant that a pass has changed
  Value place{};          ///< unless it is gone
};

class Keeper {
 public:
  Keeper(const Draft& draft, const Names& names, const std::vector<bool>& same,
         const Changes& changes, const Settled& settled, Arena* arena)
      : draft_(draft),
        names_(names),
        same_(same),
        changes_(changes),
        settled_(settled),
        arena_(arena) {}

  Annotations keep() {
    Annotations kept;
    if (draft_.file.values.empty() && draft_.file.annotations.empty()) return kept;
    listOriginals();
    for (uint32_t i = 0; i < draft_.size(); ++i) noteRemaining(i);
    if (draft_.is_main) noteRestored();
    kept.values.reserve(draft_.file.values.size());
    for (const Bytes value : draft_.file.values) {
      const Bytes old = bodyOf(value, numbers::kValueName);
      const Fate* fate = fateOf(old);
      if (fate == nullptr) {
        kept.values.push_back({old, value});
      } else if (fate->name.data() != nullptr && !fate->replaced) {
        kept.values.push_back({fate->name, withName(value, numbers::kValueName, fate->name, arena_),
                               fate->doubtful, fate->place});
      }
    }
    for (const Bytes annotation : draft_.file.annotations) {
      const Bytes made = renamed(annotation);
      if (made.data() == nullptr) continue;
      const Bytes name = bodyOf(made, numbers::kTensorNameOf);
      if (annotated_.insert(name, true).second) kept.quantization.push_back(made);
    }
    return kept;
  }

 private:
  /// Lists all values of the file's graph: outputs of nodes, constants by kind, inputs.
  void listOriginals() {
    const Level& level = draft_.file.level;
    std::vector<Bytes> names;
    names.reserve(level.nodes.size() + draft_.file.inputs.size() + level.initializers.size() +
                  level.sparse.size());
    firsts_.reserve(level.nodes.size());
    for (const NodeRecord& node : level.nodes) {
      firsts_.push_back(names.size());
      for (uint32_t i = 0; i < node.outputs.count; ++i) {
        names.push_back(level.names[node.outputs.first + i]);
      }
    }
    initializers_ = names.size();
    for (const Initializer& initializer : level.initializers) {
      names.push_back(initializer.tensor.name);
    }
    sparse_ = names.size();
    for (const auto& [name, has_input] : level.sparse) names.push_back(name);
    // Behind the constants, which some inputs have as defaults: the first place of a name counts.
    inputs_ = names.size();
    for (const Bytes value : draft_.file.inputs) {
      names.push_back(bodyOf(value, numbers::kValueName));
    }
    fates_.resize(names.size());
    places_ = NameIndex(std::move(names));
  }

  /// Returns what became of a value of the file; null if it has none of that name.
  const Fate* fateOf(Bytes old) {
    if (const Fate* other = others_.find(old)) return other;
    const std::size_t place = places_.find(old);
    return place == NameIndex::kNone ? nullptr : &fates_[place];
  }

  /// Returns the place of a value in the lists of the file's graph.
  std::size_t placeOf(const Original& original, uint32_t output) const {
    switch (original.what) {
      case Original::kInput:
        return inputs_ + original.number;
      case Original::kInitializer:
        return initializers_ + original.number;
      case Original::kSparse:
        return sparse_ + original.number;
      default:
        return firsts_[original.number] + output;
    }
  }

  void note(const Original& original, uint32_t output, Bytes old, Value value, bool changed) {
    const Fate fate{names_.at(value), !settled_.has(value), changed, changed && original.isTensor(),
                    value};
    if (original.graph == &draft_.file) {
      fates_[placeOf(original, output)] = fate;
    } else {  // a node that a pass moved from another graph
      *others_.insert(old, fate).first = fate;
    }
  }

  void noteRemaining(uint32_t position) {
    const Original* claim = draft_.claim(position);
    if (claim == nullptr) return;
    if (claim->what != Original::kOperator) {
      note(*claim, 0, claim->node->name, {position, 0},
           claim->isTensor() && changes_.isChanged(*claim));
      return;
    }
    if (!same_[position]) return;
    const bool changed = takesOtherConstants(position, *claim);
    const Range& outputs = claim->record().outputs;
    for (uint32_t i = 0; i < outputs.count; ++i) {
      const Bytes name = claim->name(outputs, i);
      if (!name.empty()) note(*claim, i, name, {position, i}, changed);
    }
  }

  /// Whether an operator has weights that it does not have in the file.
  bool takesOtherConstants(uint32_t position, const Original& original) const {
    const Range& formal = original.record().inputs;
    const auto count = static_cast<uint32_t>(draft_.end(position) - draft_.begin(position));
    for (uint32_t i = 0; i < count; ++i) {
      const Value use = draft_.begin(position)[i];
      if (!draft_.isVariable(use.node) || draft_.isAbsent(use.node)) continue;
      const Original* const claim = draft_.claim(use.node);
      if (claim == nullptr) {
        if (!draft_.isOuter(use.node)) return true;
      } else if (claim->isTensor() &&
                 (changes_.isChanged(*claim) ||
                  (i < formal.count && claim->nameInFile() != original.name(formal, i)))) {
        return true;
      }
    }
    return false;
  }

  /// Notes the constants that are written though no node stands for them.
  void noteRestored() {
    for (const Original* each : draft_.originals.referred()) {
      Fate& fate = fates_[placeOf(*each, 0)];
      if (fate.name.data() == nullptr) fate.name = each->nameInFile();
    }
  }

  /// Returns the present name of a value of the file for its annotation: of itself, of the value
  /// that stands for it, or of an output of the graph; null if it is gone.
  Bytes annotatedName(Bytes old) {
    const Fate* const fate = fateOf(old);
    if (fate == nullptr) return old;
    if (fate->name.data() != nullptr && !fate->changed) return fate->name;
    if (!heirs_) findHeirs();
    if (const Bytes* heir = heirs_->find(old)) return *heir;
    const std::vector<Bytes>& outputs = names_.outputs;
    return std::find(outputs.begin(), outputs.end(), old) == outputs.end() ? Bytes() : old;
  }

  void findHeirs() {
    heirs_.emplace();
    for (uint32_t i = 0; i < draft_.size(); ++i) {
      if (draft_.isVariable(i) || names_.count(i) != 1) continue;
      const auto lineage = lineageOf(draft_.node(i), draft_.claim(i), draft_.originals);
      if (lineage.empty() || lineage.back()->graph != &draft_.file) continue;
      const Range& outputs = lineage.back()->record().outputs;
      if (outputs.count == 1) heirs_->insert(lineage.back()->name(outputs, 0), names_.at({i, 0}));
    }
  }

  /// Returns an annotation with the present names of values; null if one of them is gone.
  Bytes renamed(Bytes annotation) {
    const auto nameOf = [this](Bytes old) {
      const Fate* fate = fateOf(old);
      return fate == nullptr ? old : fate->name;
    };
    const Bytes old = bodyOf(annotation, numbers::kTensorNameOf);
    const Bytes name = annotatedName(old);
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
  const std::vector<bool>& same_;
  const Changes& changes_;
  const Settled& settled_;
  Arena* arena_;
  NameIndex places_;
  std::vector<Fate> fates_;          ///< by place
  std::vector<std::size_t> firsts_;  ///< places of the first outputs of nodes
  std::size_t inputs_ = 0;           ///< of the first of each kind
  std::size_t initializers_ = 0;
  std::size_t sparse_ = 0;
  NameMap<Fate> others_;  ///< of values of other graphs, by name
  NameMap<bool> annotated_;
  std::optional<NameMap<Bytes>> heirs_;  ///< names of values that stand for others
};

}  // namespace

Annotations keepAnnotations(const Draft& draft, const Names& names, const std::vector<bool>& same,
                            const Changes& changes, const Settled& settled, Arena* arena) {
  return Keeper(draft, names, same, changes, settled, arena).keep();
}

}  // namespace passlib::onnx
