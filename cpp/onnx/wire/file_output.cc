#include "onnx/wire/file_output.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <vector>

namespace passlib::onnx {
namespace {

/// What one call takes: Linux has a limit of 1,024 pieces.
constexpr std::size_t kMostPieces = 512;

/// Bytes that are computed at once: they stay in the processor's cache until they are written.
constexpr std::size_t kBlock = std::size_t{1} << 18;

/// Files of fewer bytes are written as they come.
constexpr std::size_t kReserved = std::size_t{1} << 20;

/// Writes pieces one after the other; those that lie in memory several at a time.
class Output {
 public:
  explicit Output(int file) : file_(file) {}

  void add(Bytes bytes) {
    left_.push_back({const_cast<char*>(bytes.data()), bytes.size()});
    if (left_.size() == kMostPieces) flush();
  }

  void add(const Computed& computed) {
    if (block_ == nullptr) block_.reset(new char[kBlock]);
    for (std::size_t place = 0; place < computed.size(); place += kBlock) {
      const std::size_t size = std::min(kBlock, computed.size() - place);
      computed.compute(place, size, block_.get());
      left_.push_back({block_.get(), size});
      flush();
    }
  }

  void flush() {
    std::size_t first = 0;
    while (first < left_.size()) {
      const ssize_t result =
          writev(file_, left_.data() + first, static_cast<int>(left_.size() - first));
      if (result < 0) {
        if (errno == EINTR) continue;
        throw std::system_error(errno, std::generic_category());
      }
      auto done = static_cast<std::size_t>(result);
      while (first < left_.size() && done >= left_[first].iov_len) done -= left_[first++].iov_len;
      if (done > 0) {
        left_[first].iov_base = static_cast<char*>(left_[first].iov_base) + done;
        left_[first].iov_len -= done;
      }
    }
    left_.clear();
  }

 private:
  int file_;
  std::vector<iovec> left_;
  std::unique_ptr<char[]> block_;
};

}  // namespace

void writePieces(const Pieces& pieces, int file) {
  // With its blocks reserved, a large file is written in half of the time, and a full disk is
  // noticed before. Not all file systems can do that.
  const std::size_t size = pieces.size();
  if (size >= kReserved && fallocate(file, 0, 0, static_cast<off_t>(size)) != 0 &&
      errno == ENOSPC) {
    throw std::system_error(errno, std::generic_category());
  }
  Output output(file);
  pieces.forEach([&](const auto& piece) { output.add(piece); });
  output.flush();
}

}  // namespace passlib::onnx
