// MXNet's symbol files.
#ifndef PASSLIB_MXNET_READING_H_
#define PASSLIB_MXNET_READING_H_

#include <memory>
#include <string>

#include "graph/attribute_texts.h"
#include "graph/source.h"

namespace passlib::symbols {

/// A graph and its own attributes, the version that wrote it among them.
struct Symbol {
  std::shared_ptr<GraphSource> graph;
  GraphTexts attributes;
};

/// The attribute of a graph that holds the version, which passes do not see.
constexpr const char* kOwnAttribute = "attrs";

/// Reads a symbol of any version, and upgrades an old one. The graph is in post-order from its
/// outputs, without nodes that none of them needs. Throws JsonError, FormatError, GraphError,
/// UnsupportedError.
Symbol readSymbol(const std::shared_ptr<std::string>& text);

/// Prints a symbol as MXNet's writer does, without the origins of nodes.
std::string printSymbol(const Graph& graph, const GraphTexts& attributes);

}  // namespace passlib::symbols

#endif  // PASSLIB_MXNET_READING_H_
