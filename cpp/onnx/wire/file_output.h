// Messages in pieces into an open file.
#ifndef PASSLIB_ONNX_WIRE_FILE_OUTPUT_H_
#define PASSLIB_ONNX_WIRE_FILE_OUTPUT_H_

#include <cstddef>

#include "onnx/wire/output.h"

namespace passlib::onnx {

/// Where bytes of memory are in a file.
struct FileSpan {
  int file = -1;  ///< its descriptor; -1 if they are in none
  std::size_t offset = 0;
};

/// Writes a message to a file descriptor. `find`: what lies at whole blocks of a file becomes
/// blocks of the new one, where the file system can share them. Throws std::system_error.
void writePieces(const Pieces& pieces, int file, FileSpan (*find)(Bytes) = nullptr);

}  // namespace passlib::onnx

#endif  // PASSLIB_ONNX_WIRE_FILE_OUTPUT_H_
