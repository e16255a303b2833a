#include "library/operators/compute.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "library/calls/call.h"
#include "library/operators/resources.h"
#include "library/text_columns.h"

namespace passlib {
namespace {

/// Arrays by column, as the entry points take them.
struct Columns {
  std::vector<const int64_t*> shapes;
  std::vector<int> dims;
  std::vector<void*> data;
  std::vector<int> types;
  std::vector<size_t> ids;
  std::vector<const char*> device_types;
  std::vector<int> device_ids;
  std::vector<int> storage;
  std::vector<void*> indices;
  std::vector<void*> indptr;
  std::vector<int64_t> num_indices;
  std::vector<int64_t> num_indptr;

  void add(const std::vector<int64_t>& shape, void* memory, int dtype, int kind) {
    // Operators may cache results by array id. The host does not know whether an array was written
    // to since its last use, so every use gets a new id.
    static std::atomic<size_t> last_id{0};
    shapes.push_back(shape.data());
    dims.push_back(static_cast<int>(shape.size()));
    data.push_back(memory);
    types.push_back(dtype);
    ids.push_back(++last_id);
    device_types.push_back(Library::kDevice);
    device_ids.push_back(0);
    storage.push_back(kind);
    indices.push_back(nullptr);
    indptr.push_back(nullptr);
    num_indices.push_back(0);
    num_indptr.push_back(0);
  }
  int count() const { return static_cast<int>(dims.size()); }
};

/// Copies of inputs, from which they are restored after a failed call.
class Copies {
 public:
  /// Copies the inputs that the operator may write to, or all to check for writes.
  Copies(std::vector<InputArray>* inputs, bool all) {
    for (std::size_t i = 0; i < inputs->size(); ++i) {
      InputArray& input = (*inputs)[i];
      if (!input.mutated && !all) continue;
      const auto bytes = [](int64_t count) {
        return static_cast<std::size_t>(count) * sizeof(int64_t);
      };
      add(i, input.mutated, input.data, input.bytes);
      add(i, input.mutated, input.indices, bytes(input.num_indices));
      add(i, input.mutated, input.indptr, bytes(input.num_indptr));
    }
  }

  void restore() const {
    for (const Copy& copy : copies_) {
      // Unchanged memory may be read-only.
      if (changed(copy)) std::memcpy(copy.place, copy.content.get(), copy.bytes);
    }
  }

  /// The first input that was written to without being declared as mutated; -1 if there is none.
  int firstWronglyChanged() const {
    for (const Copy& copy : copies_) {
      if (!copy.may_change && changed(copy)) return static_cast<int>(copy.input);
    }
    return -1;
  }

 private:
  struct Copy {
    std::size_t input;
    bool may_change;
    void* place;
    std::size_t bytes;
    std::unique_ptr<unsigned char[]> content;
  };

  void add(std::size_t input, bool may_change, void* place, std::size_t bytes) {
    if (place == nullptr || bytes == 0) return;
    std::unique_ptr<unsigned char[]> content(new unsigned char[bytes]);
    std::memcpy(content.get(), place, bytes);
    copies_.push_back(Copy{input, may_change, place, bytes, std::move(content)});
  }

  static bool changed(const Copy& copy) {
    return std::memcmp(copy.place, copy.content.get(), copy.bytes) != 0;
  }

  std::vector<Copy> copies_;
};

std::string describeOverrun(const Buffer& buffer, const std::string& what) {
  if (buffer.data() == nullptr) return "";
  if (const std::size_t bytes = buffer.overrun()) {
    return "wrote up to " + std::to_string(bytes) + " bytes past the end of " + what;
  }
  if (const std::size_t bytes = buffer.underrun()) {
    return "wrote up to " + std::to_string(bytes) + " bytes before the beginning of " + what;
  }
  return "";
}

/// Describes an operator's writes to memory that is not its own; "" if there are none. Needs
/// guards.
std::string describeDamage(const ComputeCall& call, const Resources& resources,
                           const Copies& copies) {
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    const OutputArray& output = call.outputs[i];
    const std::string which = "its output " + std::to_string(i);
    for (const auto& [buffer, part] : {std::pair(&output.data, std::string()),
                                       std::pair(&output.indices, std::string("the indices of ")),
                                       std::pair(&output.indptr, std::string("the indptr of "))}) {
      const std::string damage = describeOverrun(
          *buffer, part + which + " of " + std::to_string(buffer->size()) + " bytes");
      if (!damage.empty()) return damage;
    }
  }
  for (const Buffer& buffer : resources.scratch()) {
    const std::string damage = describeOverrun(
        buffer, "memory of " + std::to_string(buffer.size()) + " bytes that it had requested");
    if (!damage.empty()) return damage;
  }
  const int input = copies.firstWronglyChanged();
  if (input < 0) return "";
  return "wrote to its input " + std::to_string(input) +
         ", which setMutateInputs does not name where it is registered";
}

Columns inputColumns(const std::vector<InputArray>& inputs) {
  Columns columns;
  for (const InputArray& input : inputs) {
    columns.add(input.shape, input.data, input.dtype, input.storage);
    columns.indices.back() = input.indices;
    columns.indptr.back() = input.indptr;
    columns.num_indices.back() = input.num_indices;
    columns.num_indptr.back() = input.num_indptr;
  }
  return columns;
}

/// Allocates dense outputs; operators request the memory of sparse ones.
Columns outputColumns(const CustomOp& op, ComputeCall* call) {
  Columns columns;
  for (std::size_t i = 0; i < call->outputs.size(); ++i) {
    OutputArray& output = call->outputs[i];
    if (output.place == nullptr && output.storage == mxnet::ext::kDefaultStorage) {
      try {
        allocateDenseOutput(&output, call->check_memory);
      } catch (const std::bad_alloc&) {
        op.fail("needs more memory for its output " + std::to_string(i) + " than the system has",
                call->node);
      }
    }
    void* memory = output.place == nullptr ? output.data.data() : output.place;
    columns.add(output.shape, memory, output.dtype, output.storage);
  }
  return columns;
}

/// `enter` calls the entry point with its own arguments, followed by those given to it.
template <typename Enter>
void run(const CustomOp& op, ComputeCall* call, Enter enter) {
  Library& library = *op.library();
  Resources resources(&call->outputs, call->check_memory);
  Columns in = inputColumns(call->inputs);
  Columns out = outputColumns(op, call);
  const Copies copies(&call->inputs, call->check_memory);
  CallOutcome outcome = callLibrary(library, [&]() {
    return enter(in.shapes.data(), in.dims.data(), in.data.data(), in.types.data(), in.ids.data(),
                 in.device_types.data(), in.device_ids.data(), in.count(), out.shapes.data(),
                 out.dims.data(), out.data.data(), out.types.data(), out.ids.data(),
                 out.device_types.data(), out.device_ids.data(), out.count(), &Resources::allocate,
                 &resources, &Resources::allocateOnGpu, &resources, nullptr,
                 &Resources::allocateSparse, &resources, in.storage.data(), out.storage.data(),
                 in.indices.data(), out.indices.data(), in.indptr.data(), out.indptr.data(),
                 in.num_indices.data(), out.num_indices.data(), in.num_indptr.data(),
                 out.num_indptr.data(), resources.random().states(), nullptr);
  });
  const std::string damage =
      call->check_memory ? describeDamage(*call, resources, copies) : std::string();
  if (outcome.succeeded() && resources.refusal().empty() && damage.empty()) {
    for (OutputArray& output : call->outputs) {
      if (output.data.data() != nullptr || output.place != nullptr) continue;
      allocateSparseOutput(&output, 0, call->check_memory);
    }
    return;
  }
  copies.restore();
  if (!damage.empty()) op.fail(damage, call->node, outcome.messages);
  const std::string failed = call->is_forward ? "failed in forward" : "failed in backward";
  op.fail(describeFailure(failed, outcome, resources.refusal()), call->node, outcome.messages);
}

}  // namespace

void compute(const CustomOp& op, const Attributes& attributes, ComputeCall* call) {
  const Library::Operator& functions = op.functions();
  const auto& table = call->is_forward ? functions.forward : functions.backward;
  const auto body = table.find(Library::kDevice);
  if (body == table.end()) {
    op.fail(std::string("has no ") + (call->is_forward ? "forward" : "backward") +
                " function for the cpu",
            call->node);
  }
  const TextColumns columns(attributes);
  run(op, call, [&](auto... arguments) {
    return op.library()->operatorCalls().compute(body->second, columns.keys(), columns.values(),
                                                 columns.count(), arguments...);
  });
}

void compute(const OperatorState& state, ComputeCall* call) {
  const CustomOp& op = state.op();
  run(op, call, [&](auto... arguments) {
    return op.library()->operatorCalls().compute_stateful(call->is_forward ? 1 : 0, state.handle(),
                                                          arguments...);
  });
}

}  // namespace passlib
