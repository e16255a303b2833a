#include "library/calls/loaded_file.h"

#include <cstring>
#include <fstream>
#include <functional>
#include <utility>

namespace passlib {
namespace {

std::size_t hashContent(const std::string& path, const struct stat& status) {
  std::string content(static_cast<std::size_t>(status.st_size), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(&content[0], static_cast<std::streamsize>(content.size()));
  return std::hash<std::string>()(content);
}

bool sameTime(const struct timespec& left, const struct timespec& right) {
  return left.tv_sec == right.tv_sec && left.tv_nsec == right.tv_nsec;
}

/// Whether nobody can have written to the file between the two. The time of the last change of
/// anything about it counts too: that of the content can be set back.
bool untouched(const struct stat& left, const struct stat& right) {
  return sameTime(left.st_mtim, right.st_mtim) && sameTime(left.st_ctim, right.st_ctim);
}

}  // namespace

LoadedFile::LoadedFile(std::string path) : path_(std::move(path)) {
  std::memset(&was_, 0, sizeof(was_));
  known_ = stat(path_.c_str(), &was_) == 0;
  if (known_) content_ = hashContent(path_, was_);
}

bool LoadedFile::overwritten() {
  struct stat now;
  if (!known_ || stat(path_.c_str(), &now) != 0) return false;
  if (now.st_dev != was_.st_dev || now.st_ino != was_.st_ino) return false;
  if (now.st_size != was_.st_size) return true;
  if (untouched(now, was_)) return false;
  if (hashContent(path_, now) != content_) return true;
  was_ = now;  // only touched, linked or given other rights
  return false;
}

}  // namespace passlib
