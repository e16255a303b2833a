// Files mapped into memory, and their pages lent copy-on-write.
#ifndef PASSLIB_LIBRARY_FILE_MAPPING_H_
#define PASSLIB_LIBRARY_FILE_MAPPING_H_

#include <sys/stat.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace passlib {

/// A second mapping of a file, which can be written to: pages are copied at the first write to
/// each, and the file stays as it is.
class PrivateMapping {
 public:
  /// Throws std::system_error.
  PrivateMapping(int file, std::size_t size);
  ~PrivateMapping();
  PrivateMapping(const PrivateMapping&) = delete;
  PrivateMapping& operator=(const PrivateMapping&) = delete;

  char* data() const { return data_; }
  /// Whether `size` bytes at `offset` differ from those at `original`. Only pages that were written
  /// to are compared, where the system tells which.
  bool differs(std::size_t offset, std::size_t size, const char* original) const;

 private:
  char* data_;
  std::size_t size_;
};

/// A file mapped into memory, with its state at that time.
class FileMapping {
 public:
  /// `path` leads to the file. If it is private, the memory can be written to, and the file stays
  /// as it is. Throws std::system_error. The descriptor may be closed afterwards.
  FileMapping(int file, std::string path, bool is_private = false);
  ~FileMapping();
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;

  const char* data() const { return data_; }
  std::size_t size() const { return size_; }
  /// Of the file, open as long as this object lives.
  int descriptor() const { return file_; }
  bool isPrivate() const { return is_private_; }
  /// Throws FormatError if the file was changed since it was mapped: its memory is then that of
  /// neither the old nor the new content, and what lies beyond the new end cannot be read.
  void check() const;
  /// Whether a path leads to the file.
  bool isAt(const std::string& path) const;

 private:
  int file_;
  std::string path_;
  bool is_private_;
  struct stat state_{};
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Lends memory of mapped files: one private mapping of each.
class Lender {
 public:
  struct Loan {
    std::shared_ptr<const PrivateMapping> mapping;  ///< null if the memory is of no mapped file
    std::size_t offset = 0;
  };
  Loan lend(const void* data, std::size_t size);

 private:
  struct Known {
    const FileMapping* file;
    std::shared_ptr<const PrivateMapping> mapping;
  };
  std::vector<Known> known_;
};

/// Where an array lies in a mapped file.
struct FilePlace {
  int file = -1;  ///< its descriptor; -1 if the array lies in no mapped file
  std::size_t offset = 0;
};
FilePlace placeInFile(const void* data, std::size_t size);

/// Checks the files of memory, each once.
class FileChecks {
 public:
  /// Throws FormatError if the memory lies in a file that was changed since it was mapped.
  void check(const void* data);

 private:
  std::vector<const FileMapping*> checked_;
};

/// Pages of a mapped file, brought in at once and given up at the end: the process has them no
/// longer than it reads them.
class PageHold {
 public:
  /// `data` lies in a mapped file.
  PageHold(const char* data, std::size_t size);
  ~PageHold();
  PageHold(const PageHold&) = delete;
  PageHold& operator=(const PageHold&) = delete;

  /// Whether the pages are there. Not on Linux before 5.14, nor if the file has become shorter.
  bool isPresent() const { return present_; }

 private:
  void* first_;
  std::size_t size_;
  bool present_;
};

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_FILE_MAPPING_H_
