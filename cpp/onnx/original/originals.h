// A file as it was read: the messages of its graphs, and the nodes that passes saw for them.
#ifndef PASSLIB_ONNX_ORIGINAL_ORIGINALS_H_
#define PASSLIB_ONNX_ORIGINAL_ORIGINALS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/attributes.h"
#include "graph/graph.h"
#include "graph/name_map.h"
#include "onnx/reading/level.h"
#include "onnx/reading/model.h"
#include "onnx/wire/fields.h"

namespace passlib::onnx {

/// A graph of the file: its message, what was read from it, and its items, each a message.
struct OriginalGraph {
  OriginalGraph(const GraphPlace& read, const Level& parts)
      : place(read.place), message(read.message), level(parts) {}

  const std::string& place;  ///< such as `12.body`; empty for the main graph
  Bytes message;
  const Level& level;
  std::vector<Bytes> nodes;
  std::vector<Bytes> inputs;
  std::vector<Bytes> outputs;
  std::vector<Bytes> initializers;
  std::vector<Bytes> sparse;
  std::vector<Bytes> values;
  std::vector<Bytes> annotations;
  NameMap<uint32_t> input_numbers;  ///< by name; empty unless inputs have defaults
};

/// The origin in the file of a node that passes got.
struct Original {
  enum What : uint8_t { kOperator, kInput, kInitializer, kSparse, kConstant };
  const OriginalGraph* graph;
  const Node* node;  ///< as passes saw it
  uint32_t number;   ///< among the items of its kind in its graph
  uint32_t index;    ///< among all originals
  What what;
  bool referred = false;  ///< a constant that more than inference refers to

  bool isTensor() const { return what >= kInitializer; }
  bool isNode() const { return what == kOperator || what == kConstant; }
  /// The NodeProto of an operator or a constant.
  const NodeRecord& record() const { return graph->level.nodes[number]; }
  Bytes name(const Range& range, uint32_t place) const {
    return graph->level.names[range.first + place];
  }
  /// The message that it was read from.
  Bytes message() const;
  /// The name of a variable, where the file has it.
  Bytes nameInFile() const;
};

/// The messages of a file by the identifiers of nodes.
class Originals {
 public:
  /// `graph` was read from `file`, with all else that `read` has.
  Originals(Bytes file, const Model& read, std::shared_ptr<const Graph> graph);

  /// The outermost message.
  Bytes model() const { return model_; }
  int64_t irVersion() const { return ir_version_; }
  const OriginalGraph& main() const { return graphs_.front(); }
  /// Returns a graph by its number, as in AttributeRecord::levels.
  const OriginalGraph& graphAt(std::size_t number) const { return graphs_[number]; }
  /// Returns a nested graph by its place; null if there is none.
  const OriginalGraph* findGraph(Bytes place) const;
  /// Returns what an identifier stands for; null if it is not of the file.
  const Original* find(Bytes id) const;
  /// The data in another file of a constant of a nested graph; null if no host has mapped it.
  const Elsewhere* elsewhere(Bytes message) const;
  std::size_t size() const { return all_.size(); }
  /// The values that the file names outside of inference.
  const References& references() const { return levels_->references; }
  /// Whether training information, or a parameter of a quantization annotation, refers to the
  /// result of an operator.
  bool refersToResults() const;
  /// Returns an operator by the name that passes see; null if there is none. The first call
  /// collects them, next to which there must be no other.
  const Original* operatorNamed(Bytes name) const;
  /// Returns the constants of the main graph that more than inference refers to.
  std::vector<const Original*> referred() const;
  /// Asks the processor for what follows an original, which is mostly what is wanted next.
  void prefetchAfter(const Original& original) const;
  /// The names of all values, nested graphs included. Collected by the first call, next to which
  /// there must be no other.
  const NameMap<bool>& names() const;
  /// Returns the attribute of the file that passes saw this summary of; null if there is none.
  /// Noted by the first call, as `names`.
  const Attribute* summarised(Bytes summary) const;

 private:
  void collect(const OriginalGraph& original, const Graph& graph,
               std::vector<const Graph*>* nested);
  void add(const OriginalGraph& original, const Node* node, Bytes id);
  /// Returns the list that has an operator or initializer of the main graph, and its place there;
  /// null for other identifiers.
  std::pair<std::vector<uint32_t> Originals::*, std::size_t> placeOf(Bytes id) const;

  Bytes model_;
  std::shared_ptr<const Graph> graph_;
  int64_t ir_version_;
  std::shared_ptr<const Levels> levels_;
  std::unordered_map<const char*, Elsewhere> elsewhere_;
  std::deque<OriginalGraph> graphs_;
  std::deque<Original> all_;
  // Of the main graph, by number: one more than the index.
  std::vector<uint32_t> operators_;
  std::vector<uint32_t> initializers_;
  NameMap<uint32_t> by_id_;  ///< all others
  NameMap<const OriginalGraph*> by_place_;
  mutable std::optional<NameMap<bool>> names_;
  mutable std::optional<NameMap<const Attribute*>> summarised_;
  mutable std::optional<NameMap<uint32_t>> operator_names_;
};

/// Returns the value of a field of bytes, the last one; empty, not null, if there is none.
Bytes bodyOf(Bytes message, uint32_t number);

inline bool isVariable(const Node& node) { return node.op == "null"; }

/// Reads a number that counts from 0 in decimal digits; false for any other text.
bool parsePosition(Bytes text, std::size_t* position);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_ORIGINAL_ORIGINALS_H_
