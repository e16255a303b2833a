// Files of models, as they were read.
#ifndef PASSLIB_MODEL_FILE_H_
#define PASSLIB_MODEL_FILE_H_

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "facts/facts.h"
#include "graph/source.h"
#include "library/file_mapping.h"
#include "model/array.h"
#include "model/folder.h"
#include "onnx/original/originals.h"
#include "onnx/reading/model.h"

namespace passlib::model {

/// An ONNX file. Nothing in it changes; threads may share one.
class File {
 public:
  /// Maps and reads a file. Throws std::system_error, FormatError, GraphError, UnsupportedError.
  static std::shared_ptr<File> open(const std::string& path);
  /// Reads a copy of bytes.
  static std::shared_ptr<File> of(std::string bytes);
  /// The same for a part of another file, or a changed one, whose data files it has.
  static std::shared_ptr<File> of(std::string bytes, const File& like);

  onnx::Bytes bytes() const { return bytes_; }
  /// The bytes of the file, and of those with data of it that were mapped.
  std::size_t size() const { return bytes_.size() + (folder_ == nullptr ? 0 : folder_->size()); }
  const onnx::Model& read() const { return read_; }
  /// The versions of its operator sets by domain; of several the last.
  const facts::Opsets& opsets() const { return opsets_; }
  const std::shared_ptr<GraphSource>& graph() const { return graph_; }
  /// The constants of the main graph that passes see as arrays.
  const Arrays& arrays() const { return arrays_; }
  /// Whether the model has local functions.
  bool hasFunctions() const;
  /// Throws FormatError if the file, or one with data of it, was changed since it was mapped.
  void check() const {
    if (mapping_ != nullptr) mapping_->check();
    if (folder_ != nullptr) folder_->check();
  }
  /// The folder of the file; null if the model was read from memory.
  Folder* folder() const { return folder_.get(); }
  /// How many of the initializers that passes see as arrays each file next to this one has, by
  /// plain location.
  const std::map<std::string, std::size_t>& users() const { return users_; }
  /// The messages of the file by the identifiers of nodes, found when they are first asked for.
  std::shared_ptr<const onnx::Originals> originals() const;

 private:
  File() = default;
  static std::shared_ptr<File> finish(std::shared_ptr<File> file, const File* like);

  std::shared_ptr<Folder> folder_;
  std::map<std::string, std::size_t> users_;
  std::shared_ptr<const FileMapping> mapping_;  ///< or null
  std::shared_ptr<const std::string> memory_;   ///< in place of the mapping
  onnx::Bytes bytes_;
  onnx::Model read_;
  facts::Opsets opsets_;
  std::shared_ptr<GraphSource> graph_;
  Arrays arrays_;
  mutable std::once_flag once_;
  mutable std::shared_ptr<const onnx::Originals> originals_;
};

}  // namespace passlib::model

#endif  // PASSLIB_MODEL_FILE_H_
