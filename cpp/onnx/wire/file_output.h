// Messages in pieces into an open file.
#ifndef PASSLIB_ONNX_WIRE_FILE_OUTPUT_H_
#define PASSLIB_ONNX_WIRE_FILE_OUTPUT_H_

#include "onnx/wire/output.h"

namespace passlib::onnx {

/// Writes a message to a file descriptor. Throws std::system_error.
void writePieces(const Pieces& pieces, int file);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_WIRE_FILE_OUTPUT_H_
