// The family of models that a graph belongs to, and properties of its nodes.
#ifndef PASSES_FACTS_FAMILY_H_
#define PASSES_FACTS_FAMILY_H_

#include <string>
#include <vector>

#include "lib_api.h"

namespace passes {

using namespace mxnet::ext;

/// Properties of nodes by the conventions of their family, see docs/dialects.md.
class Family {
 public:
  /// Reads Graph::attrs["dialect"]; graphs without it are MXNet's.
  explicit Family(const Graph& graph);

  const std::string& name() const { return name_; }

  /// Whether outputs of the model are named after their nodes.
  bool namesOutputsByNode() const { return name_ == "mxnet" || name_ == "nnvm"; }

  /// Whether equal inputs give equal outputs without side effects. False for unknown operators.
  /// `inference`: also true for operators that draw numbers or write to states only in training.
  bool isFunction(const Node& node, bool inference) const;

  /// Whether a node has side effects, judging by the node alone.
  bool hasEffects(const Node& node) const;

  /// The inputs that an operator writes to in training.
  std::vector<std::size_t> stateInputs(const Node& node) const;

  /// Version of ONNX's own operator set; 0 if unknown.
  int64_t operatorSet() const { return operator_set_; }

 private:
  std::string name_;
  int64_t operator_set_ = 0;
};

/// Whether a node stands for an omitted optional input of ONNX.
inline bool isAbsent(const Node& node) { return node.op == "null" && node.name == "__absent__"; }

}  // namespace passes

#endif  // PASSES_FACTS_FAMILY_H_
