// The top-level attributes of a graph as texts.
#ifndef PASSLIB_GRAPH_ATTRIBUTE_TEXTS_H_
#define PASSLIB_GRAPH_ATTRIBUTE_TEXTS_H_

#include <map>
#include <string>

#include "header.h"

namespace passlib {

/// Top-level attributes of a graph: JSON text by key.
using GraphTexts = std::map<std::string, std::string>;

/// Throws JsonError.
mxnet::ext::GraphAttributes parseAttributes(const GraphTexts& texts);
GraphTexts printAttributes(const mxnet::ext::GraphAttributes& attributes);

}  // namespace passlib

#endif  // PASSLIB_GRAPH_ATTRIBUTE_TEXTS_H_
