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

bool sameTime(const struct stat& left, const struct stat& right) {
  return left.st_mtim.tv_sec == right.st_mtim.tv_sec &&
         left.st_mtim.tv_nsec == right.st_mtim.tv_nsec;
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
  if (sameTime(now, was_)) return false;
  if (hashContent(path_, now) != content_) return true;
  was_ = now;  // touched only
  return false;
}

}  // namespace passlib
