// Facts of values for the conditions of rules.
#ifndef PASSLIB_RULES_KNOWN_H_
#define PASSLIB_RULES_KNOWN_H_

#include <cstddef>
#include <cstdint>

#include "facts/fact.h"
#include "header.h"

namespace passlib::rules {

using facts::Dim;

/// The facts of a value.
struct Known {
  const facts::Fact& fact;                         ///< until the facts of the value change
  const mxnet::ext::MXTensor* constant = nullptr;  ///< the array of a constant
};

/// ONNX's code of an element type of arrays; 0 for none.
int onnxType(mxnet::ext::MXDType type);
/// The element type of arrays; kUNSET if arrays have none like it.
mxnet::ext::MXDType arrayType(int code);

/// The element of a dense tensor of numbers. `pos` lies within it.
double elementAt(const mxnet::ext::MXTensor& tensor, std::size_t pos);
/// The same of a whole type, with all bits.
int64_t integerAt(const mxnet::ext::MXTensor& tensor, std::size_t pos);
/// `value`: one that the type has, see `fits`, or a real number.
void setElementAt(const mxnet::ext::MXTensor& tensor, std::size_t pos, double value);
/// A type of whole numbers keeps the lowest bits of a number that it lacks.
void setIntegerAt(const mxnet::ext::MXTensor& tensor, std::size_t pos, int64_t value);
/// Fills a dense tensor of float16 or bfloat16 with rounded elements in float32, of which there are
/// as many.
void roundToHalf(const char* from, const mxnet::ext::MXTensor& made);
/// Whether a dense tensor has no infinite element and no NaN.
bool isFinite(const mxnet::ext::MXTensor& tensor);
/// Whether a type, by ONNX's code, has a number, real ones rounded.
bool fits(double number, int code);
std::size_t bytesOf(mxnet::ext::MXDType type);
bool isWhole(int code);
bool isReal(int code);

}  // namespace passlib::rules

#endif  // PASSLIB_RULES_KNOWN_H_
