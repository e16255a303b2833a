// For systems with POSIX functions only, such as macOS.
#include "platform/system.h"

#if !PASSLIB_LINUX

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <fstream>

#include "platform/library_file.h"

namespace passlib::platform {
namespace {

#if !defined(__APPLE__)
const pthread_t loading_thread = pthread_self();
#endif

}  // namespace

bool openPipe(int (&ends)[2]) {
  if (pipe(ends) != 0) return false;
  for (const int end : ends) fcntl(end, F_SETFD, FD_CLOEXEC);
  return true;
}

bool isMainThread() {
#if defined(__APPLE__)
  return pthread_main_np() != 0;
#else
  return pthread_equal(pthread_self(), loading_thread) != 0;
#endif
}

bool reserveRoom(int /*file*/, std::size_t /*size*/) { return true; }

std::size_t copyToEnd(int /*source*/, std::size_t /*offset*/, std::size_t /*size*/,
                      int /*target*/) {
  return 0;
}

bool bringIn(void* /*first*/, std::size_t /*size*/) { return false; }

#if defined(__APPLE__)
timespec modifiedAt(const struct stat& file) { return file.st_mtimespec; }
timespec changedAt(const struct stat& file) { return file.st_ctimespec; }
#else
timespec modifiedAt(const struct stat& file) { return file.st_mtim; }
timespec changedAt(const struct stat& file) { return file.st_ctim; }
#endif

timespec fileClock() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now;
}

int flagOfSparse() { return 0; }

PageMap::PageMap() = default;
PageMap::~PageMap() = default;

std::size_t PageMap::read(std::size_t /*page*/, std::size_t /*count*/,
                          bool (& /*may_differ*/)[kMost]) const {
  return 0;
}

}  // namespace passlib::platform

namespace passlib {

// The linker of the system makes all other checks.
void checkLibraryFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) refuseLibrary(path, "the file does not exist or cannot be read");
  if (file.get() == std::ifstream::traits_type::eof()) refuseLibrary(path, "the file is empty");
}

std::vector<std::string> uniqueSymbols(const std::string& /*path*/) { return {}; }

LibraryFile readLibraryFile(const std::string& path) {
  refuseLibrary(path, "what a library states can be read on Linux only");
}

}  // namespace passlib

#endif  // !PASSLIB_LINUX
