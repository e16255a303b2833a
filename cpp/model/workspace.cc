#include "model/workspace.h"

#include <deque>
#include <stdexcept>
#include <utility>
#include <vector>

#include "errors.h"
#include "facts/node_view.h"
#include "graph/check.h"
#include "graph/variables.h"
#include "library/memory.h"
#include "library/pass.h"
#include "library/weights/written.h"

namespace passlib::model {

using mxnet::ext::MXDType;

namespace {

/// A new weight as models have it: of elements smaller than a byte, with two in a byte.
Array arrayOf(Edit::NewWeight weight) {
  const Edit::Tensor& tensor = *weight.tensor;
  const std::size_t bytes = static_cast<std::size_t>(tensor.size()) * rules::bytesOf(tensor.dtype);
  const onnx::Bytes data(static_cast<const char*>(tensor.data_ptr), bytes);
  const std::string type = weight.smallType();
  if (type.empty()) {
    return {rules::onnxType(tensor.dtype), tensor.shape, data, std::move(weight.owner)};
  }
  const WrittenPacked packed(data);
  Buffer buffer(packed.size(), false);
  packed.compute(0, packed.size(), static_cast<char*>(buffer.data()));
  const onnx::Bytes halves(static_cast<const char*>(buffer.data()), buffer.size());
  return {facts::typeNamed(type), tensor.shape, halves,
          std::shared_ptr<const void>(buffer.release())};
}

}  // namespace

/// An edited model.
struct Workspace::Open {
  Open(const Model& model, const std::string& what)
      : before(model),
        editing(what),
        max_depth(mostNestedGraphs(model.graph.get())),
        editor(std::make_shared<EditedGraph>(model.graph->take(), what, false, nullptr)),
        names(namesOfVariables(*editor->root())) {
    GraphTexts attributes = model.attributes;
    attributes["dialect"] = "\"onnx\"";
    edit = std::make_unique<Edit>(
        editor, attributes, model.file->originals(),
        [this](const Edit::Shape& shape, MXDType type) -> Edit::Memory {
          const auto bytes =
              arrayBytes(rules::bytesOf(type), shape.data(), static_cast<int>(shape.size()));
          if (!bytes) throw PassError(editing + " needs a parameter that is too large");
          Buffer buffer(*bytes, false);
          void* const data = buffer.data();
          return {data, std::shared_ptr<void>(buffer.release())};
        },
        [this](Edit::NewWeight weight) {
          handed_over.emplace_back(weight.node, arrayOf(std::move(weight)));
        });
    edit->lend([this](const std::string& name) -> std::optional<Edit::Tensor> {
      const auto found = before.arrays.find(name);
      if (found == before.arrays.end() || isSmall(found->second)) return std::nullopt;
      const Array* read = &found->second;
      if (read->scaled != nullptr) {
        computed_arrays.push_back(computed(*read));
        read = &computed_arrays.back();
      }
      return Edit::Tensor(const_cast<char*>(read->data.data()), read->dims,
                          rules::arrayType(read->type), 0, mxnet::ext::MXContext::CPU());
    });
  }

  Model finish() {
    Model after = before;
    std::vector<std::pair<std::string, Array>> made;
    for (Edit::NewWeight& each : edit->takeMade()) {
      const std::string name = each.node->name;
      made.emplace_back(name, arrayOf(std::move(each)));
    }
    for (auto& [node, array] : handed_over) {
      if (!editor->isRemoved(node)) made.emplace_back(node->name, std::move(array));
    }
    edit.reset();
    std::unique_ptr<Graph> result = editor->close();
    claimNodes(before, result.get());
    OperatorKinds kinds =
        finishGraph(result.get(), false, editing + " left a graph that is not sound", max_depth);
    for (const std::string& name : missingNames(names, *result)) after.arrays.erase(name);
    for (auto& [name, array] : made) after.arrays[name] = std::move(array);
    after.present = presentAfter(before, *result);
    after.graph = std::make_shared<GraphSource>(std::move(result), std::move(kinds));
    return after;
  }

  Model before;
  std::string editing;  ///< who changes it, for messages
  int max_depth;
  std::shared_ptr<EditedGraph> editor;
  NameList names;
  std::deque<Array> computed_arrays;
  std::vector<std::pair<const Node*, Array>> handed_over;
  std::unique_ptr<Edit> edit;
};

Workspace::Workspace() = default;
Workspace::~Workspace() = default;

std::optional<Model> Workspace::edited(const Model& model, const std::string& what,
                                       const std::function<void(Edit*)>& change) {
  model.file->check();
  if (open_ == nullptr || open_->before.graph != model.graph || open_->before.file != model.file) {
    open_.reset();
    open_ = std::make_unique<Open>(model, what);
  }
  std::unique_ptr<Open> open = std::move(open_);
  open->editing = what;
  open->editor->setEditor(what);
  const std::size_t changes = open->editor->changes();
  try {
    change(open->edit.get());
  } catch (const LibraryError&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw PassError(what + " failed: " + error.what());
  }
  model.file->check();
  if (open->editor->changes() == changes) {
    open_ = std::move(open);
    return std::nullopt;
  }
  return open->finish();
}

}  // namespace passlib::model
