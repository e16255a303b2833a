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
#include "onnx/naming/draft.h"

namespace passlib::model {

/// An ONNX model. Copies share graph and weights, which never change.
struct Model {
  std::shared_ptr<const File> file;
  std::shared_ptr<GraphSource> graph;
  GraphTexts attributes;  ///< of the graph, as passes see them
  onnx::Present present;  ///< the names of the outputs
  Arrays arrays;          ///< by name of the variable
};

/// The model of a file.
Model modelOf(std::shared_ptr<const File> file);

/// The versions of the operator sets of a model, by domain: those that a pass set, else the file's.
/// Throws GraphError if the graph states none.
facts::Opsets opsetsOf(const Model& model);

/// The names of the outputs, as writing chooses them. Throws GraphError.
std::vector<std::string> outputNames(const Model& model);

/// Keeps the present names of the outputs for a graph that a pass made of a model's.
onnx::Present presentAfter(const Model& before, const Graph& after);

/// Whether a model is its file, in its order; origins of nodes do not count.
bool isUnchanged(const Model& model);

/// Facts of the variables that have arrays.
std::unordered_map<const Node*, facts::Fact> arrayFacts(const Model& model, const Graph& graph);

/// How often each operator occurs in a graph and those nested in it, without variables.
std::map<std::string, std::size_t> countOperators(const Graph& graph);

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_MODEL_H_
