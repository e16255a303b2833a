#include "onnx/writing/graph.h"

#include <algorithm>
#include <map>

#include "errors.h"
#include "onnx/reading/level_values.h"
#include "onnx/types/messages.h"
#include "onnx/types/stated.h"
#include "onnx/wire/numbers.h"
#include "onnx/wire/output.h"
#include "onnx/writing/assembly.h"

namespace passlib::onnx {

namespace {

const Present kOfTheFile{};
const Surroundings kNoSurroundings{};

/// Returns how many inputs of a node with nested graphs are the operator's own.
std::size_t formalInputs(const Node& node) {
  const std::size_t inputs = node.inputs.size();
  const Bytes stated = attributeOf(node, keys::kFormal);
  const Bytes captured = attributeOf(node, keys::kCaptured);
  if (node.subgraphs.empty() || stated.data() == nullptr) return inputs;
  std::size_t own = 0;
  std::size_t others = 0;
  const bool numbers = parsePosition(stated, &own) &&
                       (captured.data() == nullptr || parsePosition(captured, &others));
  if (!numbers || own + others != inputs) {
    throw GraphError("node " + shown(node.name) + " (" + node.op + ") has " +
                     std::to_string(inputs) + " inputs, but its attributes " + keys::kFormal +
                     " and " + keys::kCaptured + " are " + std::string(stated) + " and " +
                     std::string(captured.data() == nullptr ? Bytes("0") : captured) +
                     "; a pass that adds or removes inputs of a node with nested graphs must "
                     "update them");
  }
  return own;
}

/// Whether a file states the type of a value, and nothing that contradicts what is known of it.
bool agrees(const InputType& stated, const StatedType& known) {
  if (stated.other || !stated.code || stated.code != known.code) return false;
  if (!known.dims) return true;
  if (!stated.dims || stated.dims->size() != known.dims->size()) return false;
  return std::equal(
      stated.dims->begin(), stated.dims->end(), known.dims->begin(),
      [](int64_t one, int64_t other) { return one < 0 || other < 0 || one == other; });
}

/// Returns whether any node of a graph has nested graphs.
bool hasNested(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node* node) { return !node->subgraphs.empty(); });
}

}  // namespace

/// Writes one graph.
class LevelWriter {
 public:
  LevelWriter(GraphWriter* writer, const Draft& draft, std::string place)
      : writer_(*writer),
        draft_(draft),
        place_(std::move(place)),
        written_{&draft.file, chooseNames(draft, &writer->fresh_, writer->arena_),
                 {},          {},
                 {},          {},
                 {},          {},
                 {},          {},
                 {}},
        variables_(draft, written_.names, writer->host_, &writer->changes_, writer->arena_),
        settled_(draft, written_.names),
        same_operators_(draft.size(), false),
        titles_(draft.titles(writer->arena_)) {
    written_.whole = &writer->nodes.whole;
    if (hasNested(draft.graph)) hideInside();
  }

  WrittenGraph write() {
    writeNodes();
    if (draft_.is_main) noteLost();
    written_.initializers = variables_.initializers();
    const RenewedTypes* renewed = writer_.host_->renewed(place_);
    describeOutputs(renewed);
    written_.inputs = variables_.inputs(writer_.originals_.irVersion() < numbers::kInputsAlso);
    written_.sparse = variables_.sparse();
    Annotations kept = keepAnnotations(draft_, written_.names, same_operators_, writer_.changes_,
                                       settled_, writer_.arena_);
    written_.annotations = std::move(kept.quantization);
    written_.values.reserve(kept.values.size() + described_.size());
    for (const Description& value : kept.values) addValue(value, renewed);
    for (const auto& [name, type] : described_) {
      const std::vector<Bytes>& outputs = written_.names.outputs;
      if (std::find(outputs.begin(), outputs.end(), name) != outputs.end()) continue;
      written_.values.push_back(writer_.arena_->emplace_back(valueInfo(name, *type)));
    }
    return std::move(written_);
  }

 private:
  void addValue(const Description& value, const RenewedTypes* renewed) {
    const auto described = described_.find(value.name);
    if (described != described_.end()) {
      const StatedType* const type = described->second;
      described_.erase(described);
      if (value.doubtful) {
        written_.values.push_back(writer_.arena_->emplace_back(valueInfo(value.name, *type)));
        return;
      }
    }
    if (value.doubtful) {
      noteDoubtful(value.name, value.place, {});
      writer_.doubts_more = true;
    }
    if (renewed != nullptr) {
      const auto found = renewed->values.find(std::string(value.name));
      if (found != renewed->values.end()) {
        if (found->second) {
          written_.values.push_back(writer_.arena_->emplace_back(
              withBody(value.message, numbers::kValueType, *found->second)));
        }
        return;
      }
    }
    written_.values.push_back(value.message);
  }

  /// Collects the names that nested graphs must not give to values of their own: new ones, and
  /// those that came from a nested graph, beside which another one may use the same.
  void hideInside() {
    if (draft_.around.hidden != nullptr) hidden_ = *draft_.around.hidden;
    for (uint32_t i = 0; i < draft_.size(); ++i) {
      const Original* const named = draft_.named[i];
      const bool moved = named != nullptr && named->graph != &draft_.file && !draft_.isOuter(i);
      for (uint32_t k = 0; k < written_.names.count(i); ++k) {
        const Bytes name = written_.names.at({i, k});
        const Bytes old = nameInFile(draft_, {i, k});
        if (moved || old.data() == nullptr || name != old) hidden_.insert(name, true);
      }
    }
  }

  void writeNodes() {
    written_.nodes.reserve(draft_.size());
    for (const uint32_t position : draft_.order()) {
      if (!draft_.isVariable(position)) {
        writeNode(position);
        continue;
      }
      if (!draft_.isAbsent(position) && !draft_.isOuter(position)) {
        const Bytes constant = variables_.add(position);
        if (constant.data() != nullptr) written_.nodes.push_back(constant);
      }
      settled_.addVariable(position, writer_.changes_);
    }
    if (draft_.is_main) restoreReferred();
    for (const auto& [value, output] : written_.names.copies) {
      std::string made;
      appendBody(numbers::kNodeInput, value, &made);
      appendBody(numbers::kNodeOutput, output, &made);
      const std::string& wish = writer_.arena_->emplace_back(std::string(output) + "_copy");
      appendBody(numbers::kNodeName, writer_.fresh_.fresh(wish), &made);
      appendBody(numbers::kOpType, "Identity", &made);
      written_.nodes.push_back(writer_.arena_->emplace_back(std::move(made)));
      writer_.nodes.domains.emplace("");
      noteUnsettled(false);
    }
  }

  /// Writes the constants that are gone and that more than inference refers to.
  void restoreReferred() {
    for (const Original* each : writer_.originals_.referred()) {
      const auto stands = [each](const Original* claim) { return claim == each; };
      if (std::any_of(draft_.claims.begin(), draft_.claims.end(), stands)) continue;
      const Bytes name = each->nameInFile();
      const std::vector<Bytes>& names = written_.names.of;
      if (std::find(names.begin(), names.end(), name) != names.end()) {
        throw GraphError("value " + shown(name) +
                         " has the name of a weight that the passes removed, and to which more "
                         "than inference refers; give it another name");
      }
      const Bytes constant = variables_.restore(*each);
      if (constant.data() != nullptr) written_.nodes.push_back(constant);
    }
  }

  /// Notes values outside of inference that are gone or altered.
  void noteLost() {
    const References& references = writer_.originals_.references();
    written_.lost = lostOf(references.training, false);
    written_.alters = lostOf(references.training, true).data() != nullptr ||
                      lostOf(references.parameters, true).data() != nullptr;
  }

  /// Returns the first of these values of the file that is gone, or `alike`: that is computed by
  /// another operator or with other weights; null if there is none.
  Bytes lostOf(const std::vector<Bytes>& wanted, bool alike) const {
    if (wanted.empty()) return Bytes();
    NameSet known;
    for (uint32_t i = 0; i < draft_.size(); ++i) {
      if (alike && !isAlike(i)) continue;
      for (uint32_t k = 0; k < written_.names.count(i); ++k) {
        known.insert(written_.names.at({i, k}), true);
      }
    }
    for (const Bytes name : written_.names.outputs) known.insert(name, true);
    for (const Original* each : writer_.originals_.referred()) {
      known.insert(each->nameInFile(), true);
    }
    const NameMap<bool>& before = writer_.originals_.names();
    const auto gone = std::find_if(wanted.begin(), wanted.end(), [&](Bytes name) {
      return before.find(name) != nullptr && known.find(name) == nullptr;
    });
    return gone == wanted.end() ? Bytes() : *gone;
  }

  /// Whether a node is a variable, or the file's operator with the constants that it has there.
  bool isAlike(uint32_t position) const {
    if (draft_.isVariable(position)) return true;
    const Original* const original = draft_.original(position);
    if (original == nullptr || !same_operators_[position]) return false;
    const auto inputs = static_cast<std::size_t>(draft_.end(position) - draft_.begin(position));
    if (inputs < original->record().inputs.count) return false;
    return std::all_of(draft_.begin(position), draft_.end(position), [&](const Value& use) {
      return !draft_.isVariable(use.node) || draft_.isAbsent(use.node) ||
             settled_.origin(use).data() != nullptr;
    });
  }

  /// Notes the last node as one that is not as in the file.
  void noteUnsettled(bool typed_as_before) {
    written_.typed_as_before.push_back(typed_as_before);
    written_.unsettled.push_back(static_cast<uint32_t>(written_.nodes.size() - 1));
  }

  void writeNode(uint32_t position) {
    const Node& node = draft_.node(position);
    const Names& names = written_.names;
    Surroundings inside;
    NodeNames& own = node_names_;
    own.title = titles_[position];
    own.inputs.clear();
    own.outputs.clear();
    for (const Value* use = draft_.begin(position); use != draft_.end(position); ++use) {
      own.inputs.push_back(names.at(*use));
      if (!node.subgraphs.empty()) inside.origins.push_back(settled_.origin(*use));
    }
    if (!node.subgraphs.empty()) inside.inputs = own.inputs;
    inside.hidden = &hidden_;
    own.inputs.resize(formalInputs(node));
    for (uint32_t k = 0; k < names.count(position); ++k) {
      own.outputs.push_back(names.at({position, k}));
    }
    const std::string number = place_ + std::to_string(written_.nodes.size()) + ".";
    const NestedWriter nested = [&](std::size_t graph, const OriginalGraph* original,
                                    const std::string& place) {
      return writer_.writeNested(*node.subgraphs[graph], original, inside, number + place + ".");
    };
    const Original* original = draft_.original(position);
    describeResults(node, own.outputs);
    const WrittenNode written = writer_.nodes.write(node, original, own, nested);
    written_.nodes.push_back(written.message);
    settled_.addOperator(position, written.same_attributes);
    same_operators_[position] = written.same_operator;
    const bool settled =
        original != nullptr && names.count(position) != 0 && settled_.has({position, 0});
    // Other names of the same values change nothing.
    const bool same = settled && own.inputs.size() == original->record().inputs.count &&
                      own.outputs.size() == original->record().outputs.count;
    if (!same) noteUnsettled(settled);
  }

  /// Returns the description of an output that the file states for a name; null if none.
  void describeOutputs(const RenewedTypes* renewed) {
    const std::vector<Bytes>& outputs = written_.names.outputs;
    if (const OriginalGraph* copied = draft_.copied()) {
      if (copied->outputs.size() == outputs.size()) {
        for (std::size_t i = 0; i < outputs.size(); ++i) {
          addOutput(outputs[i], draft_.heads[i], copied->outputs[i], true, renewed);
        }
        return;
      }
    }
    if (isAsInFile()) {
      written_.outputs = draft_.file.outputs;
      return;
    }
    NameMap<Bytes> described;
    for (const auto* list : {&draft_.file.inputs, &draft_.file.values, &draft_.file.outputs}) {
      for (const Bytes value : *list) {
        *described.insert(bodyOf(value, numbers::kValueName), value).first = value;
      }
    }
    NameMap<Bytes> held;
    for (const WrittenInitializer& each : written_.initializers) {
      *held.insert(each.name, each.message).first = each.message;
    }
    const bool in_place = draft_.present.of_file && draft_.present.by_place &&
                          draft_.file.outputs.size() == outputs.size();
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Bytes origin = settled_.origin(draft_.heads[i]);
      const Bytes* known = origin.data() == nullptr ? nullptr : described.find(origin);
      const Bytes* tensor = held.find(outputs[i]);
      if (known != nullptr) {
        addOutput(outputs[i], draft_.heads[i], *known, false, renewed);
      } else if (tensor != nullptr) {
        const Tensor like = readTensor(*tensor);
        addOutput(outputs[i], draft_.heads[i],
                  writer_.arena_->emplace_back(valueInfo(outputs[i], {like.type, like.dims})),
                  false, renewed);
      } else {
        const Bytes* stated = in_place ? &draft_.file.outputs[i] : described.find(outputs[i]);
        const bool settled =
            in_place && settled_.standsFor(draft_.heads[i], draft_.file.level.outputs[i], true);
        addOutput(outputs[i], draft_.heads[i],
                  stated != nullptr
                      ? *stated
                      : Bytes(writer_.arena_->emplace_back(valueInfo(outputs[i], {}))),
                  !settled, renewed);
      }
    }
  }

  /// Whether the outputs have the names and the values that they have in the file.
  bool isAsInFile() const {
    const std::vector<Bytes>& outputs = written_.names.outputs;
    const std::vector<Bytes>& old = draft_.file.level.outputs;
    if (outputs != old) return false;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Bytes origin = settled_.origin(draft_.heads[i]);
      if (origin.data() == nullptr || origin != old[i]) return false;
    }
    return true;
  }

  void noteDoubtful(Bytes name, const Value& place, Bytes output) {
    Node* const node = draft_.graph.nodes[place.node];
    writer_.doubtful.push_back(
        {place_, name, NodeEntry(node, static_cast<int>(place.output)), output});
  }

  void addOutput(Bytes name, const Value& head, Bytes description, bool doubtful,
                 const RenewedTypes* renewed) {
    Bytes message = withName(description, numbers::kValueName, name, writer_.arena_);
    const auto made = doubtful ? described_.find(name) : described_.end();
    if (made != described_.end()) {
      if (!agrees(typeOf(bodyOf(description, numbers::kValueType)), *made->second)) {
        const std::string told = valueInfo(name, *made->second);
        message = writer_.arena_->emplace_back(
            withBody(message, numbers::kValueType, bodyOf(told, numbers::kValueType)));
      }
      written_.outputs.push_back(message);
      return;
    }
    if (doubtful) {
      noteDoubtful(name, head, description);
      writer_.doubts_more = writer_.doubts_more || !place_.empty();
    }
    if (renewed != nullptr) {
      const auto found = renewed->outputs.find(std::string(name));
      if (found != renewed->outputs.end()) {
        message =
            writer_.arena_->emplace_back(withBody(message, numbers::kValueType, found->second));
      }
    }
    written_.outputs.push_back(message);
  }

  GraphWriter& writer_;
  const Draft& draft_;
  std::string place_;
  WrittenGraph written_;
  Variables variables_;
  Settled settled_;
  /// Notes the types that the host states of a node's results.
  void describeResults(const Node& node, const std::vector<Bytes>& names) {
    const std::vector<StatedType>* const types = writer_.host_->results(node);
    if (types == nullptr) return;
    for (std::size_t i = 0; i < std::min(types->size(), names.size()); ++i) {
      if ((*types)[i].code && !names[i].empty()) described_[names[i]] = &(*types)[i];
    }
  }

  std::map<Bytes, const StatedType*> described_;  ///< by name of the value
  std::vector<bool> same_operators_;  ///< by position: operator and attributes are the file's
  std::vector<Bytes> titles_;
  NameSet hidden_;
  NodeNames node_names_;  ///< of the node that is being written
};

WrittenGraph GraphWriter::writeMain(const Graph& graph, const Present& present) {
  if (nestingDepth(graph) > kDeepestNesting) {
    throw UnsupportedError("the graph has nested graphs more than " +
                           std::to_string(kDeepestNesting) +
                           " levels deep, which no reader of ONNX files accepts");
  }
  const Draft draft(graph, originals_, &originals_.main(), &taken_, kNoSurroundings, present);
  return LevelWriter(this, draft, "").write();
}

NestedGraph GraphWriter::writeNested(const Graph& graph, const OriginalGraph* original,
                                     const Surroundings& around, const std::string& place) {
  const Draft draft(graph, originals_, original, &taken_, around, kOfTheFile);
  const WrittenGraph written = LevelWriter(this, draft, place).write();
  if (original != nullptr && isSame(written)) return {original->message, true};
  const Pieces pieces = assembleGraph(written, kWhole);
  std::string* text = &arena_->emplace_back(pieces.size(), '\0');
  pieces.copyTo(text->data());
  return {*text, false};
}

}  // namespace passlib::onnx
