// Numbers as Python and NumPy write them.
#ifndef PASSLIB_ONNX_TEXT_NUMBERS_H_
#define PASSLIB_ONNX_TEXT_NUMBERS_H_

#include <cstdint>
#include <string>

namespace passlib::onnx {

/// Appends the shortest text that reads back as the same number: ``0.1``, ``1e+06``, ``nan``.
void appendFloat(float value, std::string* out);
/// The same as JSON of Python: ``NaN`` and ``Infinity`` for numbers that are not finite.
void appendJsonNumber(double value, std::string* out);

/// Widens a number of the IEEE format of 16 bits.
double widenHalf(uint16_t bits);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_TEXT_NUMBERS_H_
