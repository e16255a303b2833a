#include "onnx/wire/file_output.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <vector>

#include "platform/system.h"

namespace passlib::onnx {
namespace {

/// The most pieces of one call: Linux has a limit of 1,024 pieces.
constexpr std::size_t kMostPieces = 512;

/// Bytes that are written at once, from multiples of this in the file: its pages are whole then,
/// and the system keeps them in large pieces. They stay in the processor's cache until then.
constexpr std::size_t kBlock = std::size_t{1} << 18;

/// The largest element of what is computed.
constexpr std::size_t kElement = 8;

/// Files of fewer bytes are written as they come.
constexpr std::size_t kReserved = std::size_t{1} << 20;

/// Writes pieces one after the other.
class Output {
 public:
  explicit Output(int file) : file_(file) {}

  void add(Bytes bytes) {
    while (!bytes.empty()) {
      if (left_.size() == kMostPieces) flush();
      // To the end of the block, or of a later one.
      const std::size_t room = kBlock - waiting_;
      const std::size_t blocks = bytes.size() < room ? 0 : (bytes.size() - room) / kBlock;
      const std::size_t size = std::min(bytes.size(), room + blocks * kBlock);
      push(bytes.data(), size);
      bytes.remove_prefix(size);
      if (waiting_ % kBlock == 0) flush();
    }
  }

  void add(const Computed& computed) {
    if (block_ == nullptr) block_.reset(new char[kBlock + kElement]);
    for (std::size_t place = 0; place < computed.size();) {
      if (left_.size() == kMostPieces) flush();
      // Elements are computed as a whole, so that part of the last one may belong to the next
      // block.
      const std::size_t room = kBlock - waiting_;
      const std::size_t whole = (room + kElement - 1) / kElement * kElement;
      const std::size_t size = std::min(whole, computed.size() - place);
      const std::size_t now = std::min(size, room);
      char* const target = block_.get() + waiting_;
      computed.compute(place, size, target);
      place += size;
      push(target, now);
      if (waiting_ < kBlock) continue;
      flush();
      if (now == size) continue;
      std::memcpy(block_.get(), target + now, size - now);
      push(block_.get(), size - now);
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
    waiting_ = 0;
  }

 private:
  void push(const char* data, std::size_t size) {
    left_.push_back({const_cast<char*>(data), size});
    waiting_ += size;
  }

  int file_;
  std::vector<iovec> left_;
  std::size_t waiting_ = 0;        ///< bytes of all that are left
  std::unique_ptr<char[]> block_;  ///< computed bytes, each at its place in the block
};

}  // namespace

void writePieces(const Pieces& pieces, int file) {
  // With its blocks reserved, a large file is written in half of the time, and a full disk is
  // noticed before. Not all file systems can do that.
  const std::size_t size = pieces.size();
  if (size >= kReserved && !platform::reserveRoom(file, size)) {
    throw std::system_error(ENOSPC, std::generic_category());
  }
  Output output(file);
  pieces.forEach([&](const auto& piece) { output.add(piece); });
  output.flush();
}

}  // namespace passlib::onnx
