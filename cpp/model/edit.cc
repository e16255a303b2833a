#include "model/edit.h"

#include <memory>
#include <stdexcept>

#include "errors.h"
#include "graph/check.h"
#include "library/memory.h"
#include "library/pass.h"
#include "moves/model.h"

namespace passlib::model {

using mxnet::ext::MXDType;
using mxnet::ext::MXTensor;

Edit::Edit(const Model& model, const std::string& what)
    : model_(model),
      what_(what),
      before_(namesOfVariables(*model.graph->get())),
      max_depth_(mostNestedGraphs(model.graph.get())),
      editor_(model.graph->take(), what, false, {}),
      graph_(editor_.root()) {
  GraphTexts attributes = model.attributes;
  attributes["dialect"] = "\"onnx\"";
  graph_->attrs = parseAttributes(attributes);
  for (Node* node : graph_->inputs) {
    const auto found = model.arrays.find(node->name);
    if (found == model.arrays.end()) continue;
    arrays_.push_back(computed(found->second));
    const Array& array = arrays_.back();
    node->tensor =
        keep(const_cast<char*>(array.data.data()), array.dims, rules::arrayType(array.type));
  }
}

void Edit::apply(const rules::Book& book, const std::vector<std::size_t>& chosen,
                 const rules::Assumptions& assumptions, const NodeNames& kept) {
  editor_.nodes(graph_);  // completes removals
  rules::GraphKnowledge knowledge(graph_, model_.file->originals(), assumptions);
  rules::Hooks hooks;
  hooks.add_node = [this](Graph* where, const std::string& name, const std::string& op) {
    return editor_.addNode(where, op, name, {}, 0);
  };
  hooks.remove_node = [this](Graph*, Node* node) { editor_.noteRemoved(node); };
  hooks.allocate = [this](Node* node, const std::vector<int64_t>& shape, MXDType type) {
    allocate(node, shape, type);
  };
  hooks.known = [&knowledge](const NodeEntry& entry) { return knowledge.of(entry); };
  hooks.added = [&knowledge](Graph* where, Node* node) { knowledge.add(where, node); };
  hooks.kept = kept;
  const rules::Applied applied = book.apply(graph_, chosen, hooks);
  editor_.noteNames();
  editor_.noteOutputs();
  moves::Hooks owner;
  owner.owner = &editor_;
  owner.graph = graph_;
  moves::Model(owner).removeUnused(applied.left);
}

bool Edit::move(std::string_view name, const moves::Options& options,
                const rules::Assumptions& assumptions, const NodeNames& kept) {
  std::unique_ptr<rules::GraphKnowledge> knowledge;
  moves::Hooks hooks;
  hooks.owner = &editor_;
  hooks.graph = graph_;
  hooks.infer = [&]() {
    editor_.nodes(graph_);  // completes removals
    knowledge =
        std::make_unique<rules::GraphKnowledge>(graph_, model_.file->originals(), assumptions);
    knowledge->infer();
  };
  hooks.fact = [&](const NodeEntry& entry) -> const facts::Fact& {
    return knowledge->inferred(entry);
  };
  hooks.allocate = [this](Node* node, const std::vector<int64_t>& shape, MXDType type) {
    allocate(node, shape, type);
  };
  hooks.kept = kept;
  hooks.file = model_.file->originals();
  editor_.nodes(graph_);
  moves::Model model(hooks);
  return moves::run(name, &model, options);
}

Model Edit::finish() {
  Model after = model_;
  std::vector<std::pair<std::string, Array>> made;
  for (auto& [node, array] : made_) {
    if (!editor_.isRemoved(node)) made.emplace_back(node->name, std::move(array));
  }
  std::unique_ptr<Graph> result = editor_.close();
  mxnet::ext::host::takeBackParams(result.get());
  result->attrs.clear();
  OperatorKinds kinds =
      finishGraph(result.get(), false, what_ + " left a graph that is not sound", max_depth_);
  for (const std::string& name : missingNames(before_, *result)) after.arrays.erase(name);
  for (auto& [name, array] : made) after.arrays[name] = std::move(array);
  after.present = presentAfter(model_, *result);
  after.graph = std::make_shared<GraphSource>(std::move(result), std::move(kinds));
  return after;
}

MXTensor* Edit::keep(void* data, const std::vector<int64_t>& shape, MXDType type) {
  tensors_.emplace_back(data, shape, type, 0, mxnet::ext::MXContext::CPU());
  return &tensors_.back();
}

void Edit::allocate(Node* node, const std::vector<int64_t>& shape, MXDType type) {
  const auto bytes = arrayBytes(rules::bytesOf(type), shape.data(), static_cast<int>(shape.size()));
  if (!bytes) throw PassError(what_ + " needs a parameter that is too large");
  Buffer buffer(*bytes, false);
  Array array{rules::onnxType(type), shape,
              onnx::Bytes(static_cast<const char*>(buffer.data()), buffer.size()), nullptr};
  node->tensor = keep(buffer.data(), shape, type);
  array.owner = std::shared_ptr<const void>(buffer.release());
  made_.emplace_back(node, std::move(array));
}

Model edited(const Model& model, const std::string& what,
             const std::function<void(Edit*)>& change) {
  model.file->check();
  Edit edit(model, what);
  try {
    change(&edit);
  } catch (const LibraryError&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw PassError(what + " failed: " + error.what());
  }
  model.file->check();
  return edit.finish();
}

}  // namespace passlib::model
