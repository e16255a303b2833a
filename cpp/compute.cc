#include "compute.h"

#include <atomic>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>

#include "library_call.h"
#include "random_states.h"

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
    // An operator may keep results for arrays of the same id. Nobody tells the host whether an
    // array was written to since, so that every use gets an id of its own.
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

std::size_t countBytes(int dtype, const std::vector<int64_t>& shape) {
  const auto bytes = arrayBytes(elementSize(dtype), shape.data(), static_cast<int>(shape.size()));
  if (!bytes) throw std::bad_alloc();
  return *bytes;
}

/// Serves what an operator asks for during a call. A request that cannot be served is thrown, as
/// MXNet does: libraries do not look for null. It also makes the call fail, should a library
/// swallow it.
class Resources {
 public:
  Resources(std::vector<OutputArray>* outputs, bool guarded)
      : outputs_(*outputs), guarded_(guarded) {}

  static void* allocate(void* self, int size) {
    return static_cast<Resources*>(self)->allocateScratch(size);
  }
  static void* allocateOnGpu(void* /*self*/, int /*size*/) { return nullptr; }
  static void allocateSparse(void* self, int index, int num_indices, int num_indptr, void** data,
                             int64_t** indices, int64_t** indptr) {
    OutputArray& output =
        static_cast<Resources*>(self)->sparseOutput(index, num_indices, num_indptr);
    *data = output.data.data();
    *indices = static_cast<int64_t*>(output.indices.data());
    if (num_indptr > 0) *indptr = static_cast<int64_t*>(output.indptr.data());
  }

  RandomLease& random() { return random_; }
  const std::string& refusal() const { return refusal_; }
  const std::deque<Buffer>& scratch() const { return scratch_; }

 private:
  [[noreturn]] void refuse(const std::string& why) {
    if (refusal_.empty()) refusal_ = why;
    throw std::runtime_error(why);
  }

  void* allocateScratch(int size) {
    if (size < 0) {
      refuse("it asks for " + std::to_string(size) +
             " bytes of memory; sizes are of type int and may have overflowed");
    }
    try {
      scratch_.emplace_back(static_cast<std::size_t>(size), guarded_);
    } catch (const std::bad_alloc&) {
      refuse("it asks for " + std::to_string(size) +
             " bytes of memory, which the system does not have");
    }
    return scratch_.back().data();
  }

  OutputArray& sparseOutput(int index, int num_indices, int num_indptr) {
    const std::string what = "it asks for memory of its output " + std::to_string(index);
    if (index < 0 || static_cast<std::size_t>(index) >= outputs_.size()) {
      refuse(what + "; it has " + std::to_string(outputs_.size()) + ", counted from 0");
    }
    OutputArray& output = outputs_[static_cast<std::size_t>(index)];
    if (output.storage == mxnet::ext::kDefaultStorage) refuse(what + ", which is dense");
    const bool csr = output.storage == mxnet::ext::kCSRStorage;
    const int64_t rows = output.shape[0];
    if (num_indices < 0 || (!csr && num_indices > rows)) {
      refuse(what + " for " + std::to_string(num_indices) + (csr ? " values" : " rows of ") +
             (csr ? "" : std::to_string(rows)));
    }
    if (num_indptr != (csr ? rows + 1 : 0)) {
      refuse(
          what + " with indptr of " + std::to_string(num_indptr) + " elements; " +
          (csr ? "a csr matrix of " + std::to_string(rows) + " rows has " + std::to_string(rows + 1)
               : std::string("row_sparse arrays have none")));
    }
    // What an earlier request got stays until the call ends.
    for (Buffer* buffer : {&output.data, &output.indices, &output.indptr}) {
      if (buffer->data() != nullptr) scratch_.push_back(std::move(*buffer));
    }
    try {
      prepareSparse(&output, num_indices, guarded_);
    } catch (const std::bad_alloc&) {
      refuse(what + " for " + std::to_string(num_indices) +
             " values, for which the system has no memory");
    }
    return output;
  }

 public:
  /// Gives a sparse output memory for so many rows, or values if it is csr.
  static void prepareSparse(OutputArray* output, int64_t count, bool guarded) {
    constexpr std::size_t kIndexBytes = sizeof(int64_t);
    const bool csr = output->storage == mxnet::ext::kCSRStorage;
    output->stored_shape = csr ? std::vector<int64_t>{count} : output->shape;
    output->stored_shape[0] = count;
    output->data = Buffer(countBytes(output->dtype, output->stored_shape), guarded);
    output->indices = Buffer(static_cast<std::size_t>(count) * kIndexBytes, guarded);
    output->num_indices = count;
    output->num_indptr = csr ? output->shape[0] + 1 : 0;
    output->indptr = Buffer(static_cast<std::size_t>(output->num_indptr) * kIndexBytes, guarded);
  }

 private:
  std::vector<OutputArray>& outputs_;
  bool guarded_;
  std::deque<Buffer> scratch_;
  std::string refusal_;
  RandomLease random_;
};

/// Copies of inputs, from which they get back what they held before a call.
class Copies {
 public:
  /// Copies what the operator may write to; all of them where it is to be checked.
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
      // Not where nothing changed: the memory may be read-only.
      if (changed(copy)) std::memcpy(copy.place, copy.content.get(), copy.bytes);
    }
  }

  /// The first input that was written to though nobody had said so; -1 if there is none.
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

/// What an operator wrote where it must not; "" if nothing. Only where memory is guarded.
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
        buffer, "memory of " + std::to_string(buffer.size()) + " bytes that it had asked for");
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

/// Makes the memory of dense outputs; that of sparse ones is asked for by the operator.
Columns outputColumns(std::vector<OutputArray>* outputs, bool guarded) {
  Columns columns;
  for (OutputArray& output : *outputs) {
    if (output.storage == mxnet::ext::kDefaultStorage) {
      output.stored_shape = output.shape;
      output.data = Buffer(countBytes(output.dtype, output.shape), guarded);
    }
    columns.add(output.shape, output.data.data(), output.dtype, output.storage);
  }
  return columns;
}

/// `enter` calls the entry point with its own arguments first and the ones given after them.
template <typename Enter>
void run(const CustomOp& op, ComputeCall* call, Enter enter) {
  Library& library = *op.library();
  const std::lock_guard<std::recursive_mutex> lock(library.mutex());
  Resources resources(&call->outputs, call->check_memory);
  Columns in = inputColumns(call->inputs);
  Columns out = outputColumns(&call->outputs, call->check_memory);
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
      const bool asked = output.data.data() != nullptr;
      if (!asked) Resources::prepareSparse(&output, 0, call->check_memory);
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
  const AttributeColumns columns(attributes);
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
