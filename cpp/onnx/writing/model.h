// Models as messages: what no pass changed is written as it is in the file.
#ifndef PASSLIB_ONNX_WRITING_MODEL_H_
#define PASSLIB_ONNX_WRITING_MODEL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "onnx/writing/assembly.h"

namespace passlib::onnx {

/// A model that is written. Refers to the file's memory, and to that of parameters.
class ModelWriter {
 public:
  /// Throws GraphError, UnsupportedError, and what the host throws.
  ModelWriter(std::shared_ptr<const Originals> originals, const Graph& graph,
              const Present& present, WriteHost* host)
      : originals_(std::move(originals)),
        writer_(*originals_, host, &arena_),
        graph_(writer_.writeMain(graph, present)) {}

  const WrittenGraph& graph() const { return graph_; }
  const GraphWriter& writer() const { return writer_; }
  const Originals& originals() const { return *originals_; }
  /// Throws UnsupportedError if training information refers to a value that is gone.
  void requireReferences() const;
  /// Whether the model has other operator sets than the file.
  bool changesImports() const { return !changed_imports_.empty() || !added_imports_.empty(); }

  /// Sets versions of operator sets: of those of the file, by number, and of new ones.
  void setImports(std::map<std::size_t, int64_t> changed,
                  std::vector<std::pair<std::string, int64_t>> added) {
    changed_imports_ = std::move(changed);
    added_imports_ = std::move(added);
  }

  /// Puts the model together. The result refers to this object.
  Pieces assemble(Content content) const;

 private:
  std::shared_ptr<const Originals> originals_;
  Arena arena_;
  GraphWriter writer_;
  WrittenGraph graph_;
  std::map<std::size_t, int64_t> changed_imports_;
  std::vector<std::pair<std::string, int64_t>> added_imports_;
};

/// Returns the names of the outputs of a graph, as a ModelWriter chooses them.
std::vector<std::string> nameOutputs(const Originals& originals, const Graph& graph,
                                     const Present& present);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_WRITING_MODEL_H_
