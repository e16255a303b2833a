// Functions that differ between operating systems: linux.cc and elf.cc are for Linux, portable.cc
// for other systems. PASSLIB_PORTABLE selects portable.cc on Linux, for tests.
#ifndef PASSLIB_PLATFORM_SYSTEM_H_
#define PASSLIB_PLATFORM_SYSTEM_H_

#include <sys/stat.h>

#include <cstddef>
#include <ctime>

#if defined(__linux__) && !defined(PASSLIB_PORTABLE)
#define PASSLIB_LINUX 1
#else
#define PASSLIB_LINUX 0
#endif

namespace passlib::platform {

/// Opens a pipe, both of whose ends are closed in programs that this process starts. Returns
/// whether that succeeded.
bool openPipe(int (&ends)[2]);

constexpr int kUnknownStatus = -1;
/// Calls a function at the end of the process, with its exit status: kUnknownStatus where the C
/// library does not tell. Such functions run in the reverse order of this call. At most 8 of them.
void atExit(void (*function)(int status));

/// Whether the calling thread is the one that the process began with; where the system does not
/// tell, the one that loaded this library.
bool isMainThread();

/// Reserves room on the disk for a file. False where the disk is full; true, too, where the system
/// or the file system cannot reserve any.
bool reserveRoom(int file, std::size_t size);

/// Copies bytes of a file to the end of another, which the second descriptor is at, and shares the
/// blocks of both where the file system can. Returns how many; fewer where the system cannot.
std::size_t copyToEnd(int source, std::size_t offset, std::size_t size, int target);

/// Brings pages of a mapped file into memory. False where the system cannot say that it did.
bool bringIn(void* first, std::size_t size);

timespec modifiedAt(const struct stat& file);
timespec changedAt(const struct stat& file);
/// Returns the time that a file gets if it is written now.
timespec fileClock();

/// Flag of mmap for private mappings of whole files, few of whose pages are written.
int flagOfSparse();

/// Tells which pages of this process, by number, may differ from the file that they are mapped of.
class PageMap {
 public:
  PageMap();
  ~PageMap();
  PageMap(const PageMap&) = delete;
  PageMap& operator=(const PageMap&) = delete;

  static constexpr std::size_t kMost = 1024;
  /// Reads from a page on, at most kMost pages; returns how many, 0 if the system does not tell.
  std::size_t read(std::size_t page, std::size_t count, bool (&may_differ)[kMost]) const;

 private:
  [[maybe_unused]] int file_ = -1;  // not in portable.cc
};

}  // namespace passlib::platform

#endif  // PASSLIB_PLATFORM_SYSTEM_H_
