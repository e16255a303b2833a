#include "library/operators/state.h"

#include <cstdint>
#include <cstring>

#include "library/calls/call.h"
#include "library/text_columns.h"

namespace passlib {

OperatorState::OperatorState(const CustomOp& op, const Attributes& attributes,
                             const std::vector<Extents>& shapes, const std::vector<int>& types,
                             const std::string& node)
    : op_(op) {
  const auto create = op_.functions().create_state.find(Library::kDevice);
  if (create == op_.functions().create_state.end()) op_.fail("has no state on the cpu", node);
  const TextColumns columns(attributes);
  ShapeColumns given(shapes);
  Library& library = *op_.library();
  const Library::OperatorCalls& calls = library.operatorCalls();
  CallOutcome outcome = callLibrary(library, [&]() {
    if (calls.create_state == nullptr) {
      return calls.create_state_before_10(create->second, columns.keys(), columns.values(),
                                          columns.count(), &handle_);
    }
    return calls.create_state(create->second, columns.keys(), columns.values(), columns.count(),
                              Library::kDevice, 0, given.shapes(), given.dims(), given.count(),
                              types.data(), &handle_);
  });
  if (!outcome.succeeded()) {
    handle_ = nullptr;
    op_.fail(describeFailure("failed to make its state", outcome), node, outcome.messages);
  }
  if (handle_ == nullptr) op_.fail("made no state, though it reported success", node);
}

OperatorState::~OperatorState() {
  const auto destroy = op_.library()->operatorCalls().destroy_state;
  if (handle_ != nullptr && destroy != nullptr) op_.library()->state().destroy(handle_, destroy);
}

bool OperatorState::madeByCreate() const {
  // The only C++ object whose layout MXNet's host relies on: a vtable pointer, then two bools,
  // ignore_warn and created. A library in C may return another kind of handle.
  constexpr std::size_t kIgnoreWarn = sizeof(void*);
  constexpr std::size_t kCreated = kIgnoreWarn + 1;
  const bool is_object = op_.library()->abiVersion() >= 11 &&
                         reinterpret_cast<std::uintptr_t>(handle_) % alignof(void*) == 0;
  if (!is_object) return true;
  unsigned char head[2 * sizeof(void*)];
  std::memcpy(head, handle_, sizeof(head));
  return head[kIgnoreWarn] != 0 || head[kCreated] != 0;
}

}  // namespace passlib
