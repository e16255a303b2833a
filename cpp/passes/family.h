// Which family of models a graph is of, and what is true of the nodes of each.
#ifndef PASSES_FAMILY_H_
#define PASSES_FAMILY_H_

#include <string>
#include <vector>

#include "lib_api.h"

namespace passes {

using namespace mxnet::ext;

/// What a family's conventions say of a node, see docs/dialects.md.
class Family {
 public:
  /// Reads Graph::attrs["dialect"]; graphs without it are MXNet's.
  explicit Family(const Graph& graph);

  const std::string& name() const { return name_; }

  /// Whether the names of the model's outputs are those of their nodes.
  bool namesOutputsByNode() const { return name_ == "mxnet" || name_ == "nnvm"; }

  /// Whether a variable is a weight or a constant, that nobody but the graph itself knows. Inputs
  /// of the model, and weights that stand for the default of an input, are not.
  bool isParameter(const Node& node) const;

  /// Whether equal inputs give equal outputs, and nothing else happens. False for operators that
  /// are not known. With `inference`, operators count that draw numbers or write to states in
  /// training only.
  bool isFunction(const Node& node, bool inference) const;

  /// Whether a node does something that its outputs do not show, as far as the node itself tells.
  bool hasEffects(const Node& node) const;

  /// The inputs that an operator writes to when the model is trained.
  std::vector<std::size_t> stateInputs(const Node& node) const;

  /// Version of ONNX's own operator set; 0 if it is not known.
  int64_t operatorSet() const { return operator_set_; }

 private:
  std::string name_;
  int64_t operator_set_ = 0;
};

/// Text of an attribute, or null.
const std::string* findAttribute(const Node& node, const std::string& key);

/// Whether an attribute says yes: True, true or 1. `preset` where the node does not have it.
bool boolAttribute(const Node& node, const std::string& key, bool preset);

/// Whether a key is of passlib's own, such as __id__.
bool isHidden(const std::string& key);

/// Whether a use is none: what stands in place of an optional input of ONNX.
inline bool isAbsent(const Node& node) { return node.op == "null" && node.name == "__absent__"; }

}  // namespace passes

#endif  // PASSES_FAMILY_H_
