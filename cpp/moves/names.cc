#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/attributes.h"
#include "graph/name_source.h"
#include "graph/text_table.h"
#include "moves/moves.h"

namespace passlib::moves {
namespace {

/// A node and its graph.
using Placed = std::pair<Graph*, Node*>;

std::vector<Placed> nodesOf(const Model& model, const std::vector<Graph*>& graphs) {
  std::vector<Placed> found;
  for (Graph* graph : graphs) {
    for (Node* node : model.owner().nodes(graph)) found.emplace_back(graph, node);
  }
  return found;
}

/// Whether an operator has the name of its place, since the file has none, or one twice.
bool isNamedByReader(const Model& model, const Node& node) {
  const std::string_view id = attributeOf(node, "__id__");
  const onnx::Original* const original = model.file()->find(id);
  if (original == nullptr || !original->isNode()) return false;
  const onnx::NodeRecord& record = original->record();
  const std::string stem(record.name.empty() ? record.op : record.name);
  return node.name == stem + "_" + std::string(id) && node.name != record.name;
}

}  // namespace

void nameUniquely(Model* model) {
  const std::vector<Placed> nodes = nodesOf(*model, model->graphs());
  NameSource names;
  TextSet known;
  const auto stays = [model](const Node* node) {
    return isVariable(*node) || model->computesOutput(node);
  };
  for (const auto& [graph, node] : nodes) {
    names.use(node->name);
    if (stays(node)) known.insert(node->name);
  }
  for (const auto& [graph, node] : nodes) {
    std::string wish;
    if (model->file() != nullptr) {
      if (isVariable(*node) || !isNamedByReader(*model, *node)) continue;
      wish = "node_" + node->op;
    } else {
      if (stays(node) || (!node->name.empty() && known.insert(node->name).second)) continue;
      wish = node->name.empty() ? node->op : node->name;
    }
    const std::string name = names.fresh(wish);
    known.insert(name);
    model->owner().rename(graph, node, name);
  }
}

}  // namespace passlib::moves
