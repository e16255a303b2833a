// An ONNX file that was read, for the bindings.
#ifndef PASSLIB_BINDINGS_FILES_ONNX_FILE_H_
#define PASSLIB_BINDINGS_FILES_ONNX_FILE_H_

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "bindings/arrays.h"
#include "bindings/calls/exit_gate.h"
#include "errors.h"
#include "graph/source.h"
#include "library/file_mapping.h"
#include "onnx/original/originals.h"
#include "onnx/reading/model.h"

namespace passlib {

/// The memory of an object of Python, such as bytes or a mapped file.
class Memory {
 public:
  /// Throws FormatError if the memory is that of a file which was changed since it was mapped.
  explicit Memory(const pybind11::buffer& owner) : info_(owner.request()) { check(); }
  /// The same.
  void check() const { FileChecks().check(info_.ptr); }
  onnx::Bytes bytes() const {
    return onnx::Bytes(static_cast<const char*>(info_.ptr),
                       static_cast<std::size_t>(info_.size * info_.itemsize));
  }

 private:
  pybind11::buffer_info info_;
};

/// Calls a function on a message without the GIL. A damaged one is a FormatError.
template <typename Function>
auto withoutGil(onnx::Bytes message, const Function& function) {
  const ReleasedGil released;
  try {
    return function(message);
  } catch (const onnx::WireError& error) {
    throw FormatError(error.what(), static_cast<std::size_t>(error.at - message.data()));
  }
}

/// A file as read. The arrays that it makes refer to its memory, and keep it alive.
struct OnnxFile {
  explicit OnnxFile(const pybind11::buffer& owner) : memory(owner) {
    const ReleasedGil released;
    model = onnx::readModel(memory.bytes());
    graph = std::make_shared<GraphSource>(std::move(model.graph));
  }

  /// Its messages by the identifiers of nodes, found when they are first asked for. With the GIL.
  const std::shared_ptr<const onnx::Originals>& originals() {
    memory.check();
    if (originals_ == nullptr) {
      originals_ = std::make_shared<const onnx::Originals>(memory.bytes(), model, graph->get());
    }
    return originals_;
  }

  /// Notes the data of a constant of a nested graph that is in another file.
  void addElsewhere(const onnx::Constant& constant, const pybind11::array& array) {
    const onnx::Bytes data(static_cast<const char*>(array.data()),
                           static_cast<std::size_t>(array.nbytes()));
    model.elsewhere[constant.message.data()] = {data, ownerOf(array)};
  }

  Memory memory;
  onnx::Model model;
  std::shared_ptr<GraphSource> graph;
  /// How many of the initializers that passes see as arrays each file next to this one has, by
  /// plain location. Set with the arrays.
  std::map<std::string, std::size_t> users;

 private:
  std::shared_ptr<const onnx::Originals> originals_;
};

}  // namespace passlib

#endif  // PASSLIB_BINDINGS_FILES_ONNX_FILE_H_
