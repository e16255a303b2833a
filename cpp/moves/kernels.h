// The element types that ONNX Runtime's kernels support.
#ifndef PASSLIB_MOVES_KERNELS_H_
#define PASSLIB_MOVES_KERNELS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace passlib::moves {

/// Operator sets, and the element types (TensorProto.DataType) added in each.
using Kernels = std::vector<std::pair<int64_t, std::set<int>>>;

/// The kernels by operator, of ONNX Runtime 1.32 on the CPU; of float16 also where it inserts
/// casts.
const std::map<std::string_view, Kernels>& kernels();

/// Whether ONNX Runtime runs an operator of this table on an element type; 0 is an unknown one, for
/// which this is false.
bool hasKernel(std::string_view op, int type, int64_t opset);

}  // namespace passlib::moves

#endif  // PASSLIB_MOVES_KERNELS_H_
