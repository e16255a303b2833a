#include "rules/knowledge.h"

#include <string>
#include <utility>

#include "facts/node_view.h"
#include "graph/attributes.h"
#include "rules/engine.h"

namespace passlib::rules {
namespace {

/// Whether a node is a constant of the graph, whose array `tensor` is.
bool isConstant(const Node& node) {
  return node.tensor != nullptr && node.op == "null" && node.attrs.count("__default__") == 0 &&
         attributeOf(node, "__id__").substr(0, 6) != "input.";
}

/// The type that a pass states for a variable, over that of the file.
facts::Fact statedFact(const Node& node, const facts::Fact& of_file) {
  const NodeEntry entry(const_cast<Node*>(&node), 0);
  facts::Fact fact;
  fact.type = static_cast<facts::Type>(onnxType(mxnet::ext::typeOf(entry)));
  const auto opaque = node.attrs.find("__opaque__");  // a type without a number of MXNet's
  if (opaque != node.attrs.end()) fact.type = facts::typeNamed(opaque->second);
  if (fact.type == facts::kUnknownType) fact.type = of_file.type;
  fact.shape = facts::statedShape(node, of_file.shape);
  if (node.attrs.count("__shape__") == 0 && !fact.shape) fact.shape = of_file.shape;
  return fact;
}

}  // namespace

GraphKnowledge::GraphKnowledge(Graph* graph, std::shared_ptr<const onnx::Originals> file,
                               const Assumptions& assumptions)
    : root_(graph) {
  facts::Settings settings;
  if (file != nullptr) {
    source_ = std::make_unique<facts::OnnxSource>(std::move(file));
    settings = source_->settings({}, false);
    // Files whose inputs were edited often state shapes that no longer hold.
    settings.stated = [this](const Node& node, std::size_t output) {
      return isOwnDomain(node) ? nullptr : source_->stated(node, output);
    };
  }
  settings.large_sizes = assumptions.large_sizes;
  settings.empty_errors = assumptions.empty_errors;
  for (const auto& [domain, version] : operatorSetsOf(*root_)) settings.opsets[domain] = version;
  settings.describe = [this](const Node& node) { return describe(node); };
  facts_ = std::make_unique<facts::Facts>(root_, std::move(settings));
}

void GraphKnowledge::infer() {
  if (!inferred_) facts_->infer();
  inferred_ = true;
}

const facts::Fact& GraphKnowledge::ofConstant(const mxnet::ext::MXTensor& tensor) {
  const auto [place, is_new] = constants_.try_emplace(&tensor);
  if (is_new) {
    place->second = facts::constantFact(static_cast<facts::Type>(onnxType(tensor.dtype)),
                                        facts::Shape(tensor.shape.begin(), tensor.shape.end()),
                                        static_cast<const char*>(tensor.data_ptr));
  }
  return place->second;
}

Known GraphKnowledge::of(const NodeEntry& entry) {
  if (isConstant(*entry.node)) return {ofConstant(*entry.node->tensor), entry.node->tensor};
  infer();
  return {facts_->of(entry)};
}

void GraphKnowledge::add(const Graph* graph, const Node* node) {
  if (inferred_ && graph == root_) facts_->update({node});
}

facts::Fact GraphKnowledge::describe(const Node& node) {
  if (isConstant(node)) return ofConstant(*node.tensor);
  const bool stated = node.attrs.count("__shape__") != 0 || node.attrs.count("__dtype__") != 0;
  const facts::Fact of_file = source_ == nullptr ? facts::Fact() : source_->describe(node);
  return source_ == nullptr || stated ? statedFact(node, of_file) : of_file;
}

}  // namespace passlib::rules
