// One call of a pass.
#ifndef PASSLIB_LIBRARY_PASS_H_
#define PASSLIB_LIBRARY_PASS_H_

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "errors.h"
#include "graph/source.h"
#include "library/library.h"
#include "library/params.h"

namespace passlib {

using OptionList = std::vector<std::pair<std::string, std::string>>;

struct PassCall {
  Library* library;
  std::size_t index;                       ///< of the pass in library->passes()
  mxnet::ext::GraphAttributes attributes;  ///< of the graph that the pass sees
  OptionList options;
  const ParamBlock& args;
  const ParamBlock& aux;
  bool accept_args = false;
  bool accept_aux = false;
  Handover handover = Handover::kFlat;  ///< no faster way than this one
  bool consume = false;                 ///< the source is not used afterwards
  bool ordered = false;                 ///< see orderGraph
  /// Infers the types of the nodes when the pass first reads one, see FlatModel::types; may be
  /// empty.
  std::function<const mxnet::ext::FlatText*()> types;
};

struct PassResult {
  std::unique_ptr<Graph> graph;
  OperatorKinds kinds;
  std::vector<NewParam> params;
  std::vector<std::string> gone;  ///< names of removed variables
};

/// Returns "pass 'x' of library 'y'".
std::string describePass(const PassCall& call);

/// Runs a pass on a copy of the graph of `source`; checks the result and, if `call.ordered`, orders
/// it. Throws PassError if the pass fails and PassResultError if its result is not a sound graph.
/// Needs no GIL.
PassResult runPass(const PassCall& call, GraphSource* source);

/// Returns how deeply a pass may nest graphs in its result: as deeply as in the graph that it was
/// given, but at least 100 levels. Writing nested graphs takes memory that grows with their depth.
int mostNestedGraphs(GraphSource* before);

/// Checks a graph that a pass changed and arranges it, see arrangeGraph. Throws PassResultError,
/// with `what` before the problem; also for subgraphs nested more than `max_depth` levels deep.
/// `fine`, `nested_fine`: see checkGraph. Returns the operators.
OperatorKinds finishGraph(Graph* graph, bool ordered, const std::string& what,
                          int max_depth = std::numeric_limits<int>::max(),
                          const std::vector<bool>& fine = {}, bool nested_fine = false);

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_PASS_H_
