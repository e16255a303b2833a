// Operators of libraries: what they answer about arity, shapes, types and storage; their states.
#ifndef PASSLIB_CUSTOM_OP_H_
#define PASSLIB_CUSTOM_OP_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "library.h"

namespace passlib {

using Attributes = std::map<std::string, std::string>;

/// Attributes as the entry points take them. The map must outlive it.
class AttributeColumns {
 public:
  explicit AttributeColumns(const Attributes& attributes);
  const char* const* keys() const { return keys_.data(); }
  const char* const* values() const { return values_.data(); }
  int count() const { return static_cast<int>(keys_.size()); }

 private:
  std::vector<const char*> keys_;
  std::vector<const char*> values_;
};

/// Sizes as the ABI has them. No sizes: unknown rank, or a scalar.
using Extents = std::vector<unsigned int>;
/// A size that nobody knows yet, in both directions.
constexpr unsigned int kUnknownExtent = 0xFFFFFFFFU;

/// One for each input, one for each output.
using ShapeAnswer = std::pair<std::vector<Extents>, std::vector<Extents>>;
using NumberAnswer = std::pair<std::vector<int>, std::vector<int>>;

/// An operator of a library. Calls throw OperatorError where the operator fails or answers what
/// cannot be; `node` names the node in it and may be empty. They need no GIL.
class CustomOp {
 public:
  CustomOp(std::shared_ptr<Library> library, std::size_t index);

  const Library::Operator& functions() const { return library_->operators()[index_]; }
  const std::shared_ptr<Library>& library() const { return library_; }

  /// Numbers of inputs and outputs.
  std::pair<int, int> arity(const Attributes& attributes, const std::string& node) const;
  /// Positions of the inputs that the operator writes to, of `num_inputs`; rising.
  std::vector<int> mutatedInputs(const Attributes& attributes, int num_inputs,
                                 const std::string& node) const;
  ShapeAnswer inferShapes(const Attributes& attributes, const std::vector<Extents>& inputs,
                          int num_outputs, const std::string& node) const;
  /// dtype codes; -1 is unknown.
  NumberAnswer inferTypes(const Attributes& attributes, std::vector<int> inputs, int num_outputs,
                          const std::string& node) const;
  /// Storage types of the outputs. Without a function for it dense ones, for dense inputs only.
  std::vector<int> inferStorage(const Attributes& attributes, std::vector<int> inputs,
                                int num_outputs, const std::string& node) const;

  /// Throws an OperatorError: "operator 'x' of library 'y' (node 'z') <what>".
  [[noreturn]] void fail(const std::string& what, const std::string& node,
                         std::vector<std::string> messages = {}) const;
  /// The same words without throwing.
  std::string described(const std::string& what, const std::string& node) const;

 private:
  template <typename Body>
  void call(const char* what, const std::string& node, Body body) const;

  std::shared_ptr<Library> library_;
  std::size_t index_;
};

/// What a stateful operator made for one node. The library destroys it, if it knows how to.
class OperatorState {
 public:
  OperatorState(const CustomOp& op, const Attributes& attributes,
                const std::vector<Extents>& shapes, const std::vector<int>& types,
                const std::string& node);
  ~OperatorState();
  OperatorState(const OperatorState&) = delete;
  OperatorState& operator=(const OperatorState&) = delete;

  const CustomOp& op() const { return op_; }
  void* handle() const { return handle_; }
  /// Whether it was made through CustomStatefulOp::create, or says that this does not matter; MXNet
  /// warns otherwise, for the library will `delete` it. True where nobody can tell.
  bool madeByCreate() const;

 private:
  CustomOp op_;
  void* handle_ = nullptr;
};

}  // namespace passlib

#endif  // PASSLIB_CUSTOM_OP_H_
