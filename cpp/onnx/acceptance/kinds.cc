#include "onnx/acceptance/kinds.h"

#include <algorithm>
#include <utility>

#include "graph/text_table.h"
#include "onnx/parts/long_attribute.h"
#include "onnx/types/messages.h"
#include "onnx/types/settled.h"
#include "onnx/types/stated.h"
#include "onnx/wire/numbers.h"
#include "onnx/wire/output.h"

namespace passlib::onnx {
namespace {

using namespace numbers;  // NOLINT: this file only

class Collector {
 public:
  Collector(const ModelWriter& model, const KnownValues& known, std::size_t most)
      : model_(model), known_(known), most_(most) {}

  /// `typed_as_before`: by node; empty for none.
  std::optional<std::vector<std::string>> collect(const std::vector<Bytes>& nodes,
                                                  const std::vector<bool>& typed_as_before) {
    if (model_.changesImports() || !readOutermost()) return std::nullopt;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!add(nodes[i], !typed_as_before.empty() && typed_as_before[i])) return std::nullopt;
    }
    return std::move(made_);
  }

 private:
  /// Copies the versions; false if the model has functions, or inputs for all initializers.
  bool readOutermost() {
    if (model_.originals().irVersion() < kInputsAlso) return false;
    Field field;
    for (Fields fields(model_.originals().model()); fields.next(&field);) {
      if (field.number == kFunctions) return false;
      if (field.number == kIrVersion || field.number == kOpsetImport) {
        versions_.append(wholeField(field));
      }
    }
    return true;
  }

  /// Adds the kind of a node; false if it cannot be told. If its types are those of the file, which
  /// is accepted, the first input of a weighted operator may be of any size.
  bool add(Bytes node, bool typed_as_before) {
    before_.clear();
    around_.clear();
    count_ = 0;
    std::string made;
    NameMap<std::string> named;
    const Bytes domain = bodyOf(node, kDomain);
    const bool by_elements = usesElements(bodyOf(node, kOpType), domain);
    bool is_open = typed_as_before && takesBias(bodyOf(node, kOpType), domain);
    Field field;
    for (Fields fields(node); fields.next(&field);) {
      switch (field.number) {
        case kNodeInput: {
          const auto [name, fresh] = named.insert(field.body, nameFor(field.body));
          appendBody(kNodeInput, *name, &made);
          const bool open = std::exchange(is_open, false) && !isStated(field.body);
          if (!open && fresh && !addInput(field.body, *name, by_elements)) return false;
          if (open && !addOpenInput(*name, node)) return false;
          break;
        }
        case kNodeOutput:
          appendBody(kNodeOutput, addOutput(field.body), &made);
          break;
        case kNodeName:
        case kDocString:
        case kMetadata:
          break;
        case kAttribute: {
          Arena arena;
          const Attribute attribute = readAttribute(field.body, &arena);
          if (attribute.isGraph() || !attribute.reference.empty()) return false;
          std::string rest;
          if (cutAttribute(domain, field.body, &rest)) {
            appendBody(kAttribute, rest, &made);
          } else {
            made.append(wholeField(field));
          }
          break;
        }
        default:
          made.append(wholeField(field));
      }
    }
    std::string graph = before_;
    appendBody(kNode, made, &graph);
    graph += around_;
    appendBody(kGraphName, "kind", &graph);
    if (!kinds_.insert(graph).second) return true;
    if (kinds_.size() > most_) return false;
    made_.push_back(versions_);
    appendBody(numbers::kGraph, graph, &made_.back());
    return true;
  }

  std::string nameFor(Bytes value) {
    return value.empty() ? std::string() : "v" + std::to_string(count_++);
  }

  std::string addOutput(Bytes output) {
    const std::string name = nameFor(output);
    const Known* known = known_.find(output);
    if (!output.empty() && known != nullptr && !known->type.empty()) {
      appendValue(kValueInfo, name, known->type);
    }
    return name;
  }

  bool addInput(Bytes input, Bytes name, bool by_elements) {
    if (input.empty()) return true;
    const Known* known = known_.find(input);
    if (known == nullptr) return false;
    const bool is_constant = known->constant.data() != nullptr;
    if (is_constant && (by_elements || known->type.empty())) {
      std::string node;
      const auto keep = [](const Field& field) {
        return field.number != kNodeOutput && field.number != kNodeName;
      };
      appendFields(known->constant, keep, &node);
      appendBody(kNodeOutput, name, &node);
      appendBody(kNode, node, &before_);
      return true;
    }
    const bool shown = by_elements && known->elements.data() != nullptr;
    if (shown) appendBody(kInitializer, withBody(known->elements, kTensorName, name), &around_);
    if (shown && !known->is_input) return true;
    if (known->type.empty()) return false;
    appendValue(kInput, name, known->type);
    return true;
  }

  bool isStated(Bytes value) const {
    const Known* const known = known_.find(value);
    return known != nullptr && (!known->type.empty() || known->constant.data() != nullptr);
  }

  /// Adds the first input of a node with as many axes as the second one, which is known.
  bool addOpenInput(Bytes name, Bytes node) {
    Bytes weight;
    int count = 0;
    forEachBody(node, kNodeInput, [&](Bytes input) {
      if (++count == 2) weight = input;
    });
    const Known* const known = known_.find(weight);
    if (known == nullptr) return false;
    StatedType type = typeOf(known->type);
    if (!type.code || !type.dims) return false;
    std::fill(type.dims->begin(), type.dims->end(), -1);
    appendBody(kInput, valueInfo(name, type), &around_);
    return true;
  }

  void appendValue(uint32_t number, Bytes name, Bytes type) {
    std::string value;
    appendBody(kValueName, name, &value);
    appendBody(kValueType, type, &value);
    appendBody(number, value, &around_);
  }

  const ModelWriter& model_;
  const KnownValues& known_;
  std::size_t most_;
  std::string versions_;
  TextSet kinds_;
  std::vector<std::string> made_;
  // Of the kind that is being made:
  std::string before_;  ///< nodes of constants
  std::string around_;  ///< inputs, initializers, types of outputs
  std::size_t count_ = 0;
};

}  // namespace

std::optional<std::vector<std::string>> kindsOfChanges(const ModelWriter& model, std::size_t most) {
  std::vector<Bytes> nodes;
  for (const uint32_t number : model.graph().unsettled) {
    nodes.push_back(model.graph().nodes[number]);
  }
  return Collector(model, KnownValues(model, nodes), most)
      .collect(nodes, model.graph().typed_as_before);
}

}  // namespace passlib::onnx
