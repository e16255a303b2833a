// Shared by the bindings: text and top-level attributes.
#ifndef PASSLIB_BINDINGS_COMMON_H_
#define PASSLIB_BINDINGS_COMMON_H_

#include <pybind11/pybind11.h>

#include <string>
#include <string_view>

#include "graph/attribute_texts.h"
#include "header.h"

namespace passlib {

namespace py = pybind11;

using AttributeTexts = GraphTexts;

/// The attributes of a node by key.
py::dict attributeDict(const mxnet::ext::Node& node);

/// Decodes UTF-8. Invalid bytes become replacement characters.
py::str decode(std::string_view text);

}  // namespace passlib

#endif  // PASSLIB_BINDINGS_COMMON_H_
