#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/attributes.h"
#include "moves/moves.h"
#include "onnx/parts/tensor.h"
#include "onnx/text/tensor_text.h"
#include "rules/known.h"

namespace passlib::moves {
namespace {

/// Whether the file has a variable as a Constant node.
bool isConstantNode(const Node& variable) {
  std::size_t place = 0;
  return onnx::parsePosition(attributeOf(variable, "__id__"), &place);
}

class Lifting {
 public:
  Lifting(Model* model, const Wanted& wanted) : model_(*model), wanted_(wanted) {}

  void run() {
    findInside(kMain, model_.graph());
    std::vector<std::size_t> pending;
    for (std::size_t i = 0; i < inside_.size(); ++i) pending.push_back(i);
    while (!pending.empty()) {
      const std::size_t number = pending.back();
      pending.pop_back();
      Graph* const graph = inside_[number].graph;
      for (const Node* node : model_.owner().nodes(graph)) model_.avoid(node->name);
      for (std::size_t i = findInside(number, graph); i < inside_.size(); ++i) pending.push_back(i);
    }
    for (std::size_t i = 0; i < inside_.size(); ++i) {
      Graph* const graph = inside_[i].graph;
      const std::vector<Node*> nodes = model_.owner().nodes(graph);
      for (Node* node : nodes) {
        if (isVariable(*node)) lift(i, node);
      }
    }
  }

 private:
  static constexpr std::size_t kMain = static_cast<std::size_t>(-1);

  /// A nested graph, the node that has it, and the number of the graph of that node.
  struct Inside {
    std::size_t outer;
    Node* node;
    Graph* graph;
  };

  Graph* graphAt(std::size_t number) const {
    return number == kMain ? model_.graph() : inside_[number].graph;
  }

  /// Appends the graphs that nodes of a graph have; returns the number of the first.
  std::size_t findInside(std::size_t number, Graph* graph) {
    const std::size_t first = inside_.size();
    for (Node* node : model_.owner().nodes(graph)) {
      for (Graph* nested : node->subgraphs) inside_.push_back({number, node, nested});
    }
    return first;
  }

  void lift(std::size_t number, Node* constant) {
    Graph* const graph = inside_[number].graph;
    const NodeEntry value(constant, 0);
    if (isAbsent(*constant) || model_.owner().isOutput(*graph, value)) return;
    if (!wanted_(graph, constant)) return;
    const std::optional<NestedElements> elements = model_.nestedElements(*constant);
    if (!elements) return;
    std::vector<std::size_t> way;  // from the inside
    for (std::size_t i = number; i != kMain; i = inside_[i].outer) way.push_back(i);
    NodeEntry outer = model_.addCopy(constant->name, *elements);
    const std::string name = outer.node->name;
    for (auto place = way.rbegin(); place != way.rend(); ++place) {
      const Inside& inside = inside_[*place];
      outer = model_.capture(graphAt(inside.outer), inside.node, inside.graph, outer, name);
    }
    model_.owner().replace(graph, value, outer);
    model_.owner().remove(graph, {constant});
  }

  Model& model_;
  const Wanted& wanted_;
  std::vector<Inside> inside_;
};

}  // namespace

void constantsToWeights(Model* model, bool nested) {
  for (Node* node : model->nodes()) {
    if (!isVariable(*node) || node->tensor == nullptr || !isConstantNode(*node)) continue;
    node->attrs.erase("__id__");
    model->owner().noteChange();
  }
  if (nested) liftConstants(model, [](Graph*, Node*) { return true; });
}

void weightsToConstants(Model* model, int64_t largest) {
  const std::vector<Node*> nodes = model->nodes();
  for (Node* node : nodes) {
    const NodeEntry value(node, 0);
    const MXTensor* const array = model->array(value);
    if (array == nullptr || isConstantNode(*node)) continue;
    if (array->size() > largest || model->isOutput(value)) continue;
    const int type = rules::onnxType(array->dtype);
    if (onnx::elementType(type) == nullptr) continue;  // a library made it
    std::string text;
    onnx::appendElementsText(type, array->shape, static_cast<const char*>(array->data_ptr), &text);
    const std::string name = node->name;
    const NodeEntry made = model->add(name, "Constant", {}, {{"value", text}});
    model->replace(node, made);
    model->owner().rename(model->graph(), made.node, name);
  }
}

void liftConstants(Model* model, const Wanted& wanted) { Lifting(model, wanted).run(); }

}  // namespace passlib::moves
