#include "model/parts.h"

#include <algorithm>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "errors.h"
#include "header.h"
#include "model/nested_graphs.h"
#include "model/writing.h"

namespace passlib::model {

bool hasNested(const Model& model) {
  if (!model.isOnnx()) return false;
  const std::shared_ptr<const Graph> graph = model.graph->get();
  return std::any_of(graph->nodes.begin(), graph->nodes.end(),
                     [](const Node* node) { return !node->subgraphs.empty(); });
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
