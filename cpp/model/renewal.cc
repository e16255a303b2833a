#include "model/renewal.h"

#include <optional>
#include <utility>

#include "graph/attributes.h"
#include "model/attributes.h"
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

class Renewing {
 public:
  Renewing(const onnx::ModelWriter& writer, Renewal renewal)
      : writer_(writer), renewal_(std::move(renewal)) {}

  RenewedTypes run() {
    TypeSources& sources = renewal_.sources;
    restated_ = addStatedTypes(*renewal_.graph, &sources);
    const bool is_given = restated_ || !sources.given.empty() || !renewal_.outputs.empty();
    FileFacts found(sources.file, renewal_.graph, std::move(sources.known));
    std::set<std::pair<const Node*, std::size_t>> doubtful;
    for (const DoubtfulValue& each : writer_.writer().doubtful) {
      doubtful.emplace(each.value.node, static_cast<std::size_t>(each.value.entry));
    }
    found.doubt(std::move(doubtful));
    found.infer(sources.opsets, sources.given, true, true, false,
                [this](const Node& node, const auto& /*inputs*/) { return resultsOf(node); });
    const std::vector<Bytes>& outputs = writer_.graph().names.outputs;
    if (!is_given && !writer_.writer().doubts_more &&
        found.confirms({outputs.begin(), outputs.end()})) {
      return {};
    }
    if (renewal_.disputed) disputed_ = renewal_.disputed();
    noteNames();
    RenewedTypes made;
    for (const DoubtfulValue& each : writer_.writer().doubtful) {
      renew(each, found.facts().of(each.value), &made[each.place]);
    }
    return made;
  }

 private:
  void renew(const DoubtfulValue& value, const Fact& fact, onnx::RenewedTypes* types) {
    const std::string name(value.name);
    const bool is_certain = statesElements(fact) && disputed_.count(name) == 0;
    types->values[name] = is_certain ? std::optional<std::string>(serialized(fact)) : std::nullopt;
    if (value.output.data() == nullptr) return;
    const Fact stated = facts::typeFact(onnx::bodyOf(value.output, onnx::numbers::kValueType));
    if (is_certain && (restated_ || !agree(stated, fact))) {
      types->outputs[name] = serialized(withShape(fact, stated));
    }
    if (!value.place.empty()) return;
    const auto given = renewal_.outputs.find(name);
    if (given == renewal_.outputs.end()) return;
    const Fact& known = statesElements(fact) ? fact : stated;
    const Fact told = factOf(given->second);
    const bool completes =
        known.isTensor() && !known.shape && (!statesElements(known) || known.type == told.type);
    if (completes) types->outputs[name] = serialized(told);
  }

  /// Notes the names of open sizes that the file states in its main graph, and passes for inputs.
  void noteNames() {
    const onnx::OriginalGraph& main = renewal_.sources.file->main();
    for (const std::vector<Bytes>* values : {&main.inputs, &main.outputs, &main.values}) {
      for (const Bytes value : *values) {
        noteNames(facts::typeFact(onnx::bodyOf(value, onnx::numbers::kValueType)).shape);
      }
    }
    for (const Node* node : renewal_.graph->nodes) {
      if (node->op == "null") noteNames(facts::statedShape(*node, std::nullopt));
    }
  }

  void noteNames(const std::optional<facts::Shape>& shape) {
    if (!shape) return;
    for (const Dim& dim : *shape) {
      if (dim.name() != nullptr) names_.insert(*dim.name());
    }
  }

  /// A TypeProto, without the names that inference made.
  std::string serialized(const Fact& fact) const {
    return facts::typeMessage(fact, [this](const Dim& dim) {
      return dim.name() != nullptr && names_.count(*dim.name()) != 0;
    });
  }

  /// A known type, with the stated shape of a tensor if it has none.
  static Fact withShape(const Fact& known, const Fact& stated) {
    Fact made = known;
    if (!known.shape && known.isTensor() && stated.isTensor()) made.shape = stated.shape;
    return made;
  }

  std::vector<Fact> resultsOf(const Node& node) const {
    std::vector<Fact> made;
    if (renewal_.results == nullptr) return made;
    const auto found = renewal_.results->find(&node);
    if (found == renewal_.results->end()) return made;
    for (const onnx::StatedType& type : found->second) made.push_back(factOf(type));
    return made;
  }

  const onnx::ModelWriter& writer_;
  Renewal renewal_;
  bool restated_ = false;
  std::set<std::string> disputed_;
  std::set<std::string> names_;  ///< of open sizes
};

}  // namespace

bool addStatedTypes(const Graph& graph, TypeSources* sources) {
  const facts::OnnxSource source(sources->file);
  bool is_restated = false;
  for (const Node* node : graph.nodes) {
    if (node->op != "null" || sources->known.count(node) != 0) continue;
    const bool has_type = !attributeOf(*node, "__dtype__").empty();
    if (!has_type && attributeOf(*node, "__shape__").empty()) continue;
    const Bytes id = attributeOf(*node, onnx::keys::kId);
    const bool is_input = id.substr(0, 6) == "input.";
    if (!is_input && !id.empty()) continue;  // a constant of the file
    Fact fact = source.describe(*node);
    if (has_type) {
      fact.type = static_cast<facts::Type>(*statedType(*node, facts::kUnknownType).code);
    }
    std::optional<facts::Shape> shape = facts::statedShape(*node, fact.shape);
    if (shape) fact.shape = std::move(shape);
    sources->known[node] = std::move(fact);
    is_restated = is_restated || is_input;
  }
  return is_restated;
}

RenewedTypes renewedTypes(const onnx::ModelWriter& writer, Renewal renewal) {
  if (writer.writer().doubtful.empty()) return {};
  return Renewing(writer, std::move(renewal)).run();
}

}  // namespace passlib::model
