// Graphs and functions on the wire, with the graphs nested in them.
#ifndef PASSLIB_ONNX_PARTS_BODIES_H_
#define PASSLIB_ONNX_PARTS_BODIES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "onnx/wire/numbers.h"
#include "onnx/wire/schema.h"

namespace passlib::onnx {

/// A graph or a function.
struct Body {
  Bytes message;
  Path path;                        ///< from the outermost one, whose path is empty
  uint32_t nodes = numbers::kNode;  ///< the field of its nodes
};

/// Returns the bodies of a repeated field of bytes.
std::vector<Bytes> bodiesOf(Bytes message, uint32_t number);

/// Returns a path with one more field.
Path joined(Path path, const Field& field);

/// Calls `visit` for a body and the graphs nested in it, in a fixed order.
void forEachBodyWithin(const Body& body, const std::function<void(const Body&)>& visit);

/// Returns the graphs of a node, each with the fields that lead to it: attribute and graph.
std::vector<Path> graphsOf(Bytes node);

/// Names that refer to a message.
using NamesOfValues = std::unordered_set<Bytes>;

/// The names of all values of a graph, nested graphs included.
NamesOfValues valuesWithin(Bytes graph);
/// The names that a graph gives to initializers and results, nested graphs included, in their
/// order.
std::vector<Bytes> definedWithin(Bytes graph);
/// The names that a graph takes from the graphs around it, in order of use.
std::vector<Bytes> capturedBy(Bytes graph);

/// Returns a graph with other names of values, nested graphs included; inputs keep theirs.
std::string withValueNames(Bytes graph, const std::unordered_map<Bytes, Bytes>& names);

/// Returns a message with other items of some repeated fields, and all fields in order of number.
std::string withItems(Bytes message, const std::map<uint32_t, std::vector<Bytes>>& items);

/// Returns a node that has a tensor, under its name.
std::string constantNode(Bytes tensor);

/// Returns a model with other local functions.
std::string withFunctions(Bytes model, const std::vector<std::string>& functions);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_PARTS_BODIES_H_
