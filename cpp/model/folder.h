// The files next to a model that have data of its tensors.
#ifndef PASSLIB_MODEL_FOLDER_H_
#define PASSLIB_MODEL_FOLDER_H_

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "library/file_mapping.h"
#include "model/array.h"
#include "onnx/external/places.h"
#include "onnx/parts/tensor.h"
#include "onnx/reading/model.h"

namespace passlib::model {

/// A regular file in memory; null if it is empty. Throws std::system_error, FormatError.
std::shared_ptr<const FileMapping> mapFile(const std::string& path);

/// The part of a path before the name; "." if there is none.
std::string folderOf(const std::string& path);

/// Returns the real path of a data file, which must be inside the folder. `what`: for messages.
/// Throws FormatError.
std::string resolveData(const std::string& folder, const std::string& location,
                        const std::string& what);

/// The data of a tensor in a file, of which null is an empty one: its elements, or what its place
/// says if their size is not known. Throws FormatError, whose message begins with `what`, if the
/// place does not fit the file or the tensor.
onnx::Bytes dataIn(const FileMapping* file, const onnx::Tensor& tensor,
                   const onnx::DataPlace& place, const std::string& what);

/// A folder, each data file of which is mapped once. In any thread.
class Folder {
 public:
  explicit Folder(std::string path) : path_(std::move(path)) {}

  /// Maps the file at a location; see resolveData. Throws FormatError, std::system_error.
  std::shared_ptr<const FileMapping> file(const std::string& location, const std::string& what);

  /// Maps the data of a constant that is in another file. Nothing for element types that passes do
  /// not see. Throws FormatError if the place is not allowed, or does not fit the tensor.
  std::optional<Array> array(const onnx::Constant& constant);

  /// The bytes of the files that were mapped.
  std::size_t size();

  /// Throws FormatError if a file was changed since it was mapped.
  void check();

 private:
  std::string path_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const FileMapping>> files_;  ///< by real path
};

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_FOLDER_H_
