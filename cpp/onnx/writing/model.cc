#include "onnx/writing/model.h"

#include "errors.h"
#include "onnx/text/strings.h"
#include "onnx/wire/numbers.h"
#include "onnx/wire/output.h"

namespace passlib::onnx {

void ModelWriter::requireReferences() const {
  if (graph_.lost.data() == nullptr || graph_.lost.empty()) return;
  throw UnsupportedError(
      "the training information of the model refers to value " + shown(graph_.lost) +
      ", which the passes removed or renamed; leave the node that computes it as it is, or remove "
      "the training information first");
}

Pieces ModelWriter::assemble(Content content) const {
  Pieces out;
  bool done = false;
  std::size_t import = 0;
  Field field;
  for (Fields fields(originals_->model()); fields.next(&field);) {
    if (field.number == numbers::kGraph && field.type == kBytes) {
      if (done) continue;
      done = true;
      Pieces graph = assembleGraph(graph_, content);
      appendHead(numbers::kGraph, graph.size(), out.text());
      out.append(std::move(graph));
    } else if (field.number == numbers::kOpsetImport && field.type == kBytes) {
      const auto changed = changed_imports_.find(import++);
      if (changed == changed_imports_.end()) {
        out.append(wholeField(field));
        continue;
      }
      std::string made;
      const auto keep = [](const Field& each) { return each.number != numbers::kSetVersion; };
      appendFields(field.body, keep, &made);
      appendNumber(numbers::kSetVersion, static_cast<uint64_t>(changed->second), &made);
      appendBody(numbers::kOpsetImport, made, out.text());
    } else {
      out.append(wholeField(field));
    }
  }
  for (const auto& [domain, version] : added_imports_) {
    std::string made;
    appendBody(numbers::kSetDomain, domain, &made);
    appendNumber(numbers::kSetVersion, static_cast<uint64_t>(version), &made);
    appendBody(numbers::kOpsetImport, made, out.text());
  }
  return out;
}

std::vector<std::string> nameOutputs(const Originals& originals, const Graph& graph,
                                     const Present& present) {
  Arena arena;
  FreshNames fresh(&originals, &arena);
  std::vector<bool> taken(originals.size(), false);
  const Surroundings nowhere;
  const Draft draft(graph, originals, &originals.main(), &taken, nowhere, present);
  const Names names = chooseNames(draft, &fresh, &arena);
  return std::vector<std::string>(names.outputs.begin(), names.outputs.end());
}

}  // namespace passlib::onnx
