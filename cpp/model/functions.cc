#include "model/functions.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "errors.h"
#include "graph/attributes.h"
#include "header.h"
#include "model/library_nodes.h"
#include "onnx/naming/fresh_names.h"
#include "onnx/parts/functions.h"
#include "onnx/parts/tensor.h"
#include "onnx/types/messages.h"
#include "onnx/types/settled.h"
#include "onnx/wire/splices.h"

namespace passlib::model {

namespace {

using namespace onnx::numbers;  // NOLINT: this file only
using onnx::bodiesOf;
using onnx::Bytes;
using onnx::Field;
using onnx::Fields;
using onnx::forEachNodeWithin;
using onnx::FunctionKey;
using onnx::Functions;
using onnx::importOf;
using onnx::keyOfCall;
using onnx::setsOf;
using Sets = onnx::OperatorSets;

/// Operators of results, and those whose attributes refer to those of the call. Each has its own
/// number, since equal ones would be merged.
constexpr const char* kResultMark = "Result";
constexpr const char* kReferringMark = "Referring";

/// The operator set from which on Constant has types other than half, single and double precision.
constexpr int64_t kConstantOfAnyType = 9;

/// How a function is called.
struct CallsOfFunction {
  std::size_t count = 0;
  std::size_t fewest = 0;  ///< inputs of a call; 0 if one leaves an input out

  void add(std::size_t inputs) {
    fewest = count == 0 ? inputs : std::min(fewest, inputs);
    ++count;
  }
};

std::vector<CallsOfFunction> callsOf(Bytes model, const Graph& graph, const Functions& functions) {
  std::vector<CallsOfFunction> calls(functions.size());
  std::vector<onnx::Body> bodies;
  for (const std::string& each : functions.messages()) bodies.push_back(onnx::bodyOfFunction(each));
  for (const Bytes training : bodiesOf(model, kTrainingInfo)) {
    for (const uint32_t number : {kInitialization, kAlgorithm}) {
      for (const Bytes steps : bodiesOf(training, number)) bodies.push_back({steps, {}});
    }
  }
  for (const onnx::Body& body : bodies) {
    forEachNodeWithin(body, [&](const onnx::Path& path) {
      const std::optional<std::size_t> found = functions.find(keyOfCall(path.back().body));
      if (!found) return;
      const std::vector<Bytes> inputs = bodiesOf(path.back().body, kNodeInput);
      const bool whole =
          std::none_of(inputs.begin(), inputs.end(), [](Bytes name) { return name.empty(); });
      calls[*found].add(whole ? inputs.size() : 0);
    });
  }
  // Only read here; the walk takes pointers that could be written to.
  mxnet::ext::host::forEachNode(
      const_cast<Graph*>(&graph), [](Graph*) {},
      [&](Graph*, const Node* node) {
        const Bytes domain = onnx::plainDomain(attributeOf(*node, onnx::keys::kDomain));
        const std::optional<std::size_t> found =
            functions.find({std::string(domain), node->op,
                            std::string(attributeOf(*node, onnx::keys::kOverload))});
        if (!found) return;
        const bool whole =
            std::none_of(node->inputs.begin(), node->inputs.end(),
                         [](const NodeEntry& input) { return input.node->name == "__absent__"; });
        calls[*found].add(whole ? node->inputs.size() : 0);
      });
  return calls;
}

/// The body of a function, as a model while it is changed. Nodes whose attributes refer to those of
/// the call become operators that nobody knows: a model has no such attributes, and no pass must
/// take the reference for a value. Results of unknown type become inputs of such operators, too,
/// whose outputs have a type, as those of a model must.
class FunctionBody {
 public:
  FunctionBody(Bytes model, Bytes function)
      : model_(model),
        function_(function),
        inputs_(bodiesOf(function, kFunctionInput)),
        outputs_(bodiesOf(function, kFunctionOutput)) {
    std::set<Bytes> taken;
    forEachNodeWithin(onnx::bodyOfFunction(function), [&taken](const onnx::Path& path) {
      taken.insert(onnx::bodyOf(path.back().body, kDomain));
    });
    while (taken.count(domain_) != 0) domain_ += '_';
    own_ = setsOf(bodiesOf(function, kFunctionImport));
    offered_ = setsOf(bodiesOf(model, kOpsetImport));
    if (own_.empty()) own_ = offered_;
    for (const auto& [domain, version] : own_) offered_[domain] = version;
  }

  std::size_t inputs() const { return inputs_.size(); }

  /// Returns the model; nothing for a graph next to an attribute that refers. `known`: facts of the
  /// inputs, or nothing.
  std::optional<std::string> model(const std::vector<facts::Fact>& known,
                                   const Functions& functions) {
    std::set<Bytes> names(inputs_.begin(), inputs_.end());
    names.insert(outputs_.begin(), outputs_.end());
    if (names.size() < inputs_.size() + outputs_.size()) return std::nullopt;
    const std::optional<std::string> hidden = withHiddenNodes();
    if (!hidden) return std::nullopt;
    onnx::Arena made;
    onnx::FreshNames fresh(nullptr, &made);
    for (const Bytes name : names) fresh.use(name);
    forEachNodeWithin(onnx::bodyOfFunction(function_), [&fresh](const onnx::Path& path) {
      for (const Bytes name : bodiesOf(path.back().body, kNodeOutput)) fresh.use(name);
    });
    std::map<uint32_t, std::vector<Bytes>> items;
    items[kGraphName] = {onnx::bodyOf(function_, kFunctionName)};
    items[kNode] = bodiesOf(*hidden, kFunctionNode);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const facts::Fact* const fact = i < known.size() ? &known[i] : nullptr;
      const bool is_known = fact != nullptr && fact->type != facts::kUnknownType;
      std::string& value = made.emplace_back(onnx::valueInfo(inputs_[i], {}));
      if (is_known && fact->wrappers.empty()) {
        const auto named = [](const facts::Dim&) { return true; };
        onnx::appendBody(kValueType, facts::typeMessage(*fact, named), &value);
      }
      items[kInput].push_back(value);
    }
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const Bytes name = fresh.fresh(made.emplace_back(std::string(outputs_[i]) + kResultMark));
      const onnx::StatedType scalar{facts::kFloat, std::vector<int64_t>()};
      items[kOutput].push_back(made.emplace_back(onnx::valueInfo(name, scalar)));
      std::string& node = made.emplace_back();
      onnx::appendBody(kNodeInput, outputs_[i], &node);
      onnx::appendBody(kNodeOutput, name, &node);
      onnx::appendBody(kOpType, kResultMark + std::to_string(i), &node);
      onnx::appendBody(kDomain, domain_, &node);
      items[kNode].push_back(node);
    }
    const std::string graph = onnx::withItems("", items);
    std::string text;
    const auto keep = [](const Field& field) { return field.number == kIrVersion; };
    onnx::appendFields(model_, keep, &text);
    onnx::appendBody(kGraph, graph, &text);
    for (const auto& set : offered_)
      onnx::appendBody(kOpsetImport, importOf(set.first, set.second), &text);
    onnx::appendBody(kOpsetImport, importOf(domain_, 1), &text);
    for (const std::size_t number : calledBy(graph, functions)) {
      onnx::appendBody(onnx::numbers::kFunctions, functions.at(number), &text);
    }
    return text;
  }

  /// Returns the function with the body of a changed model; nothing if it is the same.
  std::optional<std::string> functionOf(Bytes changed) const {
    const Sets sets = setsOf(bodiesOf(changed, kOpsetImport));
    for (const auto& [domain, version] : offered_) {
      const auto found = sets.find(domain);
      if (found != sets.end() && found->second != version) {
        refuse("a pass changed its operator set " + mxnet::ext::host::quoted(domain) +
               " from version " + std::to_string(version) + " to " + std::to_string(found->second));
      }
    }
    const Bytes graph = onnx::bodyOf(changed, kGraph);
    check(graph);
    const std::string text = withShownNodes(withResultNames(graph));
    std::unordered_map<Bytes, Bytes> producers;
    for (const Bytes node : bodiesOf(function_, kFunctionNode)) {
      for (const Bytes name : bodiesOf(node, kNodeOutput)) producers[name] = node;
    }
    std::set<Bytes> same(inputs_.begin(), inputs_.end());
    const std::vector<Bytes> nodes = bodiesOf(text, kNode);
    for (const Bytes node : nodes) {
      const std::vector<Bytes> used = onnx::usedBy(node);
      const bool is_same = std::all_of(used.begin(), used.end(), [&same](Bytes name) {
        return name.empty() || same.count(name) != 0;
      });
      if (!is_same) continue;
      for (const Bytes name : bodiesOf(node, kNodeOutput)) {
        const auto producer = producers.find(name);
        if (producer != producers.end() && producer->second == node) same.insert(name);
      }
    }
    std::vector<Bytes> stated;
    for (const Bytes value : bodiesOf(function_, kFunctionValueInfo)) {
      if (same.count(onnx::bodyOf(value, kValueName)) != 0) stated.push_back(value);
    }
    std::string made =
        onnx::withItems(function_, {{kFunctionNode, nodes}, {kFunctionValueInfo, stated}});
    const bool states_sets = !bodiesOf(function_, kFunctionImport).empty();
    std::string added;
    for (const std::string& domain : domainsOf(text)) {
      const auto found = sets.find(domain);
      if (own_.count(domain) != 0 || found == sets.end()) continue;
      if (domain == kLibraryDomain) {
        refuse(
            "a pass added an operator of a library, whose types runtimes cannot infer in a "
            "function; run inlineFunctions before the pass");
      }
      onnx::appendBody(kFunctionImport, importOf(found->first, found->second), &added);
    }
    if (!added.empty() && !states_sets) {
      for (const auto& set : own_)
        onnx::appendBody(kFunctionImport, importOf(set.first, set.second), &added);
    }
    made += added;
    if (made == function_) return std::nullopt;
    return made;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw GraphError("local function '" + std::string(onnx::bodyOf(function_, kFunctionName)) +
                     "': " + what);
  }

  /// Throws GraphError if a changed graph cannot be the body.
  void check(Bytes graph) const {
    if (!bodiesOf(graph, kSparseInitializer).empty()) refuse("a pass added a sparse weight");
    std::set<Bytes> weights;
    for (const Bytes tensor : bodiesOf(graph, kInitializer)) {
      const Bytes name = onnx::bodyOf(tensor, kTensorName);
      if (std::find(inputs_.begin(), inputs_.end(), name) != inputs_.end()) {
        refuse("a pass gave the input '" + std::string(name) + "' a value");
      }
      weights.insert(name);
      checkConstant(onnx::readTensor(tensor).type);
    }
    for (const Bytes input : bodiesOf(graph, kInput)) {
      const Bytes name = onnx::bodyOf(input, kValueName);
      if (weights.count(name) != 0) continue;
      if (std::find(inputs_.begin(), inputs_.end(), name) == inputs_.end()) {
        refuse("a pass added the input '" + std::string(name) + "'");
      }
    }
    std::vector<Bytes> results(outputs_.size());  // of the marks
    forEachNodeWithin({graph, {}}, [&](const onnx::Path& path) {
      const Bytes node = path.back().body;
      if (onnx::bodyOf(node, kDomain) != domain_) return;
      const std::optional<std::size_t> number = numberOf(node, kResultMark);
      if (number && *number < results.size() && path.size() == 1) {
        const std::vector<Bytes> from = bodiesOf(node, kNodeInput);
        if (!results[*number].empty()) refuse("a pass copied an output");
        if (from.size() == 1 && !from[0].empty()) {
          results[*number] = onnx::bodyOf(node, kNodeOutput);
        }
      } else if (numberOf(node, kReferringMark).value_or(hidden_.size()) >= hidden_.size()) {
        refuse("a pass added the operator '" + std::string(onnx::bodyOf(node, kOpType)) +
               "' of the domain '" + domain_ + "'");
      }
    });
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::string name(outputs_[i]);
      if (results[i].empty()) refuse("a pass removed the output '" + name + "'");
    }
    std::vector<Bytes> given;
    for (const Bytes value : bodiesOf(graph, kOutput)) {
      given.push_back(onnx::bodyOf(value, kValueName));
    }
    forEachNodeWithin({graph, {}}, [&](const onnx::Path& path) {
      for (const Bytes name : bodiesOf(path.back().body, kNodeInput)) {
        if (std::find(results.begin(), results.end(), name) != results.end()) {
          refuse("a pass added a consumer of an output");
        }
      }
    });
    if (given != results) refuse("a pass added, removed or moved an output");
  }

  /// Throws GraphError unless the function can have constants of a type.
  void checkConstant(int type) const {
    const auto own = offered_.find("");
    if (own == offered_.end()) {
      refuse("a pass added a weight, but the function imports no operator set of ONNX");
    }
    const bool is_real = type == facts::kFloat || type == facts::kDouble || type == facts::kFloat16;
    if (own->second < kConstantOfAnyType && !is_real) {
      refuse("a pass added a weight of a type that Constant has only from operator set " +
             std::to_string(kConstantOfAnyType) + " on");
    }
  }

  /// The domains of the operators of a graph.
  static std::set<std::string> domainsOf(Bytes graph) {
    std::set<std::string> domains;
    forEachNodeWithin({graph, {}}, [&domains](const onnx::Path& path) {
      domains.emplace(onnx::plainDomain(onnx::bodyOf(path.back().body, kDomain)));
    });
    return domains;
  }

  /// The number of a mark of a node; nothing if it has none.
  std::optional<std::size_t> numberOf(Bytes node, const std::string& mark) const {
    const std::string op(onnx::bodyOf(node, kOpType));
    if (onnx::bodyOf(node, kDomain) != domain_ || op.compare(0, mark.size(), mark) != 0) {
      return std::nullopt;
    }
    const std::size_t number = std::strtoull(op.c_str() + mark.size(), nullptr, 10);
    return op == mark + std::to_string(number) ? std::optional(number) : std::nullopt;
  }

  /// The function with operators that nobody knows in place of those that refer.
  std::optional<std::string> withHiddenNodes() {
    onnx::Splices splices(function_);
    bool has_graph = false;
    forEachNodeWithin(onnx::bodyOfFunction(function_), [&](const onnx::Path& path) {
      const Bytes node = path.back().body;
      const std::vector<Bytes> attributes = bodiesOf(node, kAttribute);
      if (std::none_of(attributes.begin(), attributes.end(), [](Bytes attribute) {
            return !onnx::bodyOf(attribute, kRefAttrName).empty();
          })) {
        return;
      }
      has_graph = has_graph || !onnx::graphsOf(node).empty();
      const std::string op = kReferringMark + std::to_string(hidden_.size());
      hidden_.push_back(node);
      splices.replace(
          path,
          onnx::withItems(
              node, {{kOpType, {op}}, {kDomain, {domain_}}, {kOverload, {}}, {kAttribute, {}}}));
    });
    if (has_graph) return std::nullopt;
    return splices.finish().copy();
  }

  /// The numbers of the functions that a graph calls, and that these call.
  static std::vector<std::size_t> calledBy(Bytes graph, const Functions& functions) {
    std::vector<std::size_t> added;
    std::vector<onnx::Body> pending = {{graph, {}}};
    while (!pending.empty()) {
      const onnx::Body body = std::move(pending.back());
      pending.pop_back();
      forEachNodeWithin(body, [&](const onnx::Path& path) {
        const std::optional<std::size_t> found = functions.find(keyOfCall(path.back().body));
        if (!found || std::find(added.begin(), added.end(), *found) != added.end()) return;
        added.push_back(*found);
        pending.push_back(onnx::bodyOfFunction(functions.at(*found)));
      });
    }
    return added;
  }

  /// A graph without weights and marks, whose results have the names of the function's.
  std::string withResultNames(Bytes graph) const {
    onnx::Arena arena;
    std::vector<Bytes> nodes;
    for (const Bytes tensor : bodiesOf(graph, kInitializer)) {
      nodes.push_back(arena.emplace_back(onnx::constantNode(tensor)));
    }
    std::vector<Bytes> sources(outputs_.size());
    std::set<Bytes> made;
    for (const Bytes node : bodiesOf(graph, kNode)) {
      if (const std::optional<std::size_t> number = numberOf(node, kResultMark)) {
        sources[*number] = onnx::bodyOf(node, kNodeInput);
      } else {
        nodes.push_back(node);
      }
    }
    for (const Bytes node : nodes) {
      for (const Bytes name : bodiesOf(node, kNodeOutput)) made.insert(name);
    }
    std::unordered_map<Bytes, Bytes> names;
    std::vector<std::size_t> copied;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (made.count(sources[i]) == 0 || !names.emplace(sources[i], outputs_[i]).second) {
        copied.push_back(i);
      }
    }
    if (!copied.empty() && offered_.count("") == 0) {
      refuse(
          "a pass replaced an output, which needs Identity, but the function imports no operator "
          "set of ONNX");
    }
    const std::string bare = onnx::withItems(graph, {{kNode, nodes}, {kInitializer, {}}});
    const onnx::NamesOfValues taken = onnx::valuesWithin(bare);
    onnx::FreshNames fresh(nullptr, &arena);
    for (const Bytes name : taken) fresh.use(name);
    for (const Bytes name : outputs_) fresh.use(name);
    for (const Bytes name : outputs_) {
      if (taken.count(name) != 0 && names.count(name) == 0) names[name] = fresh.fresh(name);
    }
    std::string text = onnx::withValueNames(bare, names);
    for (const std::size_t number : copied) {
      const auto renamed = names.find(sources[number]);
      std::string node;
      onnx::appendBody(kNodeInput, renamed == names.end() ? sources[number] : renamed->second,
                       &node);
      onnx::appendBody(kNodeOutput, outputs_[number], &node);
      onnx::appendBody(kOpType, "Identity", &node);
      onnx::appendBody(kNode, node, &text);
    }
    return text;
  }

  /// A graph with the operators that refer.
  std::string withShownNodes(Bytes graph) const {
    onnx::Splices splices(graph);
    forEachNodeWithin({graph, {}}, [&](const onnx::Path& path) {
      const Bytes node = path.back().body;
      const std::optional<std::size_t> number = numberOf(node, kReferringMark);
      if (!number) return;
      const Bytes kept = hidden_[*number];
      std::map<uint32_t, std::vector<Bytes>> items;
      for (const uint32_t field : {kOpType, kDomain, kOverload}) {
        items[field] = bodiesOf(kept, field);
      }
      items[kAttribute] = bodiesOf(node, kAttribute);
      for (const Bytes attribute : bodiesOf(kept, kAttribute)) {
        items[kAttribute].push_back(attribute);
      }
      splices.replace(path, onnx::withItems(node, items));
    });
    return splices.finish().copy();
  }

  Bytes model_;
  Bytes function_;
  Sets own_;      ///< operator sets of the function
  Sets offered_;  ///< these, and those of the model that it lacks
  std::vector<Bytes> inputs_;
  std::vector<Bytes> outputs_;
  std::string domain_ = "referring";  ///< of operators that only the model has
  std::vector<Bytes> hidden_;         ///< the operators that refer
};

/// The number of operators of a function, and its bytes.
std::pair<std::size_t, std::size_t> priceOf(Bytes function) {
  std::size_t count = 0;
  forEachNodeWithin(onnx::bodyOfFunction(function), [&count](const onnx::Path& path) {
    if (onnx::bodyOf(path.back().body, kOpType) != "Constant") ++count;
  });
  return {count, function.size()};
}

}  // namespace

std::optional<std::string> withFunctions(Bytes model, const facts::FileFacts& known,
                                         const ChangeBody& change, const KeptBodies& kept) {
  Functions functions(model);
  const std::vector<CallsOfFunction> calls = callsOf(model, known.graph(), functions);
  bool is_changed = false;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const std::string function(functions.at(i));
    FunctionBody body(model, function);
    // An input that a call leaves out is absent in the body.
    if (calls[i].count == 0 || calls[i].fewest < body.inputs()) continue;
    std::vector<facts::Fact> inputs;
    const FunctionKey key = onnx::keyOfFunction(function);
    const auto inferred = known.facts().calls().find({key.domain, key.name});
    if (inferred != known.facts().calls().end() && key.overload.empty() &&
        inferred->second.nodes.size() == calls[i].count) {
      inputs = inferred->second.inputs;
    }
    std::optional<std::string> alone = body.model(inputs, functions);
    if (!alone) continue;
    std::optional<std::string> made;
    try {
      const std::optional<std::string> changed = change(*std::move(alone), key.name);
      if (changed) made = body.functionOf(*changed);
    } catch (const std::system_error&) {
      throw;
    } catch (const PassError&) {
      throw;
    } catch (const std::runtime_error&) {  // it is no complete model
      if (kept.passes_errors) throw;
    }
    if (!made || (kept.cheaper && !(priceOf(*made) < priceOf(function)))) continue;
    functions.set(i, *std::move(made));
    is_changed = true;
  }
  if (!is_changed) return std::nullopt;
  return onnx::withFunctions(model, functions.messages());
}

}  // namespace passlib::model
