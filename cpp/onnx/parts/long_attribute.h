// Long lists in attributes, such as those of trees, which stay where the file has them.
#ifndef PASSLIB_ONNX_PARTS_LONG_ATTRIBUTE_H_
#define PASSLIB_ONNX_PARTS_LONG_ATTRIBUTE_H_

#include <string>

#include "onnx/parts/attribute.h"

namespace passlib::onnx {

/// Whether passes see a summary of an attribute: it is a text or a list of 4096 bytes or more.
bool isLong(const Attribute& attribute);

/// Returns the summary: kind, number of elements and a hash of the bytes. Throws WireError.
std::string summaryOf(const Attribute& attribute);

/// Whether a text is a summary, or made to look like one.
bool isSummary(Bytes text);

/// Appends a node with the long lists of its attributes cut to equal lengths, and long tensors
/// without elements; false if it has none. Those of ONNX's own operators, whose types depend on
/// them, are kept. Throws WireError.
bool cutNode(Bytes node, std::string* out);

/// The same for an attribute of a node of that domain.
bool cutAttribute(Bytes domain, Bytes attribute, std::string* out);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_PARTS_LONG_ATTRIBUTE_H_
