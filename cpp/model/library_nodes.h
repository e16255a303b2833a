// Nodes of ONNX graphs whose operators belong to loaded libraries, as files have them.
#ifndef PASSLIB_MODEL_LIBRARY_NODES_H_
#define PASSLIB_MODEL_LIBRARY_NODES_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "facts/file_facts.h"
#include "library/calls/interrupt.h"
#include "library/operators/custom_op.h"
#include "onnx/types/messages.h"

namespace passlib::model {

/// The domain of their nodes in files.
constexpr const char* kLibraryDomain = "passlib";

/// The operators of loaded libraries by name.
using LibraryOperators = std::map<std::string, std::shared_ptr<const CustomOp>, std::less<>>;

/// Types of the results of nodes of libraries' operators, as far as they are known.
using LibraryResults = std::unordered_map<const Node*, std::vector<onnx::StatedType>>;

/// A copy of a graph in which nodes of libraries' operators have the form that libpasslib_ort
/// reads (docs/onnxruntime.md, *The node*).
struct LibraryNodes {
  std::shared_ptr<const Graph> graph;
  LibraryResults results;
};

/// The inputs of type inference; see FileFacts.
struct TypeSources {
  std::shared_ptr<const onnx::Originals> file;
  facts::FileFacts::Known known;
  facts::Opsets opsets;
  facts::GivenTypes given;
};

/// Adds the types that passes state for inputs of the file and for new variables to those that are
/// known. Returns whether there is one for an input of the file. Throws UnsupportedError for a type
/// that ONNX does not have.
bool addStatedTypes(const Graph& graph, TypeSources* sources);

/// Whether a library has an operator of this name.
using IsKnown = std::function<bool(const std::string& name)>;

/// Whether `claimLibraryNodes` changes a graph.
bool needsClaim(const Graph& graph, const IsKnown& is_known);

/// Gives the nodes of libraries' operators that a pass left without a domain the domain `passlib`,
/// and takes it from those to which a pass gave an operator of ONNX: standard passes treat the
/// operators of other domains as no functions of their inputs.
void claimLibraryNodes(Graph* graph, const IsKnown& is_known);

/// Whether a graph has nodes of libraries' operators: those of the domain `passlib` that call no
/// function of the file, and those without a domain whose operator is not ONNX's.
bool hasLibraryNodes(const Graph& graph, const std::shared_ptr<const onnx::Originals>& file,
                     const LibraryOperators& operators);

/// Writes these nodes. Those that are in that form already, as in a file, keep it; their types are
/// inferred again if their library is loaded. Types that passes state are added to `sources`.
/// `how`: what to do on SIGINT while a library infers types. Throws GraphError if a node does not
/// fit its operator, UnsupportedError if it has no form in ONNX, OperatorError if a library refuses
/// inputs of which all is known, LoadError.
LibraryNodes writeLibraryNodes(const Graph& graph, TypeSources sources,
                               const LibraryOperators& operators, OnInterrupt how);

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_LIBRARY_NODES_H_
