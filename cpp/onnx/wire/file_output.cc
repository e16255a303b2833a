#include "onnx/wire/file_output.h"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace passlib::onnx {
namespace {

/// What one call takes: Linux has a limit of 1,024 pieces.
constexpr std::size_t kMostPieces = 512;

}  // namespace

void writePieces(const Pieces& pieces, int file) {
  std::vector<iovec> left;
  pieces.forEach(
      [&](Bytes bytes) { left.push_back({const_cast<char*>(bytes.data()), bytes.size()}); });
  std::size_t first = 0;
  while (first < left.size()) {
    const auto count = static_cast<int>(std::min(left.size() - first, kMostPieces));
    const ssize_t result = writev(file, left.data() + first, count);
    if (result < 0) {
      if (errno == EINTR) continue;
      throw std::system_error(errno, std::generic_category());
    }
    auto done = static_cast<std::size_t>(result);
    while (first < left.size() && done >= left[first].iov_len) done -= left[first++].iov_len;
    if (done > 0) {
      left[first].iov_base = static_cast<char*>(left[first].iov_base) + done;
      left[first].iov_len -= done;
    }
  }
}

}  // namespace passlib::onnx
