// The file of a loaded library, and whether it is still the one that was loaded.
#ifndef PASSLIB_LIBRARY_CALLS_LOADED_FILE_H_
#define PASSLIB_LIBRARY_CALLS_LOADED_FILE_H_

#include <sys/stat.h>

#include <cstddef>
#include <string>

namespace passlib {

/// A file that the dynamic linker mapped into memory: what is written into it changes the code of
/// this process. Not safe to use from several threads at once.
class LoadedFile {
 public:
  explicit LoadedFile(std::string path);

  /// Whether a file is this one, by whatever path.
  bool is(const struct stat& other) const {
    return known_ && other.st_dev == was_.st_dev && other.st_ino == was_.st_ino;
  }

  /// Whether the file was written to since, unless its content is the same. A new file under the
  /// path is no harm: the old one stays mapped. Costs one stat, and reading the file once after
  /// each change of its times, rights or links.
  bool overwritten();

 private:
  std::string path_;
  struct stat was_;
  std::size_t content_ = 0;  ///< a hash
  bool known_ = false;
};

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_CALLS_LOADED_FILE_H_
