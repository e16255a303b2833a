// One graph of a model while it is written, next to the graph of the file that it stands for.
#ifndef PASSLIB_ONNX_NAMING_DRAFT_H_
#define PASSLIB_ONNX_NAMING_DRAFT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "onnx/naming/fresh_names.h"
#include "onnx/original/originals.h"

namespace passlib::onnx {

/// A value: the position of its node, and the number of the output.
struct Value {
  uint32_t node = 0;
  uint32_t output = 0;
  bool operator==(const Value& other) const { return node == other.node && output == other.output; }
};

/// The outputs that those of a graph are compared with.
struct Present {
  struct Output {
    std::string name;
    std::string key;  ///< identifier of the node; empty for a new one
    std::string node;
    uint32_t output = 0;
  };
  bool by_place = true;  ///< outputs of the same number keep their names whatever computes them
  bool of_file = true;   ///< they are those of the file, not `outputs`
  std::vector<Output> outputs;
};

/// The names that a nested graph takes over from its node.
struct Surroundings {
  std::vector<Bytes> inputs;        ///< names of the node's inputs, captured ones included
  std::vector<Bytes> origins;       ///< their names in the file; null for those not settled
  const NameSet* hidden = nullptr;  ///< names that the graph must not define

  bool hides(Bytes name) const { return hidden != nullptr && hidden->find(name) != nullptr; }
};

/// A graph by positions of its nodes. Refers to everything that it is made from.
class Draft {
 public:
  /// `original` is null for a new nested graph. `taken`: the originals that other nodes already
  /// stand for; gets those of this graph, of several nodes with one identifier the first. Throws
  /// GraphError.
  Draft(const Graph& graph, const Originals& originals, const OriginalGraph* original,
        std::vector<bool>* taken, const Surroundings& around, const Present& present);

  std::size_t size() const { return graph.nodes.size(); }
  const Node& node(std::size_t position) const { return *graph.nodes[position]; }
  // Nodes lie all over the memory: what several walks ask of each is noted in one.
  bool isVariable(std::size_t position) const { return is(position, kVariable); }
  /// Whether a node is the variable that stands for omitted inputs.
  bool isAbsent(std::size_t position) const { return is(position, kAbsentInput); }
  /// Whether it stands for a value from outside of a nested graph.
  bool isOuter(std::size_t position) const { return is(position, kOuterValue); }
  /// Whether it has the name of the original that it stands for.
  bool keepsName(std::size_t position) const { return is(position, kOwnName); }
  /// Whether it stands for an operator of the file and has its operator.
  bool keepsOperator(std::size_t position) const { return is(position, kOwnOperator); }
  /// Whether any node stands for one of another graph of the file.
  bool isMixed() const { return mixed_; }
  /// Returns the name of a variable, in the memory of the file if it has it there.
  Bytes nameOf(std::size_t position) const {
    return keepsName(position) ? claims[position]->nameInFile() : Bytes(node(position).name);
  }
  /// Whether a variable stands for a constant that more than inference refers to by its name.
  bool isReferred(std::size_t position) const {
    return claims[position] != nullptr && claims[position]->referred;
  }
  /// The inputs of a node.
  const Value* begin(std::size_t position) const { return uses.data() + firsts[position]; }
  const Value* end(std::size_t position) const { return uses.data() + firsts[position + 1]; }
  /// The original that a node stands for; null for a new one.
  const Original* claim(std::size_t position) const { return claims[position]; }
  /// The same, if it is an operator.
  const Original* original(std::size_t position) const {
    const Original* found = claims[position];
    return found != nullptr && found->what == Original::kOperator ? found : nullptr;
  }
  /// Returns the nested graph of the file that a new nested graph is a copy of, or null.
  const OriginalGraph* copied() const;

  /// Chooses the names of operators: as in the file, new ones unique. ONNX Runtime identifies
  /// operators by name.
  std::vector<Bytes> titles(Arena* arena) const;

  /// Orders the nodes: each after its inputs and control dependencies, else as in the file. New
  /// nodes come directly after the last node that they need. The present order is kept if it meets
  /// this already: libraries built with MXNet's own lib_api return nodes in an order of their own,
  /// therefore that of the file counts.
  std::vector<uint32_t> order() const;

  const Graph& graph;
  const Originals& originals;
  const OriginalGraph& file;  ///< the original, or an empty graph
  const bool is_main;
  const Surroundings& around;
  const Present& present;
  std::vector<uint32_t> firsts;
  std::vector<Value> uses;
  std::vector<Value> heads;
  std::vector<const Original*> claims;  ///< by position
  std::vector<const Original*> named;   ///< what each node's identifier stands for, claimed or not

 private:
  enum Flag : unsigned char {
    kVariable = 1,
    kAbsentInput = 2,
    kOuterValue = 4,
    kOwnName = 8,
    kOwnOperator = 16,
  };

  bool is(std::size_t position, Flag flag) const { return (flags_[position] & flag) != 0; }
  void prefetch(std::size_t position) const;
  unsigned char flagsOf(const Node& node) const;
  /// Finds what a node stands for.
  void claim(std::size_t position, std::vector<bool>* taken);
  std::vector<uint32_t> controls(std::size_t position) const;

  std::vector<unsigned char> flags_;  ///< by position
  bool controlled_ = false;           ///< any node has control dependencies
  bool mixed_ = false;
  NodeTable table_;
  bool is_new_;
};

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_NAMING_DRAFT_H_
