// Models as native hosts hold them: a graph and its weights, with the file that they came from.
#ifndef PASSLIB_MODEL_MODEL_H_
#define PASSLIB_MODEL_MODEL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "facts/facts.h"
#include "graph/attribute_texts.h"
#include "graph/source.h"
#include "model/array.h"
#include "model/file.h"
#include "model/library_nodes.h"
#include "model/symbol_file.h"
#include "onnx/naming/draft.h"

namespace passlib::model {

/// A model. Copies share graph and weights, which never change.
struct Model {
  std::shared_ptr<const File> file;          ///< of a model of ONNX, else null
  std::shared_ptr<const SymbolFile> symbol;  ///< of a model of MXNet, else null
  std::shared_ptr<GraphSource> graph;
  GraphTexts attributes;  ///< of the graph, as passes see them
  onnx::Present present;  ///< the names of the outputs of a model of ONNX
  Arrays arrays;          ///< by name of the variable
  std::shared_ptr<const LibraryOperators> operators;  ///< that its nodes may have; or null

  bool isOnnx() const { return file != nullptr; }
  /// Throws FormatError if a file that has data of the model was changed since it was mapped.
  void check() const;
};

/// The model of a file.
Model modelOf(std::shared_ptr<const File> file);
Model modelOf(std::shared_ptr<const SymbolFile> symbol);

/// Reads the model of a file of any dialect. Throws as File::open and openSymbolFile.
Model loadModel(const std::string& path);

/// The name of the dialect of a model.
std::string dialectOf(const Model& model);

/// The versions of the operator sets of a model of ONNX, by domain: those that a pass set, else the
/// file's. Throws GraphError if the graph states none.
facts::Opsets opsetsOf(const Model& model);

/// The names of the outputs, as writing chooses them. Throws GraphError, UnsupportedError.
std::vector<std::string> outputNames(const Model& model);

/// Keeps the present names of the outputs for a graph that a pass made of a model's.
onnx::Present presentAfter(const Model& before, const Graph& after);

/// Whether a model of ONNX is its file, in its order; origins of nodes do not count.
bool isUnchanged(const Model& model);

/// Facts of the variables that have arrays.
std::unordered_map<const Node*, facts::Fact> arrayFacts(const Model& model, const Graph& graph);

/// Applies `claimLibraryNodes` to a graph that became one of a model of ONNX.
void claimNodes(const Model& model, Graph* graph);

/// Returns warnings about a model that was read, each a clause: operators and operator sets that a
/// runtime may not know. `known`: operators of libraries.
std::vector<std::string> warningsOf(const Model& model, const LibraryOperators& known);

/// How often each operator occurs, without variables: in a model of ONNX with those of nested
/// graphs, as the Python package counts, but without those that operators of libraries run.
std::map<std::string, std::size_t> countOperators(const Model& model);

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_MODEL_H_
