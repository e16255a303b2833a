#include "model/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "errors.h"
#include "model/data_files.h"

namespace passlib::model {

namespace {

[[noreturn]] void failToWrite(const std::string& path) {
  throw std::system_error(errno, std::generic_category(), path);
}

/// Follows links.
std::string withoutLinks(const std::string& path) {
  char* const real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return path;
  std::string made = real;
  ::free(real);
  return made;
}

}  // namespace

NewFile::NewFile(const std::string& path) : target_(withoutLinks(path)) {
  struct stat state{};
  const bool is_replaced = ::stat(target_.c_str(), &state) == 0;
  if (is_replaced) {
    if (S_ISDIR(state.st_mode)) throw std::system_error(EISDIR, std::generic_category(), path);
    if (!S_ISREG(state.st_mode)) throw FormatError(path + ": this is no regular file");
  }
  const std::size_t slash = target_.rfind('/');
  const std::size_t start = slash == std::string::npos ? 0 : slash + 1;
  // The name must not be longer than the system allows.
  const std::string name = target_.substr(0, start) + "." + target_.substr(start, 200) + ".";
  static std::atomic<unsigned> count{0};
  while (file_ < 0) {
    partial_ = name + std::to_string(::getpid()) + "." + std::to_string(count++);
    file_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                   is_replaced ? state.st_mode & 0777 : 0666);
    if (file_ < 0 && errno != EEXIST) failToWrite(path);
  }
  if (is_replaced) ::fchmod(file_, state.st_mode & 07777);
}

NewFile::~NewFile() {
  if (file_ >= 0) ::close(file_);
  if (!partial_.empty()) ::unlink(partial_.c_str());
  if (is_added_) ::unlink(target_.c_str());
}

void NewFile::write(const onnx::Pieces& content) {
  writeSharing(content, file_);
  if (::fsync(file_) != 0) failToWrite(target_);
  if (::close(std::exchange(file_, -1)) != 0) failToWrite(target_);
}

void NewFile::replace() {
  if (::rename(partial_.c_str(), target_.c_str()) != 0) failToWrite(target_);
  partial_.clear();
}

void NewFile::add() {
  if (::link(partial_.c_str(), target_.c_str()) == 0) {
    is_added_ = true;
    return;
  }
  struct stat state{};
  if (errno == EEXIST || ::lstat(target_.c_str(), &state) == 0) {
    throw std::system_error(EEXIST, std::generic_category(),
                            target_ + ": another save chose the same name for its data");
  }
  replace();  // the file system has no links
  is_added_ = true;
}

}  // namespace passlib::model
