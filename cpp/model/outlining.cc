#include "model/outlining.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/name_source.h"
#include "onnx/original/originals.h"
#include "onnx/parts/attribute.h"
#include "onnx/parts/functions.h"
#include "onnx/wire/output.h"

namespace passlib::model {

namespace {

using namespace onnx::numbers;  // NOLINT: this file only
using onnx::bodiesOf;
using onnx::bodyOf;
using onnx::Bytes;

/// Equal constants of at most so many bytes become a part of the function.
constexpr std::size_t kSmall = 512;

/// Nodes that are compared with their inputs, and by their kinds alone; the best layers found until
/// then are taken.
constexpr std::size_t kMostSteps = 3000000;
constexpr std::size_t kMostScanned = 400000000;

/// Layers of more operators are not looked for.
constexpr std::size_t kLongest = 4096;

/// The oldest IR version with functions.
constexpr int64_t kOldestFormat = 8;

/// The element of TensorProto.DataLocation for data in another file.
constexpr uint64_t kExternal = 1;

/// A number for each name of a value; 0 is the empty name of an omitted one.
using Name = std::size_t;

/// An operator of the graph.
struct Operator {
  Bytes message;
  int64_t kind = 0;  ///< equal for equal operators and attributes
  std::vector<Name> inputs;
  std::vector<Name> outputs;
  std::vector<Name> used;  ///< the inputs, and what nested graphs capture
};

/// An output of an operator of a layer.
struct Result {
  std::size_t offset;  ///< of the operator in the layer
  std::size_t output;

  bool operator<(const Result& other) const {
    return std::tie(offset, output) < std::tie(other.offset, other.output);
  }
};

/// Places where the same operators follow each other.
struct Layers {
  std::vector<std::size_t> starts;
  std::size_t length;

  /// Operators that repeat others. Two layers that are taken for one repeat fewer.
  std::size_t repeated() const { return (starts.size() - 1) * length; }
  /// Whether the graph has fewer operators with calls.
  bool isShorter() const { return repeated() > starts.size(); }
};

class Outliner {
 public:
  Outliner(Bytes model, std::size_t least, const std::string& domain)
      : model_(model), least_(std::max<std::size_t>(least, 2)), domain_(domain) {
    graph_ = onnx::mergedBody(model, kGraph, &arena_);
    std::set<Bytes> given;
    for (const Bytes value : bodiesOf(graph_, kInput)) given.insert(bodyOf(value, kValueName));
    for (const Bytes tensor : bodiesOf(graph_, kInitializer)) {
      const Bytes name = bodyOf(tensor, kTensorName);
      if (given.count(name) == 0) weights_[nameOf(name)] = tensor;
    }
    for (const Bytes node : bodiesOf(graph_, kNode)) {
      titles_.use(std::string(bodyOf(node, kNodeName)));
      if (isConstant(node)) {
        constants_.push_back(node);
        made_[nameOf(bodyOf(node, kNodeOutput))] = node;
      } else {
        operators_.push_back(operatorOf(node));
      }
    }
    for (const Bytes value : bodiesOf(graph_, kOutput)) {
      outputs_.push_back(nameOf(bodyOf(value, kValueName)));
    }
    for (const Bytes function : bodiesOf(model, kFunctions)) {
      names_.use(onnx::keyOfFunction(function).name);
    }
  }

  /// Replaces layers, most operators first, until there are none.
  std::optional<std::string> run() {
    while (true) {
      index();
      const std::optional<Layers> layers = best();
      if (!layers) break;
      replace(*layers);
    }
    return functions_.empty() ? std::nullopt : std::optional(finish());
  }

 private:
  static bool isConstant(Bytes node) {
    return bodyOf(node, kOpType) == "Constant" && bodyOf(node, kDomain).empty() &&
           bodiesOf(node, kAttribute).size() == 1;
  }

  Name nameOf(Bytes text) {
    const auto [place, is_new] = numbers_.try_emplace(text, names_of_.size());
    if (is_new) names_of_.push_back(text);
    return place->second;
  }

  Operator operatorOf(Bytes node) {
    Operator made;
    made.message = node;
    made.kind = kindOf(node);
    for (const Bytes name : bodiesOf(node, kNodeInput)) made.inputs.push_back(nameOf(name));
    for (const Bytes name : bodiesOf(node, kNodeOutput)) made.outputs.push_back(nameOf(name));
    for (const Bytes name : onnx::usedBy(node)) made.used.push_back(nameOf(name));
    return made;
  }

  /// Operators with graphs are of a kind of their own: what these capture is no input.
  int64_t kindOf(Bytes node) {
    std::vector<Bytes> attributes = bodiesOf(node, kAttribute);
    for (const Bytes each : attributes) {
      if (onnx::readAttribute(each, &arena_).isGraph()) return --own_kinds_;
    }
    std::sort(attributes.begin(), attributes.end());
    const Kind key = {onnx::keyOfCall(node), attributes, bodiesOf(node, kNodeInput).size(),
                      bodiesOf(node, kNodeOutput).size()};
    return kinds_.try_emplace(key, static_cast<int64_t>(kinds_.size())).first->second;
  }

  // The layers.

  /// Notes the producers and readers of values.
  void index() {
    producers_.assign(names_of_.size(), {kNone, 0});
    first_reader_.assign(names_of_.size(), kNone);
    last_reader_.assign(names_of_.size(), kNone);
    const auto read = [this](Name name, std::size_t place) {
      if (first_reader_[name] == kNone) first_reader_[name] = place;
      last_reader_[name] = place;
    };
    for (std::size_t place = 0; place < operators_.size(); ++place) {
      const Operator& each = operators_[place];
      for (std::size_t i = 0; i < each.outputs.size(); ++i) {
        if (each.outputs[i] != kOmitted) producers_[each.outputs[i]] = {place, i};
      }
      for (const Name name : each.used) read(name, place);
    }
    for (const Name name : outputs_) read(name, operators_.size());
    seen_.assign(names_of_.size(), {});
  }

  /// The layers that repeat most operators; nothing if no calls are shorter.
  std::optional<Layers> best() {
    std::optional<Layers> best;
    const std::size_t count = operators_.size();
    for (std::size_t length = least_; length <= std::min(count / 2, kLongest); ++length) {
      if (isTired()) break;
      // Layers of this length repeat at most so many operators, longer ones fewer.
      if (best && count - length <= best->repeated()) break;
      std::set<std::size_t> known;  // places of layers that were compared with all
      for (const auto& [first, end] : runs(length)) {
        if (isTired()) break;
        for (const std::size_t start : starts(first, end, length)) {
          if (known.count(start + length) != 0) continue;
          Layers found = equalTo(start, length);
          known.insert(found.starts.begin(), found.starts.end());
          if (found.isShorter() && (!best || found.repeated() > best->repeated())) {
            best = std::move(found);
          }
        }
      }
    }
    return best;
  }

  bool isTired() const { return steps_ > kMostSteps || scanned_ > kMostScanned; }

  /// The spans where each node is of the kind of that a length before it.
  std::vector<std::pair<std::size_t, std::size_t>> runs(std::size_t length) {
    scanned_ += operators_.size();
    std::vector<std::pair<std::size_t, std::size_t>> found;
    const std::size_t most = operators_.size() - length;
    std::size_t first = 0;
    for (std::size_t place = 0; place <= most; ++place) {
      if (place < most && operators_[place].kind == operators_[place + length].kind) continue;
      if (place - first >= length) found.emplace_back(first, place + length);
      first = place + 1;
    }
    return found;
  }

  /// The places where layers in a span may begin, those of the fewest values first.
  std::vector<std::size_t> starts(std::size_t first, std::size_t end, std::size_t length) {
    const std::size_t times = (end - first) / length;
    std::vector<std::pair<std::size_t, std::size_t>> places;
    for (std::size_t place = first; place <= end - times * length; ++place) {
      places.emplace_back(width(place, length), place);
    }
    std::sort(places.begin(), places.end());
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < std::min<std::size_t>(places.size(), 2); ++i) {
      chosen.push_back(places[i].second);
    }
    return chosen;
  }

  /// How many values the second layer gets that no weights are, and passes on.
  std::size_t width(std::size_t start, std::size_t length) {
    const std::size_t first = start + length;
    const std::size_t end = start + 2 * length;
    const std::size_t round = ++rounds_;
    scanned_ += 8 * length;  // which take as long
    std::size_t count = 0;
    for (std::size_t place = first; place < end; ++place) {
      for (const Name name : operators_[place].outputs) {
        if (std::exchange(seen_[name].made, round) == round) continue;
        const std::size_t last = last_reader_[name];
        if (last != kNone && last >= end) ++count;
      }
    }
    for (std::size_t place = first; place < end; ++place) {
      for (const Name name : operators_[place].inputs) {
        if (std::exchange(seen_[name].read, round) == round) continue;
        if (seen_[name].made != round && !isFixed(name)) ++count;
      }
    }
    return count;
  }

  bool isFixed(Name name) const { return weights_.count(name) != 0 || made_.count(name) != 0; }

  /// All layers, in the whole graph, that equal the second one of a span.
  Layers equalTo(std::size_t start, std::size_t length) {
    const std::vector<std::size_t> wanted = formOf(start + length, length);
    Layers made{{}, length};
    std::size_t place = 0;
    while (place + length <= operators_.size()) {
      std::size_t same = 0;
      while (same < length && operators_[place + same].kind == operators_[start + same].kind) {
        ++same;
      }
      scanned_ += same + 1;
      if (same == length && formOf(place, length) == wanted) {
        made.starts.push_back(place);
        place += length;
      } else {
        ++place;
      }
    }
    return made;
  }

  /// How the nodes of a layer are connected, as a row of numbers.
  std::vector<std::size_t> formOf(std::size_t start, std::size_t length) {
    steps_ += length;
    const std::size_t round = ++rounds_;
    std::size_t outside = 0;
    std::vector<std::size_t> form;
    for (std::size_t place = start; place < start + length; ++place) {
      for (const Name name : operators_[place].inputs) {
        const auto [producer, output] = producers_[name];
        if (name == kOmitted) {
          form.push_back(kNone);
        } else if (producer != kNone && producer >= start && producer < start + length) {
          form.insert(form.end(), {0, producer - start, output});
        } else {
          if (seen_[name].read != round) seen_[name] = {seen_[name].made, round, outside++};
          form.insert(form.end(), {1, seen_[name].number});
        }
      }
      for (const Name name : operators_[place].outputs) form.push_back(name == kOmitted ? 0 : 1);
    }
    form.push_back(outside);
    return form;
  }

  // The functions.

  void replace(const Layers& layers) {
    std::vector<std::vector<Name>> given;
    std::set<Result> results;
    for (const std::size_t start : layers.starts) {
      given.push_back(outsideOf(start, layers.length));
      addPassed(start, layers.length, &results);
    }
    std::vector<bool> is_inner;
    for (std::size_t number = 0; number < given[0].size(); ++number) {
      is_inner.push_back(isInner(given, number));
    }
    const std::string name = addFunction(layers, given[0], is_inner, results);
    std::vector<Operator> left;
    std::size_t place = 0;
    std::size_t layer = 0;
    while (place < operators_.size()) {
      if (layer == layers.starts.size() || place != layers.starts[layer]) {
        left.push_back(std::move(operators_[place++]));
        continue;
      }
      std::string& call = arena_.emplace_back();
      for (std::size_t i = 0; i < given[layer].size(); ++i) {
        if (!is_inner[i]) onnx::appendBody(kNodeInput, names_of_[given[layer][i]], &call);
      }
      for (const Result& each : results) {
        const Name output = operators_[place + each.offset].outputs[each.output];
        onnx::appendBody(kNodeOutput, names_of_[output], &call);
      }
      onnx::appendBody(kNodeName, titles_.fresh(name), &call);
      onnx::appendBody(kOpType, name, &call);
      onnx::appendBody(kDomain, domain_, &call);
      left.push_back(operatorOf(call));
      place += layers.length;
      ++layer;
    }
    operators_ = std::move(left);
  }

  /// The values that a layer gets, in the order of use.
  std::vector<Name> outsideOf(std::size_t start, std::size_t length) {
    const std::size_t round = ++rounds_;
    for (std::size_t place = start; place < start + length; ++place) {
      for (const Name name : operators_[place].outputs) seen_[name].made = round;
    }
    std::vector<Name> found;
    for (std::size_t place = start; place < start + length; ++place) {
      for (const Name name : operators_[place].inputs) {
        if (name == kOmitted || seen_[name].made == round) continue;
        if (std::exchange(seen_[name].read, round) != round) found.push_back(name);
      }
    }
    return found;
  }

  /// Adds the results of a layer that others read.
  void addPassed(std::size_t start, std::size_t length, std::set<Result>* results) const {
    for (std::size_t offset = 0; offset < length; ++offset) {
      const std::vector<Name>& outputs = operators_[start + offset].outputs;
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        const Name name = outputs[i];
        if (name == kOmitted || first_reader_[name] == kNone) continue;
        if (first_reader_[name] < start || last_reader_[name] >= start + length) {
          results->insert({offset, i});
        }
      }
    }
  }

  /// Whether an input is the same small constant in all layers.
  bool isInner(const std::vector<std::vector<Name>>& given, std::size_t number) const {
    const std::string first = constant(given[0][number]);
    return !first.empty() && std::all_of(given.begin(), given.end(), [&](const auto& names) {
      return names[number] == given[0][number] || constant(names[number]) == first;
    });
  }

  /// A small constant as the node of an unnamed value; "" if it is none.
  std::string constant(Name name) const {
    const auto unnamed = [](Bytes tensor) { return onnx::withItems(tensor, {{kTensorName, {}}}); };
    std::string attribute;
    const auto weight = weights_.find(name);
    const auto node = made_.find(name);
    if (weight != weights_.end()) {
      if (weight->second.size() >= 2 * kSmall || isElsewhere(weight->second)) return "";
      onnx::appendBody(kName, "value", &attribute);
      onnx::appendBody(kT, unnamed(weight->second), &attribute);
      onnx::appendNumber(kType, static_cast<uint64_t>(onnx::Kind::kTensor), &attribute);
    } else if (node != made_.end()) {
      if (node->second.size() >= 2 * kSmall) return "";
      const Bytes value = bodyOf(node->second, kAttribute);
      std::vector<std::string> tensors;
      for (const Bytes tensor : bodiesOf(value, kT)) {
        if (isElsewhere(tensor)) return "";
        tensors.push_back(unnamed(tensor));
      }
      attribute = onnx::withItems(value, {{kT, {tensors.begin(), tensors.end()}}});
    } else {
      return "";
    }
    std::string made;
    onnx::appendBody(kOpType, "Constant", &made);
    onnx::appendBody(kAttribute, attribute, &made);
    return made.size() <= kSmall ? made : "";
  }

  /// Whether the elements of a tensor are not in its message.
  static bool isElsewhere(Bytes tensor) {
    onnx::Field field;
    for (onnx::Fields fields(tensor); fields.next(&field);) {
      if (field.number == kDataLocation && field.value == kExternal) return true;
    }
    return false;
  }

  /// Makes a function of the first layer, and returns its name.
  std::string addFunction(const Layers& layers, const std::vector<Name>& given,
                          const std::vector<bool>& is_inner, const std::set<Result>& results) {
    const std::size_t start = layers.starts[0];
    std::string name = names_.fresh("Layer");
    std::string& made = functions_.emplace_back();
    onnx::appendBody(kFunctionName, name, &made);
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (!is_inner[i]) onnx::appendBody(kFunctionInput, names_of_[given[i]], &made);
    }
    for (const Result& each : results) {
      const Name output = operators_[start + each.offset].outputs[each.output];
      onnx::appendBody(kFunctionOutput, names_of_[output], &made);
    }
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (!is_inner[i]) continue;
      const std::string node =
          onnx::withItems(constant(given[i]), {{kNodeOutput, {names_of_[given[i]]}}});
      onnx::appendBody(kFunctionNode, node, &made);
    }
    for (std::size_t place = start; place < start + layers.length; ++place) {
      onnx::appendBody(kFunctionNode, operators_[place].message, &made);
    }
    for (const Bytes import : imports()) onnx::appendBody(kFunctionImport, import, &made);
    onnx::appendBody(kFunctionDomain, domain_, &made);
    return name;
  }

  /// The operator sets of the model, and the functions' own.
  std::vector<Bytes> imports() {
    std::vector<Bytes> made = bodiesOf(model_, kOpsetImport);
    const auto isIt = [this](Bytes import) { return bodyOf(import, kSetDomain) == domain_; };
    if (std::none_of(made.begin(), made.end(), isIt)) {
      if (import_.empty()) import_ = onnx::importOf(domain_, 1);
      made.push_back(import_);
    }
    return made;
  }

  /// The model with the nodes that are left, without what only the layers had.
  std::string finish() {
    std::set<Bytes> used;
    for (const Operator& each : operators_) {
      for (const Name name : each.used) used.insert(names_of_[name]);
    }
    for (const Name name : outputs_) used.insert(names_of_[name]);
    std::map<uint32_t, std::vector<Bytes>> items;
    std::set<Bytes> made;
    for (const Bytes node : constants_) {
      if (used.count(bodyOf(node, kNodeOutput)) != 0) items[kNode].push_back(node);
    }
    for (const Operator& each : operators_) items[kNode].push_back(each.message);
    for (const Bytes node : items[kNode]) {
      for (const Bytes name : bodiesOf(node, kNodeOutput)) made.insert(name);
    }
    items.try_emplace(kInitializer);
    for (const Bytes tensor : bodiesOf(graph_, kInitializer)) {
      const Bytes name = bodyOf(tensor, kTensorName);
      if (used.count(name) != 0 || weights_.count(nameOf(name)) == 0) {
        items[kInitializer].push_back(tensor);
      }
    }
    items.try_emplace(kValueInfo);
    for (const Bytes value : bodiesOf(graph_, kValueInfo)) {
      if (made.count(bodyOf(value, kValueName)) != 0) items[kValueInfo].push_back(value);
    }
    const std::string graph = onnx::withItems(graph_, items);
    std::vector<Bytes> functions = bodiesOf(model_, kFunctions);
    functions.insert(functions.end(), functions_.begin(), functions_.end());
    int64_t format = kOldestFormat;
    std::string rest;
    onnx::appendFields(
        model_,
        [&format](const onnx::Field& field) {
          if (field.number != kIrVersion) return true;
          format = std::max(format, static_cast<int64_t>(field.value));
          return false;
        },
        &rest);
    std::string whole;
    onnx::appendNumber(kIrVersion, static_cast<uint64_t>(format), &whole);
    return whole +
           onnx::withItems(rest,
                           {{kGraph, {graph}}, {kOpsetImport, imports()}, {kFunctions, functions}});
  }

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  static constexpr Name kOmitted = 0;

  using Kind = std::tuple<onnx::FunctionKey, std::vector<Bytes>, std::size_t, std::size_t>;
  struct Producer {
    std::size_t place;
    std::size_t output;
  };
  /// The rounds in which a name was seen last, so that no set is filled and emptied.
  struct Seen {
    std::size_t made = 0;
    std::size_t read = 0;
    std::size_t number = 0;  ///< among those that were read
  };

  Bytes model_;
  std::size_t least_;
  std::string domain_;
  onnx::Arena arena_;
  Bytes graph_;
  std::vector<Bytes> names_of_{Bytes()};  ///< by number
  std::unordered_map<Bytes, Name> numbers_{{Bytes(), kOmitted}};
  std::vector<Bytes> constants_;
  std::vector<Operator> operators_;
  std::vector<Name> outputs_;
  std::unordered_map<Name, Bytes> weights_;  ///< that are no inputs
  std::unordered_map<Name, Bytes> made_;     ///< nodes of constants
  NameSource titles_;
  NameSource names_;  ///< of functions
  std::map<Kind, int64_t> kinds_;
  int64_t own_kinds_ = 0;
  std::vector<Producer> producers_;  ///< by name
  std::vector<std::size_t> first_reader_;
  std::vector<std::size_t> last_reader_;
  std::vector<Seen> seen_;
  std::size_t rounds_ = 0;
  std::size_t steps_ = 0;
  std::size_t scanned_ = 0;
  std::vector<std::string> functions_;
  std::string import_;
};

}  // namespace

std::optional<std::string> outline(Bytes model, std::size_t least, const std::string& domain) {
  return Outliner(model, least, domain).run();
}

}  // namespace passlib::model
