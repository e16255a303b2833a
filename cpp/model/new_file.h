// Files that appear under their names when they are complete.
#ifndef PASSLIB_MODEL_NEW_FILE_H_
#define PASSLIB_MODEL_NEW_FILE_H_

#include <string>

#include "onnx/wire/output.h"

namespace passlib::model {

/// A file under another name, which gets its own when it is complete.
class NewFile {
 public:
  /// Throws std::system_error; FormatError if there is something other than a file.
  explicit NewFile(const std::string& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(const onnx::Pieces& content);

  /// Replaces the file of its name.
  void replace();

  /// Puts the file in place unless there is another one now. Until `keep`, it is deleted at the
  /// end.
  void add();
  void keep() { is_added_ = false; }

  /// Its own name, without links: the file that they lead to is replaced.
  const std::string& target() const { return target_; }

 private:
  std::string target_;
  std::string partial_;
  int file_ = -1;
  bool is_added_ = false;
};

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_NEW_FILE_H_
