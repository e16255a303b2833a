// Operators of libraries: arity, shapes, types and storage types.
#ifndef PASSLIB_LIBRARY_OPERATORS_CUSTOM_OP_H_
#define PASSLIB_LIBRARY_OPERATORS_CUSTOM_OP_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "library/library.h"
#include "library/operators/shapes.h"

namespace passlib {

using Attributes = std::map<std::string, std::string>;

/// One item for each input, one for each output.
using ShapeAnswer = std::pair<std::vector<Extents>, std::vector<Extents>>;
using NumberAnswer = std::pair<std::vector<int>, std::vector<int>>;

/// An operator of a library. Calls throw OperatorError if the operator fails or returns something
/// impossible; `node` is the node's name for the message and may be empty. They need no GIL.
class CustomOp {
 public:
  CustomOp(std::shared_ptr<Library> library, std::size_t index);

  const Library::Operator& functions() const { return library_->operators()[index_]; }
  const std::shared_ptr<Library>& library() const { return library_; }

  /// Numbers of inputs and outputs.
  std::pair<int, int> arity(const Attributes& attributes, const std::string& node) const;
  /// Positions of the inputs that the operator writes to, of `num_inputs`; ascending.
  std::vector<int> mutatedInputs(const Attributes& attributes, int num_inputs,
                                 const std::string& node) const;
  ShapeAnswer inferShapes(const Attributes& attributes, const std::vector<Extents>& inputs,
                          int num_outputs, const std::string& node) const;
  /// dtype codes, -1 for unknown.
  NumberAnswer inferTypes(const Attributes& attributes, std::vector<int> inputs, int num_outputs,
                          const std::string& node) const;
  /// Storage types of the outputs. An operator without inferSType takes and returns dense arrays.
  std::vector<int> inferStorage(const Attributes& attributes, std::vector<int> inputs,
                                int num_outputs, const std::string& node) const;

  /// Throws OperatorError: "operator 'x' of library 'y' (node 'z') <what>".
  [[noreturn]] void fail(const std::string& what, const std::string& node,
                         std::vector<std::string> messages = {}) const;
  /// Returns the same text without throwing.
  std::string described(const std::string& what, const std::string& node) const;

 private:
  template <typename Body>
  void call(const char* what, const std::string& node, Body body) const;

  std::shared_ptr<Library> library_;
  std::size_t index_;
};

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_OPERATORS_CUSTOM_OP_H_
