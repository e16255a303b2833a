// Shared by the bindings: text and top-level attributes.
#ifndef PASSLIB_BINDINGS_COMMON_H_
#define PASSLIB_BINDINGS_COMMON_H_

#include <pybind11/pybind11.h>

#include <map>
#include <string>
#include <string_view>

#include "header.h"

namespace passlib {

namespace py = pybind11;

/// The attributes of a node by key.
py::dict attributeDict(const mxnet::ext::Node& node);

/// Decodes UTF-8. Invalid bytes become replacement characters.
py::str decode(std::string_view text);

/// Top-level attributes of a graph: JSON text by key.
using AttributeTexts = std::map<std::string, std::string>;

mxnet::ext::GraphAttributes parseAttributes(const AttributeTexts& texts);
AttributeTexts printAttributes(const mxnet::ext::GraphAttributes& attributes);

}  // namespace passlib

#endif  // PASSLIB_BINDINGS_COMMON_H_
