// Types that a file states for values.
#ifndef PASSLIB_ONNX_TYPES_STATED_H_
#define PASSLIB_ONNX_TYPES_STATED_H_

#include <vector>

#include "onnx/types/messages.h"

namespace passlib::onnx {

/// The type of an input: unknown unless it is that of a tensor.
struct InputType : StatedType {
  bool other = false;  ///< of a sequence, a map, a sparse tensor or an optional value
};

/// Returns the type that a TypeProto states.
InputType typeOf(Bytes type);

/// Returns the types of a graph's inputs, in the order of the file.
std::vector<InputType> inputTypes(Bytes graph);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_TYPES_STATED_H_
