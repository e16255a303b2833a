#include "onnx/acceptance/known_values.h"

#include "onnx/types/messages.h"
#include "onnx/wire/numbers.h"

namespace passlib::onnx {
namespace {

using namespace numbers;  // NOLINT: this file only

/// Arrays of fewer bytes are shown to ONNX's inference, because they may be sizes.
constexpr std::size_t kSmall = 1024;

bool isConstant(Bytes node) {
  return bodyOf(node, kOpType) == "Constant" && bodyOf(node, kDomain).empty();
}

}  // namespace

KnownValues::KnownValues(const ModelWriter& model) {
  const WrittenGraph& graph = model.graph();
  known_ = NameMap<Known>(graph.inputs.size() + graph.values.size() + graph.outputs.size() +
                          graph.initializers.size());
  collect(graph);
}

KnownValues::KnownValues(const ModelWriter& model, const std::vector<Bytes>& nodes) : some_(true) {
  for (const Bytes node : nodes) {
    Field field;
    for (Fields fields(node); fields.next(&field);) {
      const bool is_name = field.number == kNodeInput || field.number == kNodeOutput;
      if (is_name && field.type == kBytes) known_.insert(field.body, {});
    }
  }
  collect(model.graph());
}

void KnownValues::collect(const WrittenGraph& graph) {
  for (const auto* list : {&graph.inputs, &graph.values, &graph.outputs}) {
    for (const Bytes value : *list) {
      Known* known = placeOf(bodyOf(value, kValueName));
      if (known == nullptr) continue;
      known->type = bodyOf(value, kValueType);
      known->is_input = known->is_input || list == &graph.inputs;
    }
  }
  for (const WrittenInitializer& each : graph.initializers) {
    Known* known = placeOf(each.name);
    if (known == nullptr) continue;
    const Tensor tensor = readTensor(each.message);
    if (!known->is_input) known->type = describeTensor(tensor.type, tensor.dims);
    if (!each.aside && !tensor.external && each.message.size() < kSmall) {
      known->elements = each.message;
    }
  }
  for (const Bytes node : graph.nodes) {
    if (!isConstant(node)) continue;
    Known* known = placeOf(bodyOf(node, kNodeOutput));
    if (known == nullptr) continue;
    known->constant = node;
    if (!known->type.empty()) continue;
    forEachBody(node, kAttribute, [&](Bytes message) {
      Arena arena;
      const Attribute attribute = readAttribute(message, &arena);
      if (attribute.name != "value" || attribute.kind != Kind::kTensor) return;
      const Tensor tensor = readTensor(attribute.content);
      known->type = describeTensor(tensor.type, tensor.dims);
    });
  }
}

/// Returns a TypeProto. There are few of them, and many values of each.
Bytes KnownValues::describeTensor(int32_t type, const std::vector<int64_t>& dims) {
  const std::string info = valueInfo("", {type, dims});
  const auto found = types_.find(info);
  if (found != types_.end()) return bodyOf(*found, kValueType);
  return bodyOf(*types_.insert(info).first, kValueType);
}

}  // namespace passlib::onnx
