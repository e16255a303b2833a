// One graph of a file, the main one or a nested one, before it becomes nodes and edges.
#ifndef PASSLIB_ONNX_READING_LEVEL_H_
#define PASSLIB_ONNX_READING_LEVEL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "errors.h"
#include "onnx/parts/attribute.h"
#include "onnx/parts/tensor.h"
#include "onnx/text/strings.h"

namespace passlib::onnx {

/// A part of one of the lists of a level.
struct Range {
  uint32_t first = 0;
  uint32_t count = 0;
};

/// A NodeProto. Its lists are parts of those of its level.
struct NodeRecord {
  Bytes op;
  Bytes name;
  Bytes domain;
  Bytes overload;
  Range inputs;           ///< of Level::names
  Range outputs;          ///< of Level::names
  Range attributes;       ///< of Level::attributes
  Range marks;            ///< of Level::marks
  bool constant = false;  ///< holds a value, and is a variable for passes
};

/// An attribute, with the numbers of its nested graphs.
struct AttributeRecord {
  Attribute attribute;
  Range levels;
};

struct Initializer {
  TensorHead tensor;
  bool has_input = false;  ///< it is the default of an input
};

/// A GraphProto.
struct Level {
  std::string prefix;  ///< what the identifier of each of its nodes starts with
  bool nested = false;
  std::vector<NodeRecord> nodes;
  std::vector<Bytes> names;
  std::vector<AttributeRecord> attributes;
  std::vector<std::pair<Bytes, Bytes>> marks;  ///< of passes, in metadata of nodes
  std::vector<Initializer> initializers;
  std::vector<std::pair<Bytes, bool>> sparse;      ///< names, and whether each is that of an input
  std::vector<std::pair<Bytes, uint32_t>> inputs;  ///< without a default; names and numbers
  std::vector<Bytes> outputs;

  std::string keyOf(std::size_t node) const { return prefix + std::to_string(node); }
};

/// The message of a graph, and its place, such as `12.body`; that of the main graph is empty.
struct GraphPlace {
  Bytes message;
  std::string place;
};

/// Reads one of the graphs, and appends those nested in it. The main graph is number 0. Throws
/// FormatError, GraphError, UnsupportedError.
Level readLevel(std::size_t number, std::vector<GraphPlace>* graphs, Arena* arena);

/// The name of a node in messages.
std::string titleOf(const Level& level, const NodeRecord& node, std::size_t number);

/// Keys of a node's attributes that passlib makes.
namespace keys {
constexpr const char *kId = "__id__", *kDomain = "__domain__", *kOverload = "__overload__",
                     *kFormal = "__formal_inputs__", *kCaptured = "__captured_inputs__",
                     *kOuter = "__outer__", *kOpaque = "__opaque__", *kDefault = "__default__";
}  // namespace keys

/// Returns a name of the file; `place` returns the text that the message begins with. Throws
/// FormatError if it is not UTF-8, or has a zero in it.
template <typename Place>
Bytes checkedName(Bytes text, Place place) {
  if (!isName(text)) throw FormatError(place() + ": " + shown(text) + " is not a name in UTF-8");
  return text;
}

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_READING_LEVEL_H_
