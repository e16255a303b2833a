#include "custom_op.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <set>

#include "errors.h"
#include "library_call.h"

namespace passlib {
namespace {

using mxnet::ext::detail::quoted;

/// More inputs or outputs than any graph has; a library's number must not make the host allocate.
constexpr int kMostArity = 1000000;
/// NumPy 1's limit; MXNet's arrays have fewer.
constexpr int kMostDims = 32;

/// Shapes that a library malloc'd: an array of arrays, and their lengths.
class GivenShapes {
 public:
  GivenShapes(const Library& library, int count) : library_(library), count_(count) {}
  ~GivenShapes() {
    if (!complete_) return;
    for (int i = 0; i < count_ && shapes_ != nullptr; ++i) library_.release(shapes_[i]);
    library_.release(shapes_);
    library_.release(dims_);
  }
  GivenShapes(const GivenShapes&) = delete;
  GivenShapes& operator=(const GivenShapes&) = delete;

  unsigned int*** shapes() { return &shapes_; }
  int** dims() { return &dims_; }
  /// The call succeeded: what there is belongs to this. After a failure it may be half made.
  void complete() { complete_ = true; }

  /// Copies them, unless there is a problem already; says what is wrong with them in `problem`.
  std::vector<Extents> take(const char* kind, std::string* problem) const {
    std::vector<Extents> result(static_cast<std::size_t>(count_));
    if (!problem->empty()) return result;
    if (count_ > 0 && (shapes_ == nullptr || dims_ == nullptr)) {
      *problem = std::string("gives no shapes of its ") + kind + "s";
      return result;
    }
    for (int i = 0; i < count_ && problem->empty(); ++i) {
      const std::string which = std::string(kind) + " " + std::to_string(i);
      if (dims_[i] < 0 || dims_[i] > kMostDims) {
        *problem = "says that its " + which + " has " + std::to_string(dims_[i]) +
                   " dimensions; 0 to " + std::to_string(kMostDims) + " are possible";
      } else if (dims_[i] > 0 && shapes_[i] == nullptr) {
        *problem = "gives no shape of its " + which;
      } else if (dims_[i] > 0) {
        result[static_cast<std::size_t>(i)].assign(shapes_[i], shapes_[i] + dims_[i]);
      }
    }
    return result;
  }

 private:
  const Library& library_;
  int count_;
  unsigned int** shapes_ = nullptr;
  int* dims_ = nullptr;
  bool complete_ = false;
};

/// Shapes as the entry points take them. They may be written to: these are copies.
class ShapeColumns {
 public:
  explicit ShapeColumns(std::vector<Extents> shapes) : shapes_(std::move(shapes)) {
    for (Extents& shape : shapes_) {
      pointers_.push_back(shape.data());
      dims_.push_back(static_cast<int>(shape.size()));
    }
  }
  unsigned int** shapes() { return pointers_.data(); }
  int* dims() { return dims_.data(); }
  int count() const { return static_cast<int>(shapes_.size()); }

 private:
  std::vector<Extents> shapes_;
  std::vector<unsigned int*> pointers_;
  std::vector<int> dims_;
};

}  // namespace

AttributeColumns::AttributeColumns(const Attributes& attributes) {
  for (const auto& [key, value] : attributes) {
    keys_.push_back(key.c_str());
    values_.push_back(value.c_str());
  }
}

CustomOp::CustomOp(std::shared_ptr<Library> library, std::size_t index)
    : library_(std::move(library)), index_(index) {
  library_->operators().at(index_);
}

std::string CustomOp::described(const std::string& what, const std::string& node) const {
  std::string text =
      "operator " + quoted(functions().name) + " of library " + quoted(library_->path());
  if (!node.empty()) text += " (node " + quoted(node) + ")";
  return text + " " + what;
}

void CustomOp::fail(const std::string& what, const std::string& node,
                    std::vector<std::string> messages) const {
  throw OperatorError(described(what, node), std::move(messages), functions().name,
                      library_->path(), node);
}

template <typename Body>
void CustomOp::call(const char* what, const std::string& node, Body body) const {
  CallOutcome outcome = callLibrary(*library_, body);
  if (outcome.succeeded()) return;
  const std::string failed = std::string("failed to ") + what;
  fail(describeFailure(failed, outcome), node, outcome.messages);
}

std::pair<int, int> CustomOp::arity(const Attributes& attributes, const std::string& node) const {
  if (functions().parse == nullptr) {
    fail(
        "does not tell how many inputs and outputs it has; those of a subgraph operator are "
        "the ones of its subgraph",
        node);
  }
  const AttributeColumns columns(attributes);
  int inputs = 0;
  int outputs = 0;
  const std::lock_guard<std::recursive_mutex> lock(library_->mutex());
  call("parse its attributes", node, [&]() {
    return library_->operatorCalls().parse(functions().parse, columns.keys(), columns.values(),
                                           columns.count(), &inputs, &outputs);
  });
  if (inputs < 0 || inputs > kMostArity || outputs < 1 || outputs > kMostArity) {
    fail("says that it has " + std::to_string(inputs) + " inputs and " + std::to_string(outputs) +
             " outputs; 0 to " + std::to_string(kMostArity) + " inputs and at least one output " +
             "are possible",
         node);
  }
  return {inputs, outputs};
}

std::vector<int> CustomOp::mutatedInputs(const Attributes& attributes, int num_inputs,
                                         const std::string& node) const {
  if (functions().mutate == nullptr) return {};
  const AttributeColumns columns(attributes);
  int* positions = nullptr;
  int count = 0;
  const std::lock_guard<std::recursive_mutex> lock(library_->mutex());
  call("name the inputs that it writes to", node, [&]() {
    return library_->operatorCalls().mutate(functions().mutate, columns.keys(), columns.values(),
                                            columns.count(), &positions, &count);
  });
  const auto release = [this](int* memory) { library_->release(memory); };
  const std::unique_ptr<int, decltype(release)> owned(positions, release);
  // Every input may be named more than once, but a number beyond reason is no number of them.
  if (count < 0 || count > kMostArity || (count > 0 && positions == nullptr)) {
    fail("says that it writes to " + std::to_string(count) + " inputs", node);
  }
  std::set<int> found;
  for (int i = 0; i < count; ++i) {
    if (positions[i] < 0 || positions[i] >= num_inputs) {
      fail("says that it writes to its input " + std::to_string(positions[i]) + "; it has " +
               std::to_string(num_inputs) + ", counted from 0",
           node);
    }
    found.insert(positions[i]);
  }
  return {found.begin(), found.end()};
}

ShapeAnswer CustomOp::inferShapes(const Attributes& attributes, const std::vector<Extents>& inputs,
                                  int num_outputs, const std::string& node) const {
  if (functions().shape == nullptr) fail("has no function that infers shapes", node);
  const AttributeColumns columns(attributes);
  ShapeColumns given(inputs);
  const std::lock_guard<std::recursive_mutex> lock(library_->mutex());
  GivenShapes ins(*library_, given.count());
  GivenShapes outs(*library_, num_outputs);
  call("infer shapes", node, [&]() {
    return library_->operatorCalls().shape(functions().shape, columns.keys(), columns.values(),
                                           columns.count(), given.shapes(), given.dims(),
                                           given.count(), ins.shapes(), ins.dims(), outs.shapes(),
                                           outs.dims(), num_outputs);
  });
  ins.complete();
  outs.complete();
  std::string problem;
  ShapeAnswer answer{ins.take("input", &problem), outs.take("output", &problem)};
  if (!problem.empty()) fail(problem, node);
  return answer;
}

NumberAnswer CustomOp::inferTypes(const Attributes& attributes, std::vector<int> inputs,
                                  int num_outputs, const std::string& node) const {
  if (functions().type == nullptr) fail("has no function that infers types", node);
  const AttributeColumns columns(attributes);
  std::vector<int> outputs(static_cast<std::size_t>(num_outputs), -1);
  const std::lock_guard<std::recursive_mutex> lock(library_->mutex());
  call("infer types", node, [&]() {
    return library_->operatorCalls().type(
        functions().type, columns.keys(), columns.values(), columns.count(), inputs.data(),
        static_cast<int>(inputs.size()), outputs.data(), num_outputs);
  });
  return {std::move(inputs), std::move(outputs)};
}

std::vector<int> CustomOp::inferStorage(const Attributes& attributes, std::vector<int> inputs,
                                        int num_outputs, const std::string& node) const {
  std::vector<int> outputs(static_cast<std::size_t>(num_outputs), mxnet::ext::kDefaultStorage);
  if (functions().storage == nullptr) {
    const auto sparse = std::find_if(inputs.begin(), inputs.end(), [](int storage) {
      return storage != mxnet::ext::kDefaultStorage;
    });
    if (sparse != inputs.end()) {
      fail(
          "takes dense inputs only, for setInferSType was not called where it is registered; its "
          "input " +
              std::to_string(sparse - inputs.begin()) + " is sparse",
          node);
    }
    return outputs;
  }
  const std::vector<int> before = inputs;
  const AttributeColumns columns(attributes);
  outputs.assign(outputs.size(), -1);
  const std::lock_guard<std::recursive_mutex> lock(library_->mutex());
  call("infer storage types", node, [&]() {
    return library_->operatorCalls().storage(
        functions().storage, columns.keys(), columns.values(), columns.count(), inputs.data(),
        static_cast<int>(inputs.size()), outputs.data(), num_outputs);
  });
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == before[i]) continue;
    fail("wants storage type " + std::to_string(inputs[i]) + " for its input " + std::to_string(i) +
             ", which has storage type " + std::to_string(before[i]),
         node);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] >= mxnet::ext::kDefaultStorage && outputs[i] <= mxnet::ext::kCSRStorage) {
      continue;
    }
    fail("infers storage type " + std::to_string(outputs[i]) + " for its output " +
             std::to_string(i) + "; there are 0 (dense), 1 (row_sparse) and 2 (csr)",
         node);
  }
  return outputs;
}

OperatorState::OperatorState(const CustomOp& op, const Attributes& attributes,
                             const std::vector<Extents>& shapes, const std::vector<int>& types,
                             const std::string& node)
    : op_(op) {
  const auto create = op_.functions().create_state.find(Library::kDevice);
  if (create == op_.functions().create_state.end()) op_.fail("has no state on the cpu", node);
  const AttributeColumns columns(attributes);
  ShapeColumns given(shapes);
  Library& library = *op_.library();
  const Library::OperatorCalls& calls = library.operatorCalls();
  const std::lock_guard<std::recursive_mutex> lock(library.mutex());
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
  Library& library = *op_.library();
  if (handle_ == nullptr || library.operatorCalls().destroy_state == nullptr) return;
  const std::lock_guard<std::recursive_mutex> lock(library.mutex());
  callLibrary(library, [this, &library]() {
    library.operatorCalls().destroy_state(handle_);
    return static_cast<int>(mxnet::ext::MX_SUCCESS);
  });
}

bool OperatorState::madeByCreate() const {
  // The one C++ object that MXNet's host looks into: a pointer to its functions, then two bools,
  // ignore_warn and created. A library in C may give a handle of another kind.
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
