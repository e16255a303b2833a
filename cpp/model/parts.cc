#include "model/parts.h"

#include <algorithm>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "errors.h"
#include "graph/attributes.h"
#include "header.h"
#include "model/nested_graphs.h"
#include "model/writing.h"
#include "onnx/parts/bodies.h"
#include "onnx/parts/tensor.h"

namespace passlib::model {

namespace {

using namespace onnx::numbers;  // NOLINT: this file only
using onnx::bodiesOf;
using onnx::Bytes;

/// The bytes of the elements of a TensorProto.
std::size_t bytesOfTensor(Bytes message) {
  const onnx::Tensor tensor = onnx::readTensor(message);
  const onnx::ElementType* const type = onnx::elementType(tensor.type);
  if (type == nullptr) return 0;
  return type->size *
         onnx::countElements(tensor.dims, [&tensor] { return std::string(tensor.name); });
}

}  // namespace

bool hasNested(const Model& model) {
  if (!model.isOnnx()) return false;
  const std::shared_ptr<const Graph> graph = model.graph->get();
  return std::any_of(graph->nodes.begin(), graph->nodes.end(),
                     [](const Node* node) { return !node->subgraphs.empty(); });
}

std::size_t nestedBytes(const Model& model) {
  if (!hasNested(model)) return 0;
  const std::shared_ptr<const onnx::Originals> originals = model.file->originals();
  const std::shared_ptr<const Graph> main = model.graph->get();
  std::size_t sum = 0;
  // Only read here; the walk takes pointers that could be written to.
  mxnet::ext::host::forEachNode(
      const_cast<Graph*>(main.get()), [](Graph*) {},
      [&](Graph* graph, const Node* node) {
        if (graph == main.get() || node->op != "null") return;
        const std::string_view id = attributeOf(*node, onnx::keys::kId);
        const onnx::Original* const original = id.empty() ? nullptr : originals->find(id);
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

std::optional<Model> withNested(const Model& model, const ChangePart& change) {
  const std::shared_ptr<const File> file = File::of(contentOf(model), *model.file);
  const NestedSource source{file->bytes(), file->originals(), file->graph()->get(), file->opsets()};
  const auto changed = [&](std::string graph) -> std::optional<std::string> {
    const std::optional<Model> made = change(modelOf(File::of(std::move(graph), *file)));
    return made ? std::optional(contentOf(*made)) : std::nullopt;
  };
  std::optional<std::string> made = withNestedGraphs(source, changed);
  if (!made) return std::nullopt;
  return modelOf(File::of(*std::move(made), *file));
}

std::optional<Model> withBodies(const Model& model, const ChangePart& change,
                                const KeptBodies& kept) {
  const std::shared_ptr<const Graph> graph = model.graph->get();
  facts::FileFacts known(model.file->originals(), graph, arrayFacts(model, *graph));
  known.infer(opsetsOf(model), {}, false, true, false);
  const auto changed = [&](std::string body, const std::string& name) {
    try {
      const std::optional<Model> made = change(modelOf(File::of(std::move(body), *model.file)));
      return made ? std::optional(contentOf(*made)) : std::nullopt;
    } catch (const std::system_error&) {
      throw;
    } catch (const PassError& error) {
      throw PassError("local function '" + name + "': " + error.what());
    } catch (const std::runtime_error& error) {
      if (!kept.passes_errors) throw;
      throw PassError("local function '" + name + "': " + error.what());
    }
  };
  std::optional<std::string> made = withFunctions(model.file->bytes(), known, changed, kept);
  if (!made) return std::nullopt;
  Model after = model;
  after.file = File::of(*std::move(made), *model.file);
  return after;
}

}  // namespace passlib::model
