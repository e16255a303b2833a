// Where the weights of a model go as it is saved: into the model, or into files next to it.
#ifndef PASSLIB_MODEL_DATA_FILES_H_
#define PASSLIB_MODEL_DATA_FILES_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "library/file_mapping.h"
#include "onnx/wire/output.h"
#include "onnx/wire/splices.h"
#include "onnx/writing/variables.h"

namespace passlib::model {

/// An initializer of the main graph whose elements are not in the message.
struct WeightAside {
  onnx::Payload elements;
  onnx::External external = onnx::External::kNo;
};

/// Where weights go, if not where they were.
struct Placement {
  bool external = false;      ///< larger weights go to a data file; else all are in the model
  std::string location;       ///< of the file, from the model's folder; empty for a free name
  std::size_t threshold = 0;  ///< the bytes of the smallest weight that goes there
};

/// A model before it is saved.
struct Unplaced {
  onnx::Bytes message;
  std::map<std::size_t, WeightAside> weights;  ///< by number of the initializer
  /// Returns the file at a location, of which null is an empty one; nothing if it is gone and not
  /// needed. Throws FormatError.
  std::function<std::optional<std::shared_ptr<const FileMapping>>(const std::string& location,
                                                                  bool needed)>
      file;
  /// Returns the data that is held in memory in place of a file. Null if it is in files.
  std::function<onnx::Bytes(const std::string& location)> held;
  /// How many of the initializers that passes see as arrays each file of the original has.
  std::map<std::string, std::size_t> users;
  std::string path;      ///< of the saved model
  std::size_t most = 0;  ///< bytes in the model
  std::optional<Placement> placement;
};

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

/// A model, and the files that are to be written with it.
struct Placed {
  onnx::Pieces content;  ///< refers to the message
  bool moved = false;    ///< some data has another place than before
  std::vector<DataFile> files;
  std::vector<KeptFile> kept;
  /// Where the original has the data of tensors other than `weights`.
  std::vector<std::string> elsewhere;
  std::deque<std::string> elements;  ///< to which the contents refer
};

/// The beginning of the locations of data that is held, and that was in a file before.
constexpr const char* kHeldOfFile = "file/";

/// Places the data of a model. Without a placement it stays where it was, as far as possible: files
/// that are still needed as they are are kept, or copied into the folder of the path; of the others
/// new ones are written, under new names where names are taken. If the model had more than the most
/// bytes, its larger weights go to another file. With a placement, values of attributes move only
/// if they are in a data file; strings, and parts of larger tensors, stay in the model. Throws
/// FormatError, and UnsupportedError if the model has more bytes.
Placed placeData(const Unplaced& model);

/// Writes pieces to a file, which may share the blocks of the mapped files that they refer to.
/// Throws std::system_error.
void writeSharing(const onnx::Pieces& pieces, int file);

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_DATA_FILES_H_
