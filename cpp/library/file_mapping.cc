#include "library/file_mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#include "errors.h"
#include "fork_mutex.h"
#include "platform/system.h"

namespace passlib {
namespace {

/// The mapped files by address, so that the owner of an array's memory is found.
struct Registry {
  ForkMutex<std::mutex> mutex;
  std::map<const char*, const FileMapping*, std::less<>> files;

  /// Returns the file in which an array lies as a whole, or null.
  const FileMapping* find(const void* data, std::size_t size = 0) const {
    const auto* const start = static_cast<const char*>(data);
    auto found = files.upper_bound(start);
    if (found == files.begin()) return nullptr;
    const FileMapping* const file = (--found)->second;
    const auto offset = static_cast<std::size_t>(start - file->data());
    return offset < file->size() && size <= file->size() - offset ? file : nullptr;
  }
};

Registry& registry() {
  static Registry* const all = new Registry;  // threads may outlive static objects
  return *all;
}

/// Waits until the clock of files shows another time, so that each later write changes the time.
void waitForTick(const timespec& modified) {
  constexpr long kMilli = 1000000;
  for (int waited = 0; waited < 20; ++waited) {
    const timespec now = platform::fileClock();
    if (now.tv_sec != modified.tv_sec || now.tv_nsec > modified.tv_nsec) return;
    const timespec pause{0, kMilli};
    nanosleep(&pause, nullptr);
  }
}

bool isSame(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

[[noreturn]] void fail() { throw std::system_error(errno, std::generic_category()); }

}  // namespace

PrivateMapping::PrivateMapping(int file, std::size_t size) : size_(size) {
  void* const data =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | platform::flagOfSparse(), file, 0);
  if (data == MAP_FAILED) fail();
  data_ = static_cast<char*>(data);
}

PrivateMapping::~PrivateMapping() { munmap(data_, size_); }

bool PrivateMapping::differs(std::size_t offset, std::size_t size, const char* original) const {
  const auto page_size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto base = reinterpret_cast<uintptr_t>(data_);
  const std::size_t end = offset + size;
  const platform::PageMap pages;
  bool may_differ[platform::PageMap::kMost];
  std::size_t place = offset;
  while (place < end) {
    const std::size_t first = place / page_size;
    const std::size_t wanted = (end - 1) / page_size + 1 - first;
    const std::size_t count = pages.read(base / page_size + first, wanted, may_differ);
    if (count == 0)
      return std::memcmp(data_ + place, original + (place - offset), end - place) != 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t stop = std::min(end, (first + i + 1) * page_size);
      if (may_differ[i] &&
          std::memcmp(data_ + place, original + (place - offset), stop - place) != 0) {
        return true;
      }
      place = stop;
    }
  }
  return false;
}

FileMapping::FileMapping(int file, std::string path, bool is_private)
    : file_(fcntl(file, F_DUPFD_CLOEXEC, 0)), path_(std::move(path)), is_private_(is_private) {
  if (file_ < 0) fail();
  void* data = MAP_FAILED;
  if (fstat(file_, &state_) == 0) {
    waitForTick(platform::modifiedAt(state_));
    fstat(file_, &state_);
    size_ = static_cast<std::size_t>(state_.st_size);
    data = mmap(nullptr, size_, is_private ? PROT_READ | PROT_WRITE : PROT_READ,
                is_private ? MAP_PRIVATE | platform::flagOfSparse() : MAP_SHARED, file_, 0);
  }
  if (data == MAP_FAILED) {
    const int error = errno;
    close(file_);
    errno = error;
    fail();
  }
  data_ = static_cast<const char*>(data);
  Registry& all = registry();
  const std::lock_guard<ForkMutex<std::mutex>> lock(all.mutex);
  all.files[data_] = this;
}

FileMapping::~FileMapping() {
  {
    Registry& all = registry();
    const std::lock_guard<ForkMutex<std::mutex>> lock(all.mutex);
    all.files.erase(data_);
  }
  munmap(const_cast<char*>(data_), size_);
  close(file_);
}

void FileMapping::check() const {
  struct stat now{};
  if (fstat(file_, &now) != 0) fail();
  bool changed = now.st_size != state_.st_size ||
                 !isSame(platform::modifiedAt(now), platform::modifiedAt(state_));
  if (!changed && !isSame(platform::changedAt(now), platform::changedAt(state_))) {
    // Renaming, replacing, linking and changing rights are no changes of the content, but whoever
    // writes to the file can put its time back.
    changed = now.st_nlink == state_.st_nlink && now.st_mode == state_.st_mode &&
              now.st_uid == state_.st_uid && now.st_gid == state_.st_gid && isAt(path_);
  }
  if (changed) {
    throw FormatError(path_ + ": this file was changed after it was loaded; load it again");
  }
}

bool FileMapping::isAt(const std::string& path) const {
  struct stat there{};
  return stat(path.c_str(), &there) == 0 && there.st_dev == state_.st_dev &&
         there.st_ino == state_.st_ino;
}

void FileChecks::check(const void* data) {
  const FileMapping* file = nullptr;
  {
    Registry& all = registry();
    const std::lock_guard<ForkMutex<std::mutex>> lock(all.mutex);
    file = all.find(data);
  }
  if (file == nullptr || std::find(checked_.begin(), checked_.end(), file) != checked_.end())
    return;
  file->check();
  checked_.push_back(file);
}

FilePlace placeInFile(const void* data, std::size_t size) {
  Registry& all = registry();
  const std::lock_guard<ForkMutex<std::mutex>> lock(all.mutex);
  const FileMapping* const file = all.find(data, size);
  if (file == nullptr || file->isPrivate()) return {};
  return {file->descriptor(),
          static_cast<std::size_t>(static_cast<const char*>(data) - file->data())};
}

PageHold::PageHold(const char* data, std::size_t size) {
  static const auto page_size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t before = reinterpret_cast<uintptr_t>(data) % page_size;
  first_ = const_cast<char*>(data - before);
  size_ = before + size;
  present_ = platform::bringIn(first_, size_);
}

PageHold::~PageHold() { madvise(first_, size_, MADV_DONTNEED); }

Lender::Loan Lender::lend(const void* data, std::size_t size) {
  Registry& all = registry();
  const std::lock_guard<ForkMutex<std::mutex>> lock(all.mutex);
  const FileMapping* const found = all.find(data, size);
  if (found == nullptr || found->isPrivate()) return {};
  const FileMapping& file = *found;
  const auto offset = static_cast<std::size_t>(static_cast<const char*>(data) - file.data());
  for (const Known& known : known_) {
    if (known.file == &file) return {known.mapping, offset};
  }
  try {
    known_.push_back(
        {&file, std::make_shared<const PrivateMapping>(file.descriptor(), file.size())});
  } catch (const std::system_error&) {
    return {};  // the array is copied
  }
  return {known_.back().mapping, offset};
}

}  // namespace passlib
