#include "model/nested_graphs.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "facts/file_facts.h"
#include "graph/attributes.h"
#include "header.h"
#include "onnx/naming/fresh_names.h"
#include "onnx/parts/attribute.h"
#include "onnx/parts/bodies.h"
#include "onnx/parts/tensor.h"
#include "onnx/wire/splices.h"

namespace passlib::model {

namespace {

using namespace onnx::numbers;  // NOLINT: this file only
using onnx::bodiesOf;
using onnx::Bytes;
using onnx::Field;
using onnx::Fields;

/// Before this operator set, the inputs of Scan have an axis for the batch.
constexpr int64_t kScanWithoutBatch = 9;

/// The bytes of the elements of a TensorProto.
std::size_t bytesOfTensor(Bytes message) {
  const onnx::Tensor tensor = onnx::readTensor(message);
  const onnx::ElementType* const type = onnx::elementType(tensor.type);
  if (type == nullptr) return 0;
  return type->size *
         onnx::countElements(tensor.dims, [&tensor] { return std::string(tensor.name); });
}

/// Returns a ValueInfoProto of a tensor with other dimensions, each a message; null for none.
std::string withDims(Bytes value, const std::vector<Bytes>* dims) {
  std::string shape;
  if (dims != nullptr) {
    for (const Bytes dim : *dims) onnx::appendBody(kDim, dim, &shape);
  }
  const Bytes type = onnx::bodyOf(value, kValueType);
  const Bytes old = onnx::bodyOf(type, kTensorType);
  const std::vector<Bytes> shapes(dims == nullptr ? 0 : 1, shape);
  const std::string tensor = onnx::withItems(old, {{kShape, shapes}});
  const std::string made = onnx::withItems(type, {{kTensorType, {tensor}}});
  return onnx::withItems(value, {{kValueType, {made}}});
}

/// A node with a nested graph, each a message.
struct Holder {
  Bytes node;
  Bytes graph;
};

/// Models of the nested graphs of a file, and the changed graphs.
class NestedModels {
 public:
  explicit NestedModels(const NestedSource& source)
      : source_(source), fresh_(source.originals.get(), &arena_) {
    const onnx::OriginalGraph& main = source.originals->main();
    for (const Bytes input : main.inputs) inputs_[onnx::bodyOf(input, kValueName)] = input;
    const bool with_defaults = source.originals->irVersion() >= kInputsAlso;
    for (const Bytes tensor : main.initializers) {
      const Bytes name = onnx::bodyOf(tensor, kTensorName);
      if (!with_defaults || inputs_.count(name) == 0) initializers_[name] = tensor;
    }
    for (std::size_t i = 0; i < main.nodes.size(); ++i) {
      const std::vector<Bytes> outputs = bodiesOf(main.nodes[i], kNodeOutput);
      for (std::size_t k = 0; k < outputs.size(); ++k) {
        if (!outputs[k].empty()) results_[outputs[k]] = {i, k};
      }
    }
  }

  /// Returns a graph in place of that of a holder; nothing if it stays.
  std::optional<std::string> changed(const Holder& holder, const ChangeGraph& change) {
    const std::vector<Bytes> captured = onnx::capturedBy(holder.graph);
    std::optional<std::string> alone = modelOfGraph(holder, captured);
    if (!alone) return std::nullopt;
    try {
      const std::optional<std::string> made = change(*std::move(alone));
      if (!made) return std::nullopt;
      return graphOf(holder.graph, onnx::bodyOf(*made, kGraph), captured);
    } catch (const std::system_error&) {
      throw;
    } catch (const std::runtime_error&) {  // it is no complete model
      return std::nullopt;
    }
  }

 private:
  /// Returns the model of a nested graph; nothing if the type of a captured value is not known.
  std::optional<std::string> modelOfGraph(const Holder& holder,
                                          const std::vector<Bytes>& captured) {
    onnx::Arena made;
    std::vector<Bytes> initializers = bodiesOf(holder.graph, kInitializer);
    std::vector<Bytes> inputs = bodiesOf(holder.graph, kInput);
    if (onnx::bodyOf(holder.node, kOpType) != "If") {
      // From one round to the next the sizes may change, whatever the file states.
      for (Bytes& input : inputs) {
        const bool is_tensor = !bodiesOf(onnx::bodyOf(input, kValueType), kTensorType).empty();
        if (is_tensor) input = made.emplace_back(withDims(input, nullptr));
      }
    }
    if (onnx::bodyOf(holder.node, kOpType) == "Scan") stateParts(holder.node, &inputs, &made);
    for (const Bytes name : captured) {
      const auto constant = initializers_.find(name);
      if (constant != initializers_.end()) {
        initializers.push_back(constant->second);
        continue;
      }
      const Bytes described = description(name);
      const Bytes type = onnx::bodyOf(onnx::bodyOf(described, kValueType), kTensorType);
      if (!statesElements(type)) return std::nullopt;
      inputs.push_back(described);
    }
    const std::string graph =
        onnx::withItems(holder.graph, {{kInitializer, initializers}, {kInput, inputs}});
    std::string model;
    const auto copy = [this, &model](uint32_t number) {
      const auto keep = [number](const Field& field) { return field.number == number; };
      onnx::appendFields(source_.bytes, keep, &model);
    };
    copy(kIrVersion);
    onnx::appendBody(kGraph, graph, &model);
    copy(kOpsetImport);
    copy(kFunctions);
    return model;
  }

  static bool statesElements(Bytes type) {
    Field field;
    for (Fields fields(type); fields.next(&field);) {
      if (field.number == kElementType && field.value != 0) return true;
    }
    return false;
  }

  /// The ValueInfoProto of a value of the main graph; empty if its type is not known.
  Bytes description(Bytes name) {
    const auto result = results_.find(name);
    if (result != results_.end()) {
      const facts::Fact* const fact = factOf(result->second.first, result->second.second);
      if (fact != nullptr && fact->type != facts::kUnknownType && fact->wrappers.empty()) {
        std::string made;
        onnx::appendBody(kValueName, name, &made);
        const auto named = [](const facts::Dim&) { return true; };
        onnx::appendBody(kValueType, facts::typeMessage(*fact, named), &made);
        return arena_.emplace_back(std::move(made));
      }
    }
    const auto input = inputs_.find(name);
    return input == inputs_.end() ? Bytes("") : input->second;
  }

  /// The fact of a result of a node, by the number of the node; null if there is none.
  const facts::Fact* factOf(std::size_t node, std::size_t output) {
    if (facts_ == nullptr) {
      facts_ = std::make_unique<facts::FileFacts>(source_.originals, source_.graph,
                                                  facts::FileFacts::Known());
      facts_->infer(source_.opsets, {}, true, true, false);
    }
    const onnx::Original* const original = source_.originals->find(std::to_string(node));
    const bool has = original != nullptr &&
                     output < static_cast<std::size_t>(std::max(original->node->num_outputs, 1));
    return has ? &facts_->facts().of(original->node, output) : nullptr;
  }

  /// States the shapes of the parts that a Scan takes of its inputs in each round.
  void stateParts(Bytes node, std::vector<Bytes>* inputs, onnx::Arena* arena) {
    std::size_t count = 0;
    std::vector<int64_t> axes;
    for (const Bytes each : bodiesOf(node, kAttribute)) {
      const onnx::Attribute attribute = onnx::readAttribute(each, arena);
      if (attribute.name == "num_scan_inputs" && attribute.whole > 0) {
        count = static_cast<std::size_t>(attribute.whole);
      }
      if (attribute.name == "scan_input_axes") axes = onnx::numbersOf<int64_t>(attribute);
    }
    const std::vector<Bytes> given = bodiesOf(node, kNodeInput);
    const facts::Opsets& imports = source_.opsets;
    const auto own = std::find_if(imports.begin(), imports.end(), [](const auto& each) {
      return each.first.empty() || each.first == "ai.onnx";
    });
    if (count == 0 || count > inputs->size() || inputs->size() != given.size() ||
        own == imports.end() || own->second < kScanWithoutBatch ||
        (!axes.empty() && axes.size() != count)) {
      return;
    }
    axes.resize(count, 0);
    for (std::size_t i = 0; i < count; ++i) {
      Bytes& part = (*inputs)[inputs->size() - count + i];
      const Bytes whole = description(given[given.size() - count + i]);
      const Bytes type = onnx::bodyOf(onnx::bodyOf(whole, kValueType), kTensorType);
      if (bodiesOf(type, kShape).empty()) continue;
      std::vector<Bytes> dims = bodiesOf(onnx::bodyOf(type, kShape), kDim);
      const auto rank = static_cast<int64_t>(dims.size());
      if (axes[i] < -rank || axes[i] >= rank) continue;
      dims.erase(dims.begin() + (axes[i] < 0 ? axes[i] + rank : axes[i]));
      part = arena->emplace_back(withDims(part, &dims));
    }
  }

  /// Returns a nested graph with the contents of that of its changed model; its inputs and outputs
  /// keep names and types.
  std::string graphOf(Bytes graph, Bytes made, const std::vector<Bytes>& captured) {
    const onnx::NamesOfValues outer(captured.begin(), captured.end());
    const onnx::NamesOfValues own = onnx::valuesWithin(graph);
    onnx::NamesOfValues fixed;  // the names of inputs and outputs
    for (const uint32_t number : {kInput, kOutput}) {
      for (const Bytes value : bodiesOf(graph, number)) {
        fixed.insert(onnx::bodyOf(value, kValueName));
      }
    }
    onnx::NamesOfValues shared;  // initializers of the main graph
    for (const Bytes tensor : bodiesOf(made, kInitializer)) {
      const Bytes name = onnx::bodyOf(tensor, kTensorName);
      const auto found = initializers_.find(name);
      if (outer.count(name) != 0 && found != initializers_.end() && found->second == tensor) {
        shared.insert(name);
      }
    }
    onnx::NamesOfValues known = fixed;
    known.insert(shared.begin(), shared.end());
    for (const Bytes value : bodiesOf(made, kInput)) known.insert(onnx::bodyOf(value, kValueName));
    std::unordered_map<Bytes, Bytes> names;
    for (const Bytes name : onnx::definedWithin(made)) {
      if (name.empty() || known.count(name) != 0) continue;
      if (own.count(name) != 0 && outer.count(name) == 0) continue;
      names[name] = fresh_.fresh(arena_.emplace_back(name));
    }
    const std::string text = onnx::withValueNames(made, names);
    onnx::Arena added;
    std::vector<Bytes> nodes;
    std::vector<Bytes> initializers;
    for (const Bytes tensor : bodiesOf(text, kInitializer)) {
      const Bytes name = onnx::bodyOf(tensor, kTensorName);
      if (fixed.count(name) != 0) {  // an output needs a node
        nodes.push_back(added.emplace_back(onnx::constantNode(tensor)));
      } else if (shared.count(name) == 0) {
        initializers.push_back(tensor);
      }
    }
    const std::vector<Bytes> others = bodiesOf(text, kNode);
    nodes.insert(nodes.end(), others.begin(), others.end());
    return onnx::withItems(graph, {{kNode, nodes}, {kInitializer, initializers}, {kValueInfo, {}}});
  }

  const NestedSource& source_;
  onnx::Arena arena_;  ///< of names and types
  onnx::FreshNames fresh_;
  std::unique_ptr<facts::FileFacts> facts_;  ///< or null
  // Values of the main graph by name.
  std::unordered_map<Bytes, Bytes> inputs_;
  std::unordered_map<Bytes, Bytes> initializers_;  ///< but defaults of inputs
  std::unordered_map<Bytes, std::pair<std::size_t, std::size_t>> results_;  ///< node, output
};

/// Whether a graph has more than one node.
bool hasNodes(Bytes graph) { return bodiesOf(graph, kNode).size() > 1; }

}  // namespace

std::size_t nestedBytes(const Graph& graph, const onnx::Originals& file) {
  std::size_t sum = 0;
  // Only read here; the walk takes pointers that could be written to.
  mxnet::ext::host::forEachNode(
      const_cast<Graph*>(&graph), [](Graph*) {},
      [&](const Graph* around, const Node* node) {
        if (around == &graph || node->op != "null") return;
        const std::string_view id = attributeOf(*node, onnx::keys::kId);
        const onnx::Original* const original = id.empty() ? nullptr : file.find(id);
        if (original == nullptr) return;
        if (original->what == onnx::Original::kInitializer) {
          sum += bytesOfTensor(original->message());
        } else if (original->what == onnx::Original::kConstant) {
          for (const Bytes attribute : bodiesOf(original->message(), kAttribute)) {
            for (const Bytes tensor : bodiesOf(attribute, kT)) sum += bytesOfTensor(tensor);
          }
        }
      });
  return sum;
}

std::optional<std::string> withNestedGraphs(const NestedSource& source, const ChangeGraph& change) {
  NestedModels models(source);
  onnx::Splices splices(source.bytes);
  bool is_changed = false;
  const auto visit = [&](const Field& graph, const Field& node, const onnx::Path& inner) {
    const Bytes nested = inner.back().body;
    if (inner.back().number != kG || !hasNodes(nested)) return;
    std::optional<std::string> made = models.changed({node.body, nested}, change);
    if (!made) return;
    splices.replace({graph, node, inner.front(), inner.back()}, *std::move(made));
    is_changed = true;
  };
  Field graph;
  Field node;
  for (Fields fields(source.bytes); fields.next(&graph);) {
    if (graph.number != kGraph || graph.type != onnx::kBytes) continue;
    for (Fields nodes(graph.body); nodes.next(&node);) {
      if (node.number != kNode || node.type != onnx::kBytes) continue;
      for (const onnx::Path& inner : onnx::graphsOf(node.body)) visit(graph, node, inner);
    }
  }
  if (!is_changed) return std::nullopt;
  return splices.finish().copy();
}

}  // namespace passlib::model
