// The nested graphs of models of ONNX.
#ifndef PASSLIB_MODEL_NESTED_GRAPHS_H_
#define PASSLIB_MODEL_NESTED_GRAPHS_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "facts/file_facts.h"
#include "onnx/original/originals.h"

namespace passlib::model {

/// The bytes of the weights and constants of a file that the nested graphs of a graph have.
std::size_t nestedBytes(const Graph& graph, const onnx::Originals& file);

/// A model with nested graphs, as it was read.
struct NestedSource {
  onnx::Bytes bytes;
  std::shared_ptr<const onnx::Originals> originals;
  std::shared_ptr<const Graph> graph;
  facts::Opsets opsets;
};

/// Gets a nested graph as a model of its own, and returns one that computes the same; nothing if
/// the graph stays.
using ChangeGraph = std::function<std::optional<std::string>(std::string model)>;

/// Changes the nested graphs of the nodes of a model's main graph, with the values that they
/// capture as inputs and weights, and returns the model; nothing if all stay. A graph also stays if
/// it has one node, if it is one of several in an attribute, if the type of a captured value is not
/// known, or if `change` throws std::runtime_error, but for std::system_error.
std::optional<std::string> withNestedGraphs(const NestedSource& source, const ChangeGraph& change);

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_NESTED_GRAPHS_H_
