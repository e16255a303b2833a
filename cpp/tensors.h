// args and aux as the ABI wants them, and the allocator that a pass calls back.
#ifndef PASSLIB_TENSORS_H_
#define PASSLIB_TENSORS_H_

#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace passlib {

/// Parameters by column, as the entry points take them. Names and shapes are held here; data is
/// borrowed from the caller for the time of the call.
class ParamBlock {
 public:
  void add(std::string name, void* data, std::vector<int64_t> shape, int dtype);

  int count() const { return static_cast<int>(names_.size()); }
  const char* const* names() const { return names_.data(); }
  void* const* data() const { return data_.data(); }
  const int64_t* const* shapes() const { return shapes_.data(); }
  const int* dims() const { return dims_.data(); }
  const int* types() const { return types_.data(); }
  const size_t* ids() const { return ids_.data(); }
  const char* const* deviceTypes() const { return device_types_.data(); }
  const int* deviceIds() const { return device_ids_.data(); }

 private:
  std::deque<std::string> name_texts_;  // deques: what is pointed to must not move
  std::deque<std::vector<int64_t>> shape_lists_;
  std::vector<const char*> names_;
  std::vector<void*> data_;
  std::vector<const int64_t*> shapes_;
  std::vector<int> dims_;
  std::vector<int> types_;
  std::vector<size_t> ids_;
  std::vector<const char*> device_types_;
  std::vector<int> device_ids_;
};

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};

/// A parameter that a pass made.
struct NewParam {
  std::string name;
  std::vector<int64_t> shape;
  int dtype;
  bool is_arg;
  std::size_t bytes;
  std::unique_ptr<void, FreeMemory> data;
};

/// Serves a pass's alloc_arg and alloc_aux. What it must refuse it notes as an error; the call has
/// failed then, whatever the pass returns.
class Allocator {
 public:
  /// `accept_*`: whether the caller gave a dictionary that can take new parameters.
  Allocator(bool accept_args, bool accept_aux)
      : accept_args_(accept_args), accept_aux_(accept_aux) {}

  /// The nd_malloc of the ABI; `self` is an Allocator.
  static void allocate(const void* self, const int64_t* shape, int num_dims, const char* dev_type,
                       int dev_id, int dtype, const char* name, int is_arg, void** data);

  const std::string& error() const { return error_; }
  /// In the order in which they were made; of equal names only the last.
  std::vector<NewParam> take();

 private:
  void allocateOne(const int64_t* shape, int num_dims, const char* dev_type, int dtype,
                   const char* name, bool is_arg, void** data);

  bool accept_args_;
  bool accept_aux_;
  std::string error_;
  std::vector<NewParam> params_;
};

/// Cache line and widest vector register of today's machines.
constexpr std::size_t kMemoryAlignment = 64;

/// Bytes of one element, by MXNet's dtype code; 0 for an unknown one.
std::size_t elementSize(int dtype);

/// Bytes of an array with elements of this size; nothing where memory has not so many. No extent
/// may be negative.
std::optional<std::size_t> arrayBytes(std::size_t element, const int64_t* shape, int num_dims);

}  // namespace passlib

#endif  // PASSLIB_TENSORS_H_
