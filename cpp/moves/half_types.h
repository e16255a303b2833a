// Half precision in ONNX's operator sets.
#ifndef PASSLIB_MOVES_HALF_TYPES_H_
#define PASSLIB_MOVES_HALF_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace passlib::moves {

/// The type parameters of an operator of ONNX's own domain that can be float32 and a type of half
/// precision, kFloat16 or kBfloat16 of facts/fact.h: a letter for each input, then `>`, and a
/// letter for each output, such as `aa>a`. `.` stands for other types, `*` for a last one that is
/// repeated; points at the end are omitted. An empty text if there are none, and nothing if the
/// operator set lacks the operator.
std::optional<std::string_view> halfTypes(std::string_view op, int64_t opset, int type);

constexpr char kNoLetter = '.';

/// The letter of an input or output in one side of the text.
char letterAt(std::string_view side, std::size_t place);

}  // namespace passlib::moves

#endif  // PASSLIB_MOVES_HALF_TYPES_H_
