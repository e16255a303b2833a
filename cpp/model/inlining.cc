#include "model/inlining.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "errors.h"
#include "graph/name_source.h"
#include "onnx/original/originals.h"
#include "onnx/parts/attribute.h"
#include "onnx/parts/functions.h"
#include "onnx/text/strings.h"
#include "onnx/types/settled.h"
#include "onnx/wire/splices.h"

namespace passlib::model {

namespace {

using namespace onnx::numbers;  // NOLINT: this file only
using onnx::bodiesOf;
using onnx::bodyOf;
using onnx::Bytes;
using onnx::Field;
using onnx::Fields;
using onnx::FunctionKey;
using onnx::joined;
using onnx::Path;

/// Bodies within bodies can grow without bound. A message has at most 2 GiB.
constexpr std::size_t kMostNodes = 1000000;
constexpr std::size_t kMostBytes = std::size_t{1} << 31;

/// The functions that a message for unknown names lists.
constexpr std::size_t kMostListed = 8;

/// Calls `visit` for the name of each value of a graph outside of its nodes.
template <typename Visit>
void forEachNameOutside(Bytes graph, Visit visit) {
  for (const Bytes tensor : bodiesOf(graph, kInitializer)) visit(bodyOf(tensor, kTensorName));
  for (const Bytes sparse : bodiesOf(graph, kSparseInitializer)) {
    visit(bodyOf(bodyOf(sparse, kValues), kTensorName));
  }
  for (const uint32_t number : {kInput, kOutput}) {
    for (const Bytes value : bodiesOf(graph, number)) visit(bodyOf(value, kValueName));
  }
}

/// The same for each value in nodes, and in the graphs nested in them.
template <typename Visit>
void forEachNameWithin(const onnx::Body& nodes, Visit visit) {
  onnx::forEachBodyWithin(nodes, [&visit](const onnx::Body& body) {
    if (!body.path.empty()) forEachNameOutside(body.message, visit);
    for (const Bytes node : bodiesOf(body.message, body.nodes)) {
      for (const uint32_t number : {kNodeInput, kNodeOutput}) {
        for (const Bytes name : bodiesOf(node, number)) visit(name);
      }
    }
  });
}

/// The nodes of a graph or a function, in which calls are replaced.
struct Caller {
  std::string nodes;                ///< a message of the field kNode
  std::vector<std::string> values;  ///< names of other values
  std::optional<FunctionKey> function;
  std::set<std::string> parameters;  ///< attributes of the function that have no default
  onnx::OperatorSets sets;
  std::vector<std::string> imports;  ///< OperatorSetIdProtos of sets that were added

  onnx::Body body() const { return {nodes, {}}; }
};

/// A message of the nodes of another one, in the field kNode.
std::string nodesIn(Bytes message, uint32_t number) {
  std::string made;
  for (const Bytes node : bodiesOf(message, number)) onnx::appendBody(kNode, node, &made);
  return made;
}

/// NamedAttributes by name.
using NamedAttributes = std::map<Bytes, Bytes>;

/// A call, which is replaced by the nodes of the function.
class Call {
 public:
  Call(Bytes node, const FunctionKey& key, Bytes function, const NamedAttributes& defaults,
       NameSource* names, NameSource* titles)
      : key_(key),
        function_(function),
        defaults_(defaults),
        titles_(titles),
        prefix_(bodyOf(node, kNodeName)),
        metadata_(bodiesOf(node, kMetadata)) {
    if (prefix_.empty()) prefix_ = bodyOf(node, kOpType);
    for (const Bytes each : bodiesOf(node, kAttribute)) attributes_[bodyOf(each, kName)] = each;
    nameInputs(bodiesOf(node, kNodeInput));
    nameResults(bodiesOf(node, kNodeOutput));
    const auto rename = [&](Bytes value) {
      if (value.empty() || names_.count(value) != 0) return;
      names_[value] = names->fresh(prefix_ + "_" + std::string(value));
    };
    for (const uint32_t number : {kFunctionInput, kFunctionOutput}) {
      for (const Bytes value : bodiesOf(function, number)) rename(value);
    }
    forEachNameWithin(onnx::bodyOfFunction(function), rename);
  }

  /// Appends the nodes of the body, with the values and attributes of the call.
  void appendNodes(std::string* out) {
    onnx::Splices splices(function_);
    onnx::forEachBodyWithin(onnx::bodyOfFunction(function_), [&](const onnx::Body& body) {
      Field field;
      for (Fields fields(body.message); fields.next(&field);) {
        if (field.type != onnx::kBytes) continue;
        const Path path = joined(body.path, field);
        if (field.number == body.nodes) {
          changeNode(path, &splices);
        } else if (!body.path.empty()) {
          renameOutside(path, &splices);
        }
      }
    });
    const std::string made = splices.finish().copy();
    for (const Bytes node : bodiesOf(made, kFunctionNode)) {
      onnx::appendBody(kNode, withMetadata(node), out);
    }
    for (const auto& [source, result] : copies_) {
      if (source.empty()) refuse("an input that is an output of the function");
      std::string copied;
      onnx::appendBody(kNodeInput, source, &copied);
      onnx::appendBody(kNodeOutput, result, &copied);
      onnx::appendBody(kNodeName, titles_->fresh(prefix_ + "_copy"), &copied);
      onnx::appendBody(kOpType, "Identity", &copied);
      onnx::appendBody(kNode, copied, out);
    }
  }

 private:
  std::string title() const {
    return "call " + onnx::shown(prefix_) + " of function " + key_.title();
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw UnsupportedError(title() + " leaves out " + what + "; pass it");
  }

  /// A node with the metadata of the call that it has none of its own for.
  std::string withMetadata(Bytes node) const {
    std::set<Bytes> own;
    for (const Bytes entry : bodiesOf(node, kMetadata)) own.insert(bodyOf(entry, kKey));
    std::string made(node);
    for (const Bytes entry : metadata_) {
      if (own.count(bodyOf(entry, kKey)) == 0) onnx::appendBody(kMetadata, entry, &made);
    }
    return made;
  }

  void requireAtMost(std::size_t given, std::size_t most, const char* what) const {
    if (given <= most) return;
    throw FormatError(title() + " has " + std::to_string(given) + " " + what +
                      ", and the function has " + std::to_string(most));
  }

  void nameInputs(const std::vector<Bytes>& given) {
    const std::vector<Bytes> inputs = bodiesOf(function_, kFunctionInput);
    requireAtMost(given.size(), inputs.size(), "inputs");
    if (std::find(inputs.begin(), inputs.end(), Bytes()) != inputs.end()) {
      throw FormatError("function " + key_.title() + " has an input without a name");
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      names_[inputs[i]] = i < given.size() ? std::string(given[i]) : "";
    }
  }

  /// Results get the names that the call gives them; those that no node computes are copied, and
  /// those that the function has twice.
  void nameResults(const std::vector<Bytes>& given) {
    std::set<Bytes> computed;
    for (const Bytes node : bodiesOf(function_, kFunctionNode)) {
      for (const Bytes name : bodiesOf(node, kNodeOutput)) computed.insert(name);
    }
    const std::vector<Bytes> outputs = bodiesOf(function_, kFunctionOutput);
    requireAtMost(given.size(), outputs.size(), "outputs");
    const std::size_t count = given.size();
    std::map<Bytes, Bytes> last;
    for (std::size_t i = 0; i < count; ++i) {
      if (!given[i].empty()) last[outputs[i]] = given[i];
    }
    const auto source = [this](Bytes name) {
      const auto found = names_.find(name);
      return found == names_.end() ? std::string() : found->second;
    };
    std::set<Bytes> known;
    for (std::size_t i = 0; i < count; ++i) {
      if (given[i].empty() || !known.insert(outputs[i]).second) continue;
      const Bytes result = last.at(outputs[i]);
      if (computed.count(outputs[i]) != 0) {
        names_[outputs[i]] = result;
      } else {
        copies_.emplace_back(source(outputs[i]), result);
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (given[i].empty() || last.at(outputs[i]) == given[i]) continue;
      copies_.emplace_back(source(outputs[i]), given[i]);
    }
  }

  void rename(const Path& path, onnx::Splices* splices) const {
    const auto found = names_.find(path.back().body);
    if (found != names_.end() && found->second != found->first) {
      splices->replace(path, found->second);
    }
  }

  void renameIn(const Path& message, uint32_t number, onnx::Splices* splices) const {
    Field field;
    for (Fields fields(message.back().body); fields.next(&field);) {
      if (field.number == number && field.type == onnx::kBytes) {
        rename(joined(message, field), splices);
      }
    }
  }

  /// Renames what a nested graph states outside of its nodes.
  void renameOutside(const Path& path, onnx::Splices* splices) const {
    const Field& item = path.back();
    if (item.number == kInitializer) {
      renameIn(path, kTensorName, splices);
    } else if (item.number == kSparseInitializer) {
      Field values;
      for (Fields fields(item.body); fields.next(&values);) {
        if (values.number == kValues) renameIn(joined(path, values), kTensorName, splices);
      }
    } else if (item.number == kInput || item.number == kOutput || item.number == kValueInfo) {
      const auto found = names_.find(bodyOf(item.body, kValueName));
      if (item.number == kOutput && found != names_.end() && found->second.empty()) {
        refuse("an input that is the result of a nested graph");
      }
      renameIn(path, kValueName, splices);
    }
  }

  void changeNode(const Path& path, onnx::Splices* splices) {
    Field field;
    for (Fields fields(path.back().body); fields.next(&field);) {
      if (field.type != onnx::kBytes) continue;
      const Path inner = joined(path, field);
      if (field.number == kNodeInput || field.number == kNodeOutput) {
        rename(inner, splices);
      } else if (field.number == kNodeName && !field.body.empty()) {
        splices->replace(inner, titles_->fresh(prefix_ + "_" + std::string(field.body)));
      } else if (field.number == kAttribute) {
        refer(inner, splices);
      }
    }
  }

  /// Gives an attribute that refers to one of the call the value of that. If the call has none, the
  /// operator's own default holds.
  void refer(const Path& path, onnx::Splices* splices) const {
    const Bytes attribute = path.back().body;
    const Bytes reference = bodyOf(attribute, kRefAttrName);
    if (reference.empty()) return;
    const auto own = attributes_.find(reference);
    const auto preset = defaults_.find(reference);
    if (own == attributes_.end() && preset == defaults_.end()) {
      splices->remove(path);
    } else {
      const Bytes found = own != attributes_.end() ? own->second : preset->second;
      const Bytes name = bodyOf(attribute, kName);
      splices->replace(path, onnx::withItems(found, {{kName, {name}}}));
    }
  }

  const FunctionKey& key_;
  Bytes function_;
  const NamedAttributes& defaults_;
  NameSource* titles_;
  std::string prefix_;
  std::vector<Bytes> metadata_;
  NamedAttributes attributes_;                    ///< of the call
  std::unordered_map<Bytes, std::string> names_;  ///< of the function's values in the caller
  std::vector<std::pair<std::string, std::string>> copies_;
};

class Inliner {
 public:
  Inliner(Bytes model, const std::vector<std::string>& names, const SinceVersion& since)
      : model_(model), since_(since), functions_(model) {
    for (const std::string& function : functions_.messages()) {
      keys_.push_back(onnx::keyOfFunction(function));
    }
    checkNames(names);
    defaults_.resize(keys_.size());
    for (const Bytes function : bodiesOf(model, kFunctions)) {  // of equal ones the last counts
      NamedAttributes& defaults = defaults_[*functions_.find(onnx::keyOfFunction(function))];
      defaults.clear();
      for (const Bytes each : bodiesOf(function, kFunctionAttributeProto)) {
        defaults[bodyOf(each, kName)] = each;
      }
    }
    for (const FunctionKey& key : keys_) {
      const auto isKey = [&key](const std::string& name) {
        return name == key.name || name == key.domain + "." + key.name;
      };
      is_chosen_.push_back(names.empty() || std::any_of(names.begin(), names.end(), isKey));
    }
    graph_ = onnx::mergedBody(model, kGraph, &arena_);
    sets_ = onnx::setsOf(bodiesOf(model, kOpsetImport));
    callers_.push_back(callerOf(graph_));
    for (const Bytes training : bodiesOf(model, kTrainingInfo)) {
      for (const uint32_t number : {kInitialization, kAlgorithm}) {
        const Bytes steps = onnx::mergedBody(training, number, &arena_);
        if (steps.data() != nullptr) callers_.push_back(callerOf(steps));
      }
    }
  }

  std::optional<std::string> run() {
    if (keys_.empty()) return std::nullopt;
    const std::vector<std::size_t> order = calledFirst();
    checkSize(order);
    bool changed = false;
    for (const std::size_t number : order) changed |= expandFunction(number);
    for (Caller& caller : callers_) {
      while (expand(&caller)) changed = true;
    }
    const std::vector<bool> kept = keptFunctions();
    changed = changed || std::count(kept.begin(), kept.end(), false) != 0;
    return changed ? std::optional(finish(kept)) : std::nullopt;
  }

 private:
  Caller callerOf(Bytes graph) const {
    Caller made;
    made.nodes = nodesIn(graph, kNode);
    forEachNameOutside(graph, [&made](Bytes name) { made.values.emplace_back(name); });
    return made;
  }

  void checkNames(const std::vector<std::string>& names) const {
    for (const std::string& name : names) {
      const auto isIt = [&name](const FunctionKey& key) {
        return name == key.name || name == key.domain + "." + key.name;
      };
      if (std::any_of(keys_.begin(), keys_.end(), isIt)) continue;
      std::string have;
      for (std::size_t i = 0; i < std::min(keys_.size(), kMostListed); ++i) {
        have += (i == 0 ? "the functions are " : ", ") + keys_[i].title();
      }
      if (keys_.size() > kMostListed) {
        have += ", ... (" + std::to_string(keys_.size()) + " in all)";
      }
      throw std::invalid_argument("option 'names': there is no function " + onnx::shown(name) +
                                  "; " + (keys_.empty() ? "the model has none" : have));
    }
  }

  /// The numbers of the functions that a body calls, one for each call.
  std::vector<std::size_t> callsIn(const onnx::Body& body) const {
    std::vector<std::size_t> found;
    onnx::forEachNodeWithin(body, [&](const Path& path) {
      const auto number = functions_.find(onnx::keyOfCall(path.back().body));
      if (number) found.push_back(*number);
    });
    return found;
  }

  /// The functions, each after those that it calls.
  std::vector<std::size_t> calledFirst() const {
    std::vector<std::size_t> waiting(keys_.size());
    std::vector<std::vector<std::size_t>> callers(keys_.size());
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const std::vector<std::size_t> calls = callsIn(onnx::bodyOfFunction(functions_.at(i)));
      const std::set<std::size_t> called(calls.begin(), calls.end());
      waiting[i] = called.size();
      for (const std::size_t each : called) callers[each].push_back(i);
    }
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (waiting[i] == 0) order.push_back(i);
    }
    for (std::size_t place = 0; place < order.size(); ++place) {
      for (const std::size_t caller : callers[order[place]]) {
        if (--waiting[caller] == 0) order.push_back(caller);
      }
    }
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (waiting[i] == 0) continue;
      throw FormatError("function " + keys_[i].title() +
                        " calls itself, which ONNX does not allow");
    }
    return order;
  }

  /// Checks how large the bodies will be, before any is made. `order`: see calledFirst().
  void checkSize(const std::vector<std::size_t>& order) const {
    struct Size {
      std::size_t nodes = 0;
      std::size_t bytes = 0;
    };
    std::vector<Size> sizes(keys_.size());
    const auto size = [&](const onnx::Body& body) {
      Size sum;
      sum.bytes = body.message.size();
      onnx::forEachNodeWithin(body, [&sum](const Path&) { ++sum.nodes; });
      for (const std::size_t called : callsIn(body)) {
        if (!is_chosen_[called]) continue;
        sum.nodes += sizes[called].nodes;
        sum.bytes += sizes[called].bytes;
        const bool is_long = sum.nodes > kMostNodes;
        if (!is_long && sum.bytes < kMostBytes) continue;
        throw UnsupportedError("inlining makes more than " +
                               (is_long ? std::to_string(kMostNodes) + " nodes" : "2 GiB") +
                               ", at function " + keys_[called].title() +
                               "; choose other functions with names=");
      }
      return sum;
    };
    for (const std::size_t number : order) {
      sizes[number] = size(onnx::bodyOfFunction(functions_.at(number)));
    }
    for (const Caller& caller : callers_) size(caller.body());
  }

  bool expandFunction(std::size_t number) {
    const Bytes function = functions_.at(number);
    Caller caller;
    caller.nodes = nodesIn(function, kFunctionNode);
    caller.function = keys_[number];
    for (const uint32_t field : {kFunctionInput, kFunctionOutput}) {
      for (const Bytes name : bodiesOf(function, field)) caller.values.emplace_back(name);
    }
    for (const Bytes name : bodiesOf(function, kFunctionAttribute)) {
      caller.parameters.emplace(name);
    }
    caller.sets = onnx::setsOf(bodiesOf(function, kFunctionImport));
    if (!expand(&caller)) return false;
    std::vector<Bytes> imports = bodiesOf(function, kFunctionImport);
    imports.insert(imports.end(), caller.imports.begin(), caller.imports.end());
    functions_.set(number,
                   onnx::withItems(function, {{kFunctionNode, bodiesOf(caller.nodes, kNode)},
                                              {kFunctionImport, imports}}));
    return true;
  }

  /// The number of the function whose call a node is, if that is to be replaced now.
  ///
  /// In a function, a call that passes an attribute on waits until the caller's is known: if that
  /// is absent, the default of the function called here counts.
  std::optional<std::size_t> due(const Caller& caller, Bytes node) const {
    const auto number = functions_.find(onnx::keyOfCall(node));
    if (!number || !is_chosen_[*number]) return std::nullopt;
    if (!caller.function) return number;
    for (const Bytes each : bodiesOf(node, kAttribute)) {
      const bool waits = defaults_[*number].count(bodyOf(each, kName)) != 0 &&
                         caller.parameters.count(std::string(bodyOf(each, kRefAttrName))) != 0;
      if (waits) return std::nullopt;
    }
    return number;
  }

  /// A graph with calls that were replaced.
  struct Changed {
    Path path;
    std::string text;
  };
  using ChangedGraphs = std::map<const char*, Changed>;  ///< by the start of the old message

  /// Replaces the calls in a graph or a function, nested graphs included; returns whether there
  /// were any.
  bool expand(Caller* caller) {
    std::vector<onnx::Body> found;
    onnx::forEachBodyWithin(caller->body(), [&](const onnx::Body& body) {
      const std::vector<Bytes> nodes = bodiesOf(body.message, kNode);
      const auto isDue = [&](Bytes node) { return due(*caller, node).has_value(); };
      if (std::any_of(nodes.begin(), nodes.end(), isDue)) found.push_back(body);
    });
    if (found.empty()) return false;
    NameSource names;
    NameSource titles;
    for (const std::string& name : caller->values) names.use(name);
    forEachNameWithin(caller->body(), [&names](Bytes name) { names.use(std::string(name)); });
    onnx::forEachNodeWithin(caller->body(), [&titles](const Path& path) {
      titles.use(std::string(bodyOf(path.back().body, kNodeName)));
    });
    ChangedGraphs changed;
    for (auto body = found.rbegin(); body != found.rend(); ++body) {  // inner graphs first
      Changed made{body->path, ""};
      Field field;
      for (Fields fields(body->message); fields.next(&field);) {
        if (field.number != kNode || field.type != onnx::kBytes) continue;
        const std::string node = withChanged(field.body, body->path.size() + 1, changed);
        const std::optional<std::size_t> number = due(*caller, node);
        if (!number) {
          onnx::appendBody(kNode, node, &made.text);
          continue;
        }
        matchSets(caller, *number);
        Call(node, keys_[*number], functions_.at(*number), defaults_[*number], &names, &titles)
            .appendNodes(&made.text);
      }
      const auto isOther = [](const Field& each) { return each.number != kNode; };
      onnx::appendFields(body->message, isOther, &made.text);
      changed[body->message.data()] = std::move(made);
    }
    const auto whole = changed.find(caller->nodes.data());
    caller->nodes = whole != changed.end() ? std::move(whole->second.text)
                                           : withChanged(caller->nodes, 0, changed);
    return true;
  }

  /// A message with the changed graphs in it. `depth`: of the message in their paths.
  static std::string withChanged(Bytes message, std::size_t depth, const ChangedGraphs& changed) {
    const char* const end = message.data() + message.size();
    auto each = changed.lower_bound(message.data());
    if (each == changed.end() || each->first >= end) return std::string(message);  // most nodes
    onnx::Splices splices(message);
    while (each != changed.end() && each->first < end) {
      const Path& path = each->second.path;
      splices.replace(Path(path.begin() + static_cast<std::ptrdiff_t>(depth), path.end()),
                      each->second.text);
      each = changed.lower_bound(path.back().end);
    }
    return splices.finish().copy();
  }

  /// Checks that operators of a function are the same in the graph that gets them.
  void matchSets(Caller* caller, std::size_t number) {
    const FunctionKey& key = keys_[number];
    if (!matched_.emplace(caller->function, number).second) return;
    const Bytes function = functions_.at(number);
    const onnx::OperatorSets own = onnx::setsOf(bodiesOf(function, kFunctionImport));
    onnx::OperatorSets& sets = caller->function ? caller->sets : sets_;
    std::vector<std::string>& imports = caller->function ? caller->imports : imports_;
    bool differs = false;
    for (const Bytes import : bodiesOf(function, kFunctionImport)) {
      const std::string domain(onnx::plainDomain(bodyOf(import, kSetDomain)));
      const auto [place, is_new] = sets.emplace(domain, own.at(domain));
      if (is_new) imports.push_back(onnx::importOf(domain, own.at(domain)));
      differs = differs || place->second != own.at(domain);
    }
    if (!differs) return;
    onnx::forEachNodeWithin(onnx::bodyOfFunction(function), [&](const Path& path) {
      const FunctionKey called = onnx::keyOfCall(path.back().body);
      const auto version = own.find(called.domain);
      if (version == own.end() || functions_.find(called)) return;
      const int64_t there = sets.at(called.domain);
      if (version->second == there) return;
      const int64_t before = since_(called.name, called.domain, version->second);
      if (before != 0 && before == since_(called.name, called.domain, there)) return;
      throw UnsupportedError("function " + key.title() + " is of operator set " +
                             std::to_string(version->second) + " of " +
                             (called.domain.empty() ? "ONNX" : called.domain) + ", and " +
                             called.name + " differs in " + std::to_string(there) +
                             ", that of its caller; convert one of them first, or inline other "
                             "functions with names=");
    });
  }

  /// Which functions stay: those that something calls, and those that were not chosen.
  std::vector<bool> keptFunctions() const {
    std::vector<bool> reached(keys_.size());
    std::vector<std::size_t> pending;
    const auto reach = [&](const onnx::Body& body) {
      for (const std::size_t number : callsIn(body)) {
        if (!reached[number]) pending.push_back(number);
        reached[number] = true;
      }
    };
    for (const Caller& caller : callers_) reach(caller.body());
    while (!pending.empty()) {
      const std::size_t number = pending.back();
      pending.pop_back();
      reach(onnx::bodyOfFunction(functions_.at(number)));
    }
    for (std::size_t i = 0; i < keys_.size(); ++i) reached[i] = reached[i] || !is_chosen_[i];
    return reached;
  }

  /// The operator sets without those of domains that only removed functions had.
  std::vector<Bytes> imports(const std::vector<bool>& kept) const {
    std::set<std::string> needed;
    const auto need = [&needed](const onnx::Body& body) {
      onnx::forEachNodeWithin(body, [&needed](const Path& path) {
        needed.insert(onnx::keyOfCall(path.back().body).domain);
      });
    };
    for (const Caller& caller : callers_) need(caller.body());
    std::set<std::string> gone;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (!kept[i]) gone.insert(keys_[i].domain);
    }
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (!kept[i]) continue;
      gone.erase(keys_[i].domain);
      need(onnx::bodyOfFunction(functions_.at(i)));
    }
    std::vector<Bytes> made = bodiesOf(model_, kOpsetImport);
    made.insert(made.end(), imports_.begin(), imports_.end());
    const auto isUnneeded = [&](Bytes import) {
      const std::string domain(onnx::plainDomain(bodyOf(import, kSetDomain)));
      return gone.count(domain) != 0 && needed.count(domain) == 0;
    };
    made.erase(std::remove_if(made.begin(), made.end(), isUnneeded), made.end());
    return made;
  }

  std::string finish(const std::vector<bool>& kept) {
    std::vector<std::string> texts;
    texts.reserve(callers_.size());
    std::size_t next = 0;
    const auto graphWith = [&](Bytes graph) {
      texts.push_back(onnx::withItems(graph, {{kNode, bodiesOf(callers_[next++].nodes, kNode)}}));
      return Bytes(texts.back());
    };
    std::map<uint32_t, std::vector<Bytes>> items;
    items[kGraph] = {graphWith(graph_)};
    std::vector<std::string> trainings;
    for (const Bytes training : bodiesOf(model_, kTrainingInfo)) {
      std::map<uint32_t, std::vector<Bytes>> steps;
      for (const uint32_t number : {kInitialization, kAlgorithm}) {
        const Bytes graph = onnx::mergedBody(training, number, &arena_);
        if (graph.data() != nullptr) steps[number] = {graphWith(graph)};
      }
      trainings.push_back(onnx::withItems(training, steps));
    }
    items[kTrainingInfo].assign(trainings.begin(), trainings.end());
    items[kOpsetImport] = imports(kept);
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (kept[i]) items[kFunctions].push_back(functions_.at(i));
    }
    items.try_emplace(kFunctions);
    return onnx::withItems(model_, items);
  }

  Bytes model_;
  const SinceVersion& since_;
  onnx::Functions functions_;
  std::vector<FunctionKey> keys_;
  std::vector<NamedAttributes> defaults_;  ///< of the attributes of each function
  std::vector<bool> is_chosen_;
  onnx::Arena arena_;
  Bytes graph_;
  onnx::OperatorSets sets_;           ///< of the model
  std::vector<std::string> imports_;  ///< that the model gets
  std::vector<Caller> callers_;       ///< the graph, and those of training information
  std::set<std::pair<std::optional<FunctionKey>, std::size_t>> matched_;  ///< callers, called
};

}  // namespace

std::optional<std::string> inlineFunctions(Bytes model, const std::vector<std::string>& names,
                                           const SinceVersion& since) {
  return Inliner(model, names, since).run();
}

}  // namespace passlib::model
