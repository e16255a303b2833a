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

/// File systems share whole blocks of this size.
constexpr std::size_t kShared = 4096;

/// Fewer bytes are not searched in files.
constexpr std::size_t kSearched = std::size_t{1} << 16;

/// Whether blocks of a file may become those of another one.
bool isShareable(Bytes bytes, FileSpan (*find)(Bytes), FileSpan* place) {
  if (find == nullptr || bytes.size() < kSearched) return false;
  *place = find(bytes);
  return place->file >= 0 && place->offset % kShared == 0;
}

bool isShareable(const Computed& /*computed*/, FileSpan (*)(Bytes) /*find*/, FileSpan* /*place*/) {
  return false;
}

/// Writes pieces one after the other.
class Output {
 public:
  Output(int file, FileSpan (*find)(Bytes)) : file_(file), find_(find) {}

  void add(Bytes bytes) {
    bytes.remove_prefix(share(bytes));
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
      written_ += done;
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
  /// Lets the file have the blocks of another one; returns the number of bytes in these.
  std::size_t share(Bytes bytes) {
    FileSpan place;
    if ((written_ + waiting_) % kShared != 0 || !isShareable(bytes, find_, &place)) return 0;
    flush();
    // A range that ends within a block is not shared at all.
    const std::size_t whole = bytes.size() / kShared * kShared;
    const std::size_t copied = platform::copyToEnd(place.file, place.offset, whole, file_);
    written_ += copied;
    return copied;
  }

  void push(const char* data, std::size_t size) {
    left_.push_back({const_cast<char*>(data), size});
    waiting_ += size;
  }

  int file_;
  FileSpan (*find_)(Bytes);
  std::size_t written_ = 0;
  std::vector<iovec> left_;
  std::size_t waiting_ = 0;        ///< bytes of all that are left
  std::unique_ptr<char[]> block_;  ///< computed bytes, each at its place in the block
};

}  // namespace

void writePieces(const Pieces& pieces, int file, FileSpan (*find)(Bytes)) {
  // With its blocks reserved, a large file is written in half of the time, and a full disk is
  // noticed before. Not all file systems can do that, and shared blocks take no room.
  std::size_t size = 0;
  bool is_shared = false;
  pieces.forEach([&](const auto& piece) {
    FileSpan place;
    size += piece.size();
    is_shared = is_shared || isShareable(piece, find, &place);
  });
  if (!is_shared && size >= kReserved && !platform::reserveRoom(file, size)) {
    throw std::system_error(ENOSPC, std::generic_category());
  }
  Output output(file, find);
  pieces.forEach([&](const auto& piece) { output.add(piece); });
  output.flush();
}

}  // namespace passlib::onnx
