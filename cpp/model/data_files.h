// Where the weights of a model go that lie in files next to it, as it is saved.
#ifndef PASSLIB_MODEL_DATA_FILES_H_
#define PASSLIB_MODEL_DATA_FILES_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "library/file_mapping.h"
#include "model/model.h"
#include "onnx/external/relocation.h"
#include "onnx/writing/model.h"

namespace passlib::model {

/// A new file next to a model.
struct DataFile {
  std::string path;
  onnx::Pieces content;
};

/// A file that the model leads to as before.
struct KeptFile {
  std::string path;
  std::shared_ptr<const FileMapping> mapping;  ///< null if it is empty
};

/// A model and the files that are to be written with it.
struct Placed {
  std::vector<DataFile> files;
  std::vector<KeptFile> kept;
  onnx::Relocation relocation;
};

/// Leaves weights where they were, as far as possible: files that are still needed as they are
/// are kept, or copied into the folder of `path`; of the others new ones are written, under new
/// names where names are taken. If the model had more than `most` bytes, its larger weights go to
/// another file. `message`: the model of the writer without the arrays that are aside. `given`: the
/// elements of these by number. Throws FormatError, std::system_error.
Placed placeData(const Model& model, const onnx::ModelWriter& writer, onnx::Bytes message,
                 const std::vector<onnx::Payload>& given, const std::string& path,
                 std::size_t most);

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_DATA_FILES_H_
