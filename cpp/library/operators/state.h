// States of stateful operators.
#ifndef PASSLIB_LIBRARY_OPERATORS_STATE_H_
#define PASSLIB_LIBRARY_OPERATORS_STATE_H_

#include <string>
#include <vector>

#include "library/operators/custom_op.h"

namespace passlib {

/// The state of a stateful operator for one node. Destroyed by the library, if its ABI can.
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
  /// Whether it was created through CustomStatefulOp::create, or declares that this does not
  /// matter; MXNet warns otherwise, since the library will `delete` it. True if that cannot be
  /// determined.
  bool madeByCreate() const;

 private:
  CustomOp op_;
  void* handle_ = nullptr;
};

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_OPERATORS_STATE_H_
