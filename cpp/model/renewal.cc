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

/// Of facts::GivenTypes: whatever the file states.
constexpr int64_t kOpenSize = -2;

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

/// The names that a file gives to open sizes in its main graph.
std::set<std::string> namesOfSizes(const onnx::Originals& file) {
  const onnx::OriginalGraph& main = file.main();
  std::set<std::string> names;
  for (const std::vector<Bytes>* values : {&main.inputs, &main.outputs, &main.values}) {
    for (const Bytes value : *values) {
      const Fact type = facts::typeFact(onnx::bodyOf(value, onnx::numbers::kValueType));
      if (!type.shape) continue;
      for (const Dim& dim : *type.shape) {
        if (dim.name() != nullptr) names.insert(*dim.name());
      }
    }
  }
  return names;
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
    const facts::GivenTypes restated = restatedTypes(*renewal_.graph);
    restated_ = !restated.empty();
    const bool is_given = restated_ || !sources.given.empty() || !renewal_.outputs.empty();
    sources.given.insert(restated.begin(), restated.end());
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
    names_ = namesOfSizes(*sources.file);
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

facts::GivenTypes restatedTypes(const Graph& graph) {
  facts::GivenTypes types;
  for (const Node* node : graph.nodes) {
    if (node->op != "null") continue;
    if (attributeOf(*node, onnx::keys::kId).substr(0, 6) != "input.") continue;
    const bool has_type = !attributeOf(*node, "__dtype__").empty();
    if (!has_type && attributeOf(*node, "__shape__").empty()) continue;
    onnx::StatedType stated = statedType(*node, facts::kUnknownType);
    if (stated.dims) {
      for (int64_t& size : *stated.dims) size = size < 0 ? kOpenSize : size;
    }
    types[node->name] = {has_type ? stated.code : std::nullopt, std::move(stated.dims)};
  }
  return types;
}

RenewedTypes renewedTypes(const onnx::ModelWriter& writer, Renewal renewal) {
  if (writer.writer().doubtful.empty()) return {};
  return Renewing(writer, std::move(renewal)).run();
}

}  // namespace passlib::model
