#include "model/functions.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
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
#include "onnx/parts/bodies.h"
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

/// Operators of results, and those whose attributes refer to those of the call. Each has its own
/// number, since equal ones would be merged.
constexpr const char* kResultMark = "Result";
constexpr const char* kReferringMark = "Referring";

/// The operator set from which on Constant has types other than half, single and double precision.
constexpr int64_t kConstantOfAnyType = 9;

/// Domain, name and overload.
using FunctionKey = std::tuple<std::string, std::string, std::string>;

FunctionKey keyOfFunction(Bytes function) {
  return {std::string(onnx::plainDomain(onnx::bodyOf(function, kFunctionDomain))),
          std::string(onnx::bodyOf(function, kFunctionName)),
          std::string(onnx::bodyOf(function, kFunctionOverload))};
}

FunctionKey keyOfCall(Bytes node) {
  return {std::string(onnx::plainDomain(onnx::bodyOf(node, kDomain))),
          std::string(onnx::bodyOf(node, kOpType)), std::string(onnx::bodyOf(node, kOverload))};
}

onnx::Body bodyOfFunction(Bytes function) { return {function, {}, kFunctionNode}; }

/// The values that a node uses, in its nested graphs too.
std::vector<Bytes> usedBy(Bytes node) {
  std::vector<Bytes> used = bodiesOf(node, kNodeInput);
  for (const onnx::Path& inner : onnx::graphsOf(node)) {
    const std::vector<Bytes> captured = onnx::capturedBy(inner.back().body);
    used.insert(used.end(), captured.begin(), captured.end());
  }
  return used;
}

/// Calls `visit` for each node of a body, and of the graphs nested in it, with the way to it.
template <typename Visit>
void forEachNodeWithin(const onnx::Body& body, Visit visit) {
  onnx::forEachBodyWithin(body, [&visit](const onnx::Body& each) {
    Field field;
    for (Fields fields(each.message); fields.next(&field);) {
      if (field.number != each.nodes || field.type != onnx::kBytes) continue;
      onnx::Path path = each.path;
      path.push_back(field);
      visit(path);
    }
  });
}

/// The local functions of a model, in the order of the file.
class Functions {
 public:
  explicit Functions(Bytes model) {
    for (const Bytes function : bodiesOf(model, onnx::numbers::kFunctions)) {
      const auto [place, fresh] = places_.try_emplace(keyOfFunction(function), messages_.size());
      if (fresh) {
        messages_.emplace_back(function);
      } else {
        messages_[place->second] = function;
      }
    }
  }

  std::size_t size() const { return messages_.size(); }
  const std::vector<std::string>& messages() const { return messages_; }
  Bytes at(std::size_t number) const { return messages_[number]; }
  void set(std::size_t number, std::string message) { messages_[number] = std::move(message); }
  /// The number of a function; nothing if there is none.
  std::optional<std::size_t> find(const FunctionKey& key) const {
    const auto found = places_.find(key);
    return found == places_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::map<FunctionKey, std::size_t> places_;
  std::vector<std::string> messages_;
};

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
  for (const std::string& each : functions.messages()) bodies.push_back(bodyOfFunction(each));
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

/// Versions of operator sets by domain.
using Sets = std::map<std::string, int64_t>;

std::pair<std::string, int64_t> setOf(Bytes import) {
  int64_t version = 0;
  Field field;
  for (Fields fields(import); fields.next(&field);) {
    if (field.number == kSetVersion) version = static_cast<int64_t>(field.value);
  }
  return {std::string(onnx::plainDomain(onnx::bodyOf(import, kSetDomain))), version};
}

Sets setsOf(const std::vector<Bytes>& imports) {
  Sets sets;
  for (const Bytes import : imports) sets.insert(setOf(import));
  return sets;
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
    forEachNodeWithin(bodyOfFunction(function), [&taken](const onnx::Path& path) {
      taken.insert(onnx::bodyOf(path.back().body, kDomain));
    });
    while (taken.count(domain_) != 0) domain_ += '_';
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
      const std::string name = std::string(outputs_[i]) + kResultMark;
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
    for (const Bytes import : imports()) onnx::appendBody(kOpsetImport, import, &text);
    std::string own;
    onnx::appendBody(kSetDomain, domain_, &own);
    onnx::appendNumber(kSetVersion, 1, &own);
    onnx::appendBody(kOpsetImport, own, &text);
    for (const std::size_t number : calledBy(graph, functions)) {
      onnx::appendBody(onnx::numbers::kFunctions, functions.at(number), &text);
    }
    return text;
  }

  /// Returns the function with the body of a changed model; nothing if it is the same.
  std::optional<std::string> functionOf(Bytes changed) const {
    const Sets own = setsOf(imports());
    std::vector<Bytes> new_imports = imports();
    for (const Bytes import : bodiesOf(changed, kOpsetImport)) {
      const auto [domain, version] = setOf(import);
      if (domain == domain_) continue;
      const auto found = own.find(domain);
      if (found == own.end() && domain == kLibraryDomain) {
        refuse(
            "a pass gave it an operator of a library, of which runtimes infer no types in "
            "functions; run inlineFunctions before the pass");
      } else if (found == own.end()) {
        new_imports.push_back(import);
      } else if (found->second != version) {
        refuse("a pass changed its operator set " + mxnet::ext::host::quoted(domain) +
               " from version " + std::to_string(found->second) + " to " + std::to_string(version));
      }
    }
    const Bytes graph = onnx::bodyOf(changed, kGraph);
    check(graph, own);
    const std::string named = withResultNames(graph, own.count("") != 0);
    const std::string text = withShownNodes(named);
    std::unordered_map<Bytes, Bytes> producers;
    for (const Bytes node : bodiesOf(function_, kFunctionNode)) {
      for (const Bytes name : bodiesOf(node, kNodeOutput)) producers[name] = node;
    }
    std::set<Bytes> same(inputs_.begin(), inputs_.end());
    same.insert(outputs_.begin(), outputs_.end());
    const std::vector<Bytes> nodes = bodiesOf(text, kNode);
    for (const Bytes node : nodes) {
      const std::vector<Bytes> used = usedBy(node);
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
    if (new_imports.size() > imports().size()) {
      made = onnx::withItems(made, {{kFunctionImport, new_imports}});
    }
    if (made == function_) return std::nullopt;
    return made;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw GraphError("local function '" + std::string(onnx::bodyOf(function_, kFunctionName)) +
                     "': " + what);
  }

  /// Throws GraphError if a changed graph cannot be the body.
  void check(Bytes graph, const Sets& sets) const {
    const auto own = sets.find("");
    if (!bodiesOf(graph, kSparseInitializer).empty()) refuse("a pass gave it a sparse weight");
    std::set<Bytes> weights;
    for (const Bytes tensor : bodiesOf(graph, kInitializer)) {
      weights.insert(onnx::bodyOf(tensor, kTensorName));
      const int type = onnx::readTensor(tensor).type;
      const bool is_real =
          type == facts::kFloat || type == facts::kDouble || type == facts::kFloat16;
      if (own == sets.end() || (own->second < kConstantOfAnyType && !is_real)) {
        refuse("a pass gave it a weight, which a Constant of its operator set cannot hold");
      }
    }
    for (const Bytes input : bodiesOf(graph, kInput)) {
      const Bytes name = onnx::bodyOf(input, kValueName);
      if (weights.count(name) != 0) continue;
      if (std::find(inputs_.begin(), inputs_.end(), name) == inputs_.end()) {
        refuse("a pass added the input '" + std::string(name) + "'");
      }
    }
    std::set<Bytes> marked;
    std::set<std::size_t> results;
    const std::vector<Bytes> nodes = bodiesOf(graph, kNode);
    for (const Bytes node : nodes) {
      if (!isMark(node, kResultMark)) continue;
      if (numberOf(node, kResultMark) >= outputs_.size()) refuse("a pass added an output");
      const std::vector<Bytes> from = bodiesOf(node, kNodeInput);
      if (from.size() == 1 && !from[0].empty()) results.insert(numberOf(node, kResultMark));
      for (const Bytes name : bodiesOf(node, kNodeOutput)) marked.insert(name);
    }
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const std::string name(outputs_[i]);
      if (results.count(i) == 0) refuse("a pass removed the output '" + name + "'");
    }
    if (marked.size() > outputs_.size()) refuse("a pass copied an output");
    for (const Bytes node : nodes) {
      for (const Bytes name : usedBy(node)) {
        if (marked.count(name) != 0) refuse("a pass put a node behind an output");
      }
    }
  }

  std::vector<Bytes> imports() const {
    std::vector<Bytes> own = bodiesOf(function_, kFunctionImport);
    return own.empty() ? bodiesOf(model_, kOpsetImport) : own;
  }

  bool isMark(Bytes node, Bytes mark) const {
    return onnx::bodyOf(node, kDomain) == domain_ &&
           onnx::bodyOf(node, kOpType).substr(0, mark.size()) == mark;
  }

  static std::size_t numberOf(Bytes node, Bytes mark) {
    const std::string digits(onnx::bodyOf(node, kOpType).substr(mark.size()));
    return std::strtoull(digits.c_str(), nullptr, 10);
  }

  /// The function with operators that nobody knows in place of those that refer.
  std::optional<std::string> withHiddenNodes() {
    onnx::Splices splices(function_);
    bool has_graph = false;
    forEachNodeWithin(bodyOfFunction(function_), [&](const onnx::Path& path) {
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
        pending.push_back(bodyOfFunction(functions.at(*found)));
      });
    }
    return added;
  }

  /// A graph without weights and marks, whose results have the names of the function's.
  /// `has_identity`: whether operators of ONNX may be added.
  std::string withResultNames(Bytes graph, bool has_identity) const {
    onnx::Arena arena;
    std::vector<Bytes> nodes;
    for (const Bytes tensor : bodiesOf(graph, kInitializer)) {
      nodes.push_back(arena.emplace_back(onnx::constantNode(tensor)));
    }
    std::vector<Bytes> sources(outputs_.size());
    std::set<Bytes> made;
    for (const Bytes node : bodiesOf(graph, kNode)) {
      if (isMark(node, kResultMark)) {
        sources.at(numberOf(node, kResultMark)) = onnx::bodyOf(node, kNodeInput);
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
    if (!copied.empty() && !has_identity) {
      refuse("a pass made an output another value, which needs Identity of ONNX's operator sets");
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
      if (!isMark(node, kReferringMark)) return;
      const std::size_t place = numberOf(node, kReferringMark);
      if (place >= hidden_.size()) refuse("a pass added an operator of the domain " + domain_);
      const Bytes kept = hidden_[place];
      std::map<uint32_t, std::vector<Bytes>> items;
      for (const uint32_t number : {kOpType, kDomain, kOverload}) {
        items[number] = bodiesOf(kept, number);
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
  std::vector<Bytes> inputs_;
  std::vector<Bytes> outputs_;
  std::string domain_ = "referring";  ///< of operators that only the model has
  std::vector<Bytes> hidden_;         ///< the operators that refer
};

/// The number of operators of a function, and its bytes.
std::pair<std::size_t, std::size_t> priceOf(Bytes function) {
  std::size_t count = 0;
  forEachNodeWithin(bodyOfFunction(function), [&count](const onnx::Path& path) {
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
    const auto [domain, name, overload] = keyOfFunction(function);
    const auto inferred = known.facts().calls().find({domain, name});
    if (inferred != known.facts().calls().end() && overload.empty() &&
        inferred->second.nodes.size() == calls[i].count) {
      inputs = inferred->second.inputs;
    }
    std::optional<std::string> alone = body.model(inputs, functions);
    if (!alone) continue;
    std::optional<std::string> made;
    try {
      const std::optional<std::string> changed = change(*std::move(alone), name);
      if (changed) made = body.functionOf(*changed);
    } catch (const std::system_error&) {
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
