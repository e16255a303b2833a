// Attributes of ONNX's operators: their defaults, and those that are inputs in later sets.
#ifndef PASSLIB_RULES_ATTRIBUTES_H_
#define PASSLIB_RULES_ATTRIBUTES_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace passlib::rules {

/// The default of an attribute, as its text; null if it has none, or none that does not depend on
/// the input. "reversed": the axes of the first input from the last one; "axes": all of them.
const char* defaultOf(const std::string& op, const std::string& attribute, int64_t opset);

/// An attribute that is an input from an operator set on.
struct Moved {
  enum Form { kIntegers, kInteger, kScalar, kFloat, kFloats };
  std::string_view op;
  std::string_view attribute;
  int input;
  int64_t since;
  Form form;  ///< kScalar: of the type of the first input
};
const Moved* movedInput(const std::string& op, const std::string& attribute, int64_t opset);
/// The attributes of an operator that move in some set; `next` begins with null.
const Moved* nextMoved(const std::string& op, const Moved* next);

}  // namespace passlib::rules

#endif  // PASSLIB_RULES_ATTRIBUTES_H_
