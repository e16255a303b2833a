#include "onnx/naming/names.h"

#include <algorithm>

#include "errors.h"
#include "onnx/reading/level_values.h"
#include "onnx/wire/numbers.h"

namespace passlib::onnx {
namespace {

/// The outputs of the operator of the file that a node stands for.
struct OldOutputs {
  const Original* original;
  uint32_t count;
  Bytes operator[](uint32_t output) const {
    return original->name(original->record().outputs, output);
  }
};

class Namer {
 public:
  Namer(const Draft& draft, FreshNames* fresh, Arena* arena)
      : draft_(draft), fresh_(*fresh), arena_(*arena) {}

  Names choose() {
    countValues();
    nameCaptured();
    std::vector<Bytes> wanted = findWanted();
    for (std::size_t i = 0; i < draft_.heads.size(); ++i) {
      if (wanted[i].data() == nullptr) continue;
      const auto [value, is_new] = first_.insert(wanted[i], draft_.heads[i]);
      // The file has one value there, now there are two.
      if (!is_new && !(*value == draft_.heads[i])) wanted[i] = Bytes();
    }
    nameVariables();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i].data() == nullptr) continue;
      reserved_.insert(wanted[i], true);
      Bytes& name = names_.of[names_.place(draft_.heads[i])];
      if (name.data() == nullptr) name = wanted[i];
    }
    nameOperators();
    nameHeads(wanted);
    return std::move(names_);
  }

 private:
  OldOutputs oldOutputs(std::size_t position) const {
    const Original* original = draft_.original(position);
    return {original, original == nullptr ? 0 : original->record().outputs.count};
  }

  void countValues() {
    std::vector<uint32_t> counts(draft_.size(), 0);
    const auto count = [&](const Value& value) {
      counts[value.node] = std::max(counts[value.node], value.output + 1);
    };
    for (const Value& use : draft_.uses) count(use);
    for (const Value& head : draft_.heads) count(head);
    names_.firsts.reserve(draft_.size() + 1);
    uint32_t sum = 0;
    for (std::size_t i = 0; i < draft_.size(); ++i) {
      names_.firsts.push_back(sum);
      uint32_t stated = 1;
      if (draft_.isVariable(i)) {
        if (counts[i] > 1) {
          throw GraphError("variable " + shown(draft_.node(i).name) +
                           " is used as if it had several values");
        }
      } else if (draft_.keepsOperator(i)) {
        stated = oldOutputs(i).count;
      } else {
        stated = static_cast<uint32_t>(std::max(draft_.node(i).num_outputs, 1));
      }
      sum += std::max(stated, counts[i]);
    }
    names_.firsts.push_back(sum);
    names_.of.resize(sum);
  }

  bool isCaptured(Bytes name) const { return captured_.find(name) != nullptr; }
  bool isHidden(Bytes name) const { return isCaptured(name) || draft_.around.hides(name); }

  /// Names the variables of a nested graph that stand for values from outside.
  void nameCaptured() {
    const std::vector<Bytes>& around = draft_.around.inputs;
    if (around.empty()) return;
    for (std::size_t i = 0; i < draft_.size(); ++i) {
      if (!draft_.isOuter(i) || draft_.isAbsent(i)) continue;
      const Node& node = draft_.node(i);
      const Bytes outer = attributeOf(node, keys::kOuter);
      std::size_t number = 0;
      if (!parsePosition(outer, &number) || number >= around.size()) {
        throw GraphError("variable " + shown(node.name) + " of a nested graph stands for input " +
                         std::string(outer) + " of the node around it, which has " +
                         std::to_string(around.size()) + " inputs");
      }
      names_.of[names_.firsts[i]] = around[number];
      captured_.insert(around[number], true);
    }
  }

  /// Returns the preferred name of each output of the graph; null if any will do.
  std::vector<Bytes> findWanted() {
    std::vector<Bytes> wanted = byPlaceOrValue();
    if (draft_.around.inputs.empty()) return wanted;
    // The names of a nested graph's outputs do not matter outside of it.
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i].data() == nullptr) continue;
      const bool another = isCaptured(wanted[i]) && names_.at(draft_.heads[i]) != wanted[i];
      if (another || draft_.around.hides(wanted[i])) wanted[i] = Bytes();
    }
    return wanted;
  }

  std::vector<Bytes> byPlaceOrValue() {
    std::vector<Bytes> left;
    if (draft_.present.of_file) {
      left = draft_.file.level.outputs;
    } else {
      for (const Present::Output& output : draft_.present.outputs) left.push_back(output.name);
    }
    if (draft_.heads.size() == left.size() && draft_.present.by_place) return left;
    // Outputs were added or removed: the remaining ones are recognised by their values.
    NameMap<uint32_t> counts;
    for (const Bytes name : left) ++*counts.insert(name, 0).first;
    std::vector<Bytes> wanted;
    std::vector<bool> taken(draft_.present.outputs.size(), false);
    for (const Value& head : draft_.heads) {
      const Bytes before = nameBefore(head, &taken);
      const auto [count, is_new] = counts.insert(before, 0);
      wanted.push_back(*count > 0 ? before : Bytes());
      if (*count > 0) --*count;
    }
    return wanted;
  }

  /// Returns the name that a value has as an output at present, or in the file. Of several, which
  /// one value has when a pass has joined two, each is returned once.
  Bytes nameBefore(const Value& value, std::vector<bool>* taken) const {
    const Node& node = draft_.node(value.node);
    const Original* claim = draft_.claim(value.node);
    if (draft_.present.of_file) {
      if (draft_.isVariable(value.node)) return node.name;
      const OldOutputs old = oldOutputs(value.node);
      return value.output < old.count ? old[value.output] : Bytes("");
    }
    const Bytes key = claim == nullptr ? Bytes("") : attributeOf(node, keys::kId);
    for (std::size_t i = 0; i < taken->size(); ++i) {
      const Present::Output& other = draft_.present.outputs[i];
      const bool same =
          key.empty() ? other.key.empty() && other.node == node.name : Bytes(other.key) == key;
      if (!same || other.output != value.output || (*taken)[i]) continue;
      (*taken)[i] = true;
      return other.name;
    }
    return "";
  }

  /// Names the other variables.
  void nameVariables() {
    for (std::size_t i = 0; i < draft_.size(); ++i) {
      if (!draft_.isVariable(i)) continue;
      Bytes& name = names_.of[names_.firsts[i]];
      if (name.data() != nullptr) continue;
      if (draft_.isAbsent(i)) {
        name = "";
        continue;
      }
      const Bytes own = draft_.isReferred(i) ? draft_.claim(i)->nameInFile() : draft_.nameOf(i);
      const Value* output = first_.find(own);
      const bool another = output != nullptr && !(*output == Value{static_cast<uint32_t>(i), 0});
      if (another || isHidden(own)) {
        const Original* claim = draft_.claim(i);
        if (claim != nullptr && claim->what == Original::kInput && claim->graph->place.empty()) {
          throw GraphError("input " + shown(own) +
                           " has the name of an output that another node computes; rename the "
                           "input");
        }
        name = fresh_.fresh(own);
      } else {
        name = own;
        if (isAsInFile(i) && draft_.keepsName(i)) continue;
        fresh_.use(name);
      }
      reserved_.insert(name, true);
    }
  }

  void nameOperators() {
    std::vector<bool> used(names_.of.size(), false);
    for (const Value& use : draft_.uses) used[names_.place(use)] = true;
    for (const Value& head : draft_.heads) used[names_.place(head)] = true;
    for (std::size_t i = 0; i < draft_.size(); ++i) {
      if (draft_.isVariable(i)) continue;
      const OldOutputs outputs = oldOutputs(i);
      const uint32_t count = names_.count(i);
      for (uint32_t k = 0; k < count; ++k) {
        Bytes& name = names_.of[names_.firsts[i] + k];
        if (name.data() != nullptr) continue;
        const Bytes old = k < outputs.count ? outputs[k] : Bytes();
        if (old.data() != nullptr && old.empty() && !used[names_.firsts[i] + k]) {
          name = "";
        } else if (!old.empty() && !isHidden(old) && reserve(i, old)) {
          name = old;
        } else {
          name = fresh_.fresh(wishOf(draft_.node(i), k, count));
        }
      }
    }
  }

  /// Whether a node stands for one of the file, and all that do are of the same graph. There, each
  /// value has another name, and new names avoid these: they need not be compared.
  bool isAsInFile(std::size_t position) const {
    return draft_.claim(position) != nullptr && !draft_.isMixed();
  }

  /// Claims the name that a value has in the file; false if another value has it.
  bool reserve(std::size_t position, Bytes name) {
    if (isAsInFile(position)) return reserved_.find(name) == nullptr;
    return reserved_.insert(name, true).second;
  }

  Bytes wishOf(const Node& node, uint32_t output, uint32_t count) {
    if (count > 1) return arena_.emplace_back(node.name + "_" + std::to_string(output));
    return node.name.empty() ? node.op : node.name;
  }

  void nameHeads(const std::vector<Bytes>& wanted) {
    NameSet known;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const Bytes value = names_.at(draft_.heads[i]);
      Bytes name = wanted[i].empty() ? value : wanted[i];
      // A nested graph can return a value from outside only as a copy.
      if (wanted[i].data() == nullptr && (known.find(value) != nullptr || isCaptured(value))) {
        name = fresh_.fresh(value);
      }
      known.insert(name, true);
      names_.outputs.push_back(name);
      if (name != value) names_.copies.emplace_back(value, name);
    }
  }

  const Draft& draft_;
  FreshNames& fresh_;
  Arena& arena_;
  Names names_;
  NameSet captured_;
  NameMap<Value> first_;  ///< of the values that are outputs, by wanted name
  NameSet reserved_;      ///< names that operators cannot have, besides those `isAsInFile`
};

}  // namespace

Names chooseNames(const Draft& draft, FreshNames* fresh, Arena* arena) {
  return Namer(draft, fresh, arena).choose();
}

Bytes nameInFile(const Draft& draft, Value value) {
  const Original* named = draft.named[value.node];
  const bool is_variable = draft.isVariable(value.node);
  if (named == nullptr || is_variable == (named->what == Original::kOperator)) return Bytes();
  if (is_variable) return named->node->name;
  const Range& outputs = named->record().outputs;
  return value.output < outputs.count ? named->name(outputs, value.output) : Bytes();
}

}  // namespace passlib::onnx
