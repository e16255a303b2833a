// One call of a pass.
#ifndef PASSLIB_PASS_H_
#define PASSLIB_PASS_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph.h"
#include "library.h"
#include "source.h"
#include "tensors.h"

namespace passlib {

using OptionList = std::vector<std::pair<std::string, std::string>>;

struct PassCall {
  Library* library;
  std::size_t index;                                      ///< of the pass in library->passes()
  std::map<std::string, mxnet::ext::JsonVal> attributes;  ///< of the graph, as the pass sees it
  OptionList options;
  ParamBlock args;
  ParamBlock aux;
  bool accept_args = false;
  bool accept_aux = false;
  bool force_json = false;  ///< never hand over the Graph itself
  bool consume = false;     ///< nobody needs the source after this
  bool ordered = false;     ///< see orderGraph
};

struct PassResult {
  std::unique_ptr<Graph> graph;
  std::vector<NewParam> params;
  std::vector<std::string> gone;  ///< variables that the graph had and has no more
};

/// Runs a pass on a graph like that of `source`. The result is checked and, where `call.ordered`,
/// put in order. Throws PassError if the pass fails and PassResultError if it gives back no sound
/// graph. Needs no GIL.
PassResult runPass(const PassCall& call, GraphSource* source);

}  // namespace passlib

#endif  // PASSLIB_PASS_H_
