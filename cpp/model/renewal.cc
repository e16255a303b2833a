#include "model/renewal.h"

#include <optional>
#include <utility>

#include "onnx/wire/numbers.h"

namespace passlib::model {

namespace {

using facts::Dim;
using facts::Fact;
using facts::FileFacts;
using onnx::Bytes;
using onnx::DoubtfulValue;

bool statesElements(const Fact& fact) { return fact.type != facts::kUnknownType; }

/// Whether a stated type agrees with a known one; then it may be more precise.
bool agree(const Fact& stated, const Fact& known) {
  if (stated.wrappers != known.wrappers || stated.key != known.key) return false;
  if (!stated.shape || stated.type != known.type) return false;
  Fact one = stated;
  Fact other = known;
  one.wrappers.clear();
  other.wrappers.clear();
  return !FileFacts::disagree(one, other);
}

Fact factOf(const onnx::StatedType& type) {
  Fact fact = Fact::tensor(static_cast<facts::Type>(type.code.value_or(facts::kUnknownType)));
  if (!type.dims) return fact;
  fact.shape.emplace();
  for (const int64_t size : *type.dims) fact.shape->push_back(size < 0 ? Dim() : Dim(size));
  return fact;
}

/// A known type, with the stated shape of a tensor if it has none.
Fact withShape(const Fact& known, const Fact& stated) {
  Fact made = known;
  if (!known.shape && known.isTensor() && stated.isTensor()) made.shape = stated.shape;
  return made;
}

std::vector<Fact> resultsOf(const LibraryResults* results, const Node& node) {
  std::vector<Fact> made;
  if (results == nullptr) return made;
  const auto found = results->find(&node);
  if (found == results->end()) return made;
  for (const onnx::StatedType& type : found->second) made.push_back(factOf(type));
  return made;
}

}  // namespace

Renewed::Renewed(const onnx::ModelWriter& writer, Renewal renewal)
    : writer_(writer), outputs_(std::move(renewal.outputs)) {
  const std::vector<DoubtfulValue>& values = writer.writer().doubtful;
  holds_ = values.empty();
  if (holds_) return;
  TypeSources& sources = renewal.sources;
  restated_ = addStatedTypes(*renewal.graph, &sources);
  facts_ = std::make_unique<FileFacts>(sources.file, renewal.graph, std::move(sources.known));
  std::set<std::pair<const Node*, std::size_t>> doubtful;
  for (const DoubtfulValue& each : values) {
    doubtful.emplace(each.value.node, static_cast<std::size_t>(each.value.entry));
  }
  facts_->doubt(std::move(doubtful));
  facts_->infer(sources.opsets, sources.given, true, true, false,
                [results = renewal.results](const Node& node, const auto& /*inputs*/) {
                  return resultsOf(results, node);
                });
  const bool is_given = restated_ || !sources.given.empty() || !outputs_.empty();
  const std::vector<Bytes>& outputs = writer.graph().names.outputs;
  holds_ = !is_given && !writer.writer().doubts_more &&
           facts_->confirms({outputs.begin(), outputs.end()});
  if (!holds_) noteNames();
}

RenewedTypes Renewed::types(const std::set<std::string>& disputed) const {
  RenewedTypes made;
  if (holds_) return made;
  for (const DoubtfulValue& each : writer_.writer().doubtful) {
    const std::string name(each.name);
    const Fact& fact = facts_->facts().of(each.value);
    const bool is_certain = statesElements(fact) && disputed.count(name) == 0;
    onnx::RenewedTypes& types = made[each.place];
    types.values[name] = is_certain ? std::optional<std::string>(serialized(fact)) : std::nullopt;
    if (each.output.data() == nullptr) continue;
    std::string type = typeOfOutput(each, fact, is_certain);
    if (!type.empty()) types.outputs[name] = std::move(type);
  }
  return made;
}

/// The type of an output, serialized; empty if its description stays.
std::string Renewed::typeOfOutput(const DoubtfulValue& value, const Fact& fact,
                                  bool is_certain) const {
  const Fact stated = facts::typeFact(onnx::bodyOf(value.output, onnx::numbers::kValueType));
  if (value.place.empty()) {
    const auto given = outputs_.find(std::string(value.name));
    if (given != outputs_.end()) {
      const Fact& known = statesElements(fact) ? fact : stated;
      const Fact told = factOf(given->second);
      const bool completes =
          known.isTensor() && !known.shape && (!statesElements(known) || known.type == told.type);
      if (completes) return serialized(told);
    }
  }
  const bool is_other = is_certain && (restated_ || !agree(stated, fact));
  return is_other ? serialized(withShape(fact, stated)) : std::string();
}

/// Notes the names of open sizes that the file states in its main graph, and passes for inputs.
void Renewed::noteNames() {
  const auto note = [this](const std::optional<facts::Shape>& shape) {
    if (!shape) return;
    for (const Dim& dim : *shape) {
      if (dim.name() != nullptr) names_.insert(*dim.name());
    }
  };
  const onnx::OriginalGraph& main = writer_.originals().main();
  for (const std::vector<Bytes>* values : {&main.inputs, &main.outputs, &main.values}) {
    for (const Bytes value : *values) {
      note(facts::typeFact(onnx::bodyOf(value, onnx::numbers::kValueType)).shape);
    }
  }
  for (const Node* node : facts_->graph().nodes) {
    if (node->op == "null") note(facts::statedShape(*node, std::nullopt));
  }
}

/// A TypeProto, without the names that inference made.
std::string Renewed::serialized(const Fact& fact) const {
  return facts::typeMessage(fact, [this](const Dim& dim) {
    return dim.name() != nullptr && names_.count(*dim.name()) != 0;
  });
}

}  // namespace passlib::model
