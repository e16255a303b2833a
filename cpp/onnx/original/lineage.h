// The nodes of a file that a node stands for after passes.
#ifndef PASSLIB_ONNX_ORIGINAL_LINEAGE_H_
#define PASSLIB_ONNX_ORIGINAL_LINEAGE_H_

#include <vector>

#include "onnx/original/originals.h"

namespace passlib::onnx {

/// Returns the operators of the file that a node stands for, the last one that of its value; empty
/// if no pass has noted any. `original` is the node of the file or null.
std::vector<const Original*> lineageOf(const Node& node, const Original* original,
                                       const Originals& originals);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_ORIGINAL_LINEAGE_H_
