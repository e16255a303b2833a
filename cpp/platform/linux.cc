#include "platform/system.h"

#if PASSLIB_LINUX

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace passlib::platform {
namespace {

/// In an entry of /proc/self/pagemap: the page is one of the file, or in no memory yet.
/// https://docs.kernel.org/admin-guide/mm/pagemap.html
constexpr uint64_t kPresent = uint64_t{1} << 63, kSwapped = uint64_t{1} << 62,
                   kOfFile = uint64_t{1} << 61;

/// MADV_POPULATE_READ, which headers of older systems lack.
constexpr int kPopulate = 22;

}  // namespace

bool openPipe(int (&ends)[2]) { return pipe2(ends, O_CLOEXEC) == 0; }

bool isMainThread() { return syscall(SYS_gettid) == getpid(); }

bool reserveRoom(int file, std::size_t size) {
  return fallocate(file, 0, 0, static_cast<off_t>(size)) == 0 || errno != ENOSPC;
}

std::size_t copyToEnd(int source, std::size_t offset, std::size_t size, int target) {
  auto from = static_cast<loff_t>(offset);
  std::size_t copied = 0;
  while (copied < size) {
    const ssize_t now = copy_file_range(source, &from, target, nullptr, size - copied, 0);
    if (now < 0 && errno == EINTR) continue;
    if (now <= 0) break;
    copied += static_cast<std::size_t>(now);
  }
  return copied;
}

bool bringIn(void* first, std::size_t size) { return madvise(first, size, kPopulate) == 0; }

timespec modifiedAt(const struct stat& file) { return file.st_mtim; }
timespec changedAt(const struct stat& file) { return file.st_ctim; }

timespec fileClock() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return now;
}

int flagOfSparse() { return MAP_NORESERVE; }

PageMap::PageMap() : file_(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {}

PageMap::~PageMap() {
  if (file_ >= 0) close(file_);
}

std::size_t PageMap::read(std::size_t page, std::size_t count, bool (&may_differ)[kMost]) const {
  if (file_ < 0) return 0;
  uint64_t entries[kMost];
  const ssize_t bytes = pread(file_, entries, std::min(count, kMost) * sizeof *entries,
                              static_cast<off_t>(page * sizeof *entries));
  if (bytes < 0) return 0;
  const std::size_t found = static_cast<std::size_t>(bytes) / sizeof *entries;
  for (std::size_t i = 0; i < found; ++i) {
    may_differ[i] = (entries[i] & (kPresent | kSwapped)) != 0 && (entries[i] & kOfFile) == 0;
  }
  return found;
}

}  // namespace passlib::platform

#endif  // PASSLIB_LINUX
