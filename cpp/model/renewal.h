// Types that changes of a graph have made doubtful, inferred again.
#ifndef PASSLIB_MODEL_RENEWAL_H_
#define PASSLIB_MODEL_RENEWAL_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "model/library_nodes.h"
#include "onnx/writing/model.h"

namespace passlib::model {

/// Adds the types that passes state for inputs of the file and for new variables to those that are
/// known. Returns whether there is one for an input of the file. Throws UnsupportedError for a type
/// that ONNX does not have.
bool addStatedTypes(const Graph& graph, TypeSources* sources);

/// Types by place of the graph.
using RenewedTypes = std::map<std::string, onnx::RenewedTypes>;

/// The sources of the types of a graph as it is written.
struct Renewal {
  std::shared_ptr<const Graph> graph;
  TypeSources sources;
  const LibraryResults* results = nullptr;  ///< may be null
  /// Types of outputs of the main graph that the facts may leave open.
  std::map<std::string, onnx::StatedType> outputs;
  /// Returns the values of which another inference finds other types; null for none. Called once,
  /// if types are renewed.
  std::function<std::set<std::string>()> disputed;
};

/// Infers the doubtful types of a model that is written. Result: what to write in place of what
/// the file states; nothing if that holds.
///
/// Outputs keep their description unless facts contradict it. Of other values only what is known
/// and not disputed is stated.
RenewedTypes renewedTypes(const onnx::ModelWriter& writer, Renewal renewal);

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_RENEWAL_H_
