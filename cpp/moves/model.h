// A graph of ONNX while a pass of this folder changes it.
#ifndef PASSLIB_MOVES_MODEL_H_
#define PASSLIB_MOVES_MODEL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "facts/fact.h"
#include "graph/edited.h"
#include "graph/name_source.h"
#include "onnx/original/originals.h"

namespace passlib::moves {

using Integers = std::vector<int64_t>;
using mxnet::ext::MXDType;
using mxnet::ext::MXTensor;

/// The functions of a graph's owner that a pass calls.
struct Hooks {
  EditedGraph* owner = nullptr;
  Graph* graph = nullptr;
  /// Infers the graph as it is now.
  std::function<void()> infer;
  /// The fact of a value when the graph was inferred last.
  std::function<const facts::Fact&(const NodeEntry&)> fact;
  /// Sets the tensor of a new variable to memory for a parameter.
  std::function<void(Node*, const std::vector<int64_t>&, MXDType)> allocate;
  /// Sets the tensor of a new variable to read-only elements.
  std::function<void(Node*, const std::vector<int64_t>&, MXDType, const char*,
                     const std::shared_ptr<const void>& owner)>
      lend;
  /// Takes a complete weight, whose tensor nothing reads afterwards.
  std::function<void(Node*)> hand_over;
  /// Names of operators that must stay; may be null.
  const std::unordered_set<std::string>* kept = nullptr;
  std::shared_ptr<const onnx::Originals> file{};  ///< that which the graph came from, or null
};

/// The elements of a constant of a nested graph.
struct NestedElements {
  int type;
  std::vector<int64_t> dims;
  std::vector<char> copied;
  const char* data;                     ///< of `copied` or of the files
  std::shared_ptr<const void> owner{};  ///< of data in another file; else null
};

/// Whether a node is this operator of ONNX's own.
bool isOperator(const Node& node, std::string_view op);
/// Whether an operator may be merged with others: it has an input, and nothing says when it runs.
bool isFree(const Node& node);
/// Whether a node is a free operator of this kind.
bool isFreeOperator(const Node& node, std::string_view op);
bool isOneOf(const Node& node, const std::unordered_set<std::string_view>& ops);
inline bool isVariable(const Node& node) { return node.op == "null"; }
/// Whether a node broadcasts from a stated axis, as before opset 7.
bool isOldBroadcast(const Node& node);
/// An attribute that is a list of integers; nothing if it is absent or something else.
std::optional<Integers> integersOf(const Node& node, std::string_view key);
/// An attribute that is an integer, or `preset` if it is absent; nothing if it is something else.
std::optional<int64_t> integerOf(const Node& node, std::string_view key, int64_t preset);
/// An input of a node; null if it is omitted.
const NodeEntry* given(const Node& node, std::size_t number);
/// Whether a node stands for omitted inputs.
bool isAbsent(const Node& node);
/// Whether a node is a variable with a known value that callers cannot set.
bool isConstant(const Node& node);
/// The input of a node that a variable of its nested graph stands for; null for other variables.
const NodeEntry* outerValue(const Node& variable, const Node& node);
/// The permutation of a Transpose of a value of this rank; nothing if it states another one.
std::optional<Integers> permutationOf(const Node& node, std::size_t rank);
bool isSorted(const Integers& numbers);
/// As the text of an attribute.
std::string textOf(const Integers& numbers);
/// As Python shows a tuple.
std::string tupleOf(const Integers& numbers);

/// Answers questions about a graph, and changes it. Values that a pass adds have the facts of those
/// that they equal.
class Model {
 public:
  explicit Model(const Hooks& hooks);

  int64_t opset() const { return opset_; }
  EditedGraph& owner() const { return *hooks_.owner; }
  Graph* graph() const { return hooks_.graph; }
  bool isGone(const Node* node) const { return owner().isRemoved(node); }
  bool isKept(const Node& node) const {
    return hooks_.kept != nullptr && hooks_.kept->count(node.name) != 0;
  }
  /// The file that the graph came from, or null.
  const onnx::Originals* file() const { return hooks_.file.get(); }

  /// All nodes, in the order in which they are stored.
  const std::vector<Node*>& nodes() const { return owner().nodes(graph()); }
  /// The graph, and all graphs nested in it.
  std::vector<Graph*> graphs() const;
  /// All nodes, or the operators of these kinds, each after its inputs.
  std::vector<Node*> sorted() const;
  std::vector<Node*> sorted(const std::unordered_set<std::string_view>& ops) const;
  bool isOutput(const NodeEntry& value) const { return owner().isOutput(*hooks_.graph, value); }
  /// Whether an output of the graph is a result of a node.
  bool computesOutput(const Node* node) const { return owner().isHead(*graph(), node); }
  /// The only use of a value; nothing if there are several, or none.
  std::optional<NodeEntry> onlyUse(const NodeEntry& value) const;
  /// The operators that use a node, each once.
  std::vector<Node*> users(Node* node) const;
  /// Whether the model would have an output that is an input, or another output.
  bool needsIdentity(const NodeEntry& result, const NodeEntry& by) const;

  /// The array of a constant; null for other values.
  const MXTensor* array(const NodeEntry& value) const;
  /// Whether a value is a constant of one element.
  bool isOneNumber(const NodeEntry& value);
  /// The dimensions of a value; nothing if the rank is unknown.
  std::optional<facts::Shape> shape(const NodeEntry& value);
  /// The element type of a tensor, by ONNX's number; 0 if it is unknown.
  int type(const NodeEntry& value);
  /// Notes the element type that a value has after a change.
  void retype(const NodeEntry& value, int type) { types_[{value.node, value.entry}] = type; }
  /// The elements of a small tensor of integers; nothing unless all are known.
  std::optional<std::vector<facts::Dim>> content(const NodeEntry& value);
  /// The same where all are numbers.
  std::optional<Integers> whole(const NodeEntry& value);
  /// The axes of a node from its attribute or its second input; nothing if they are computed or
  /// omitted.
  std::optional<Integers> axes(const Node& node);
  /// The fact that the file states of a parameter or a constant of a nested graph; an empty one for
  /// other nodes.
  facts::Fact nestedFact(const Node& node) const;
  /// The elements of a constant of a nested graph, as the file has them; nothing if they are of a
  /// type without arrays.
  std::optional<NestedElements> nestedElements(const Node& constant) const;
  /// The elements of a small constant of integers in a nested graph.
  std::optional<Integers> nestedNumbers(const Node& node) const;
  /// Whether ONNX Runtime has a kernel of an operator for the type of a value.
  bool runs(std::string_view op, const NodeEntry& value);

  using Attributes = std::vector<std::pair<std::string, std::string>>;
  /// Adds an operator under a free name like `wish`.
  NodeEntry add(const std::string& wish, const std::string& op,
                const std::vector<NodeEntry>& inputs, const Attributes& attributes = {},
                int num_outputs = 1);
  /// Notes that a new value equals one of before.
  void noteSame(const NodeEntry& made, const NodeEntry& value) {
    same_.emplace(std::make_pair(made.node, made.entry), known(value));
  }
  /// Adds an operator on the way to a value, under a name like that of its node.
  NodeEntry addBefore(const NodeEntry& value, const std::string& op,
                      const std::vector<NodeEntry>& inputs, const Attributes& attributes = {});
  /// The same for one whose result equals the value.
  NodeEntry addLike(const NodeEntry& value, const std::string& op,
                    const std::vector<NodeEntry>& inputs, const Attributes& attributes = {});
  /// Adds a weight under a free name like `wish`, whose elements the caller sets.
  NodeEntry addConstant(const std::string& wish, const std::vector<int64_t>& shape, MXDType type);
  NodeEntry addConstant(const std::string& wish, const Integers& numbers);
  /// The same of elements of 4 bits: "int4" or "uint4". Until handOver, each is in the lower half
  /// of a byte of the tensor, which has a type of 8 bits.
  NodeEntry addSmallConstant(const std::string& wish, const std::vector<int64_t>& shape,
                             const std::string& type);
  /// Hands a complete weight over to the host, which may move it out of memory. Its tensor is gone.
  void handOver(Node* weight);
  NodeEntry addCopy(const std::string& wish, const NestedElements& elements);
  /// Gives no new node of the main graph this name.
  void avoid(const std::string& name) { names_.use(name); }
  void connect(const NodeEntry& value, Node* node, int input) {
    owner().connect(graph(), value, node, input);
  }
  /// Makes memory of zeros the elements of a variable, a new one or another constant.
  void allocate(Node* variable, const std::vector<int64_t>& shape, MXDType type) {
    owner().noteChange();
    hooks_.allocate(variable, shape, type);
  }
  /// Adds an input to a node of the graph `around`, and returns the variable of a nested graph that
  /// represents it.
  NodeEntry capture(Graph* around, Node* node, Graph* nested, const NodeEntry& outer,
                    const std::string& name) const;
  /// The value that represents an omitted input.
  NodeEntry absent();
  /// Notes nodes that came from a nested graph, and sets the tensors of constants among them.
  void noteMoved(const std::vector<Node*>& nodes);
  /// Infers the graph anew at the next question.
  void forgetFacts();
  /// Notes that a new operator stands for another one.
  static void noteOrigin(Node* made, const Node& node);
  /// Replaces the first output of a node, and removes the node with those that only it needed.
  void replace(Node* node, const NodeEntry& by);
  /// The same for its first outputs.
  void replace(Node* node, const std::vector<NodeEntry>& by);
  /// Removes unused nodes among these, and nodes that only they needed; keeps inputs of the model.
  void removeUnused(std::vector<Node*> pending);

  /// The names of the constants of before the pass that it removed.
  const std::vector<std::string>& goneConstants() const { return gone_constants_; }

  /// Says something to the user.
  void print(const std::string& line) { printed_ += line + '\n'; }
  const std::string& printed() const { return printed_; }

 private:
  /// The value of before that a value equals, or itself.
  const NodeEntry& known(const NodeEntry& value) const {
    const auto same = same_.find({value.node, value.entry});
    return same == same_.end() ? value : same->second;
  }
  const facts::Fact& fact(const NodeEntry& value);
  std::string fresh(const std::string& wish);
  void setElements(Node* variable, const NestedElements& elements);

  const Hooks& hooks_;
  int64_t opset_ = 1;
  bool inferred_ = false;
  /// By a new value, the one of before that it equals.
  std::map<std::pair<const Node*, int>, NodeEntry> same_;
  std::map<std::pair<const Node*, int>, int> types_;  ///< those that changed
  bool named_ = false;
  NameSource names_;  ///< those of removed nodes too
  std::vector<std::string> gone_constants_;
  std::string printed_;
};

}  // namespace passlib::moves

#endif  // PASSLIB_MOVES_MODEL_H_
