// Parameters of models, as they cross to a library and back.
#ifndef PASSLIB_LIBRARY_PARAMS_H_
#define PASSLIB_LIBRARY_PARAMS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "library/memory.h"
#include "library/stable_items.h"

namespace passlib {

/// Parameters by column, as the entry points take them. Owns names and shapes; data is borrowed
/// from the caller.
class ParamBlock {
 public:
  ParamBlock() = default;
  ParamBlock(ParamBlock&&) = default;
  ParamBlock(const ParamBlock&) = delete;
  ParamBlock& operator=(const ParamBlock&) = delete;

  /// Returns the place of its sizes, `dims` of them, which the caller sets.
  int64_t* add(std::string_view name, void* data, std::size_t dims, int dtype);

  /// Sets the memory of a parameter.
  void setData(std::size_t number, void* data) { data_[number] = data; }

  int count() const { return static_cast<int>(names_.size()); }
  const char* const* names() const { return names_.data(); }
  void* const* data() const { return data_.data(); }
  const int64_t* const* shapes() const { return shapes_.data(); }
  const int* dims() const { return dims_.data(); }
  const int* types() const { return types_.data(); }

  /// All columns, in the order of PASSLIB_PARAM_BLOCK.
  auto columns() const {
    return std::make_tuple(names(), count(), data(), shapes(), dims(), types(), ids_.data(),
                           device_types_.data(), device_ids_.data());
  }

 private:
  StableItems<char> name_texts_;
  StableItems<int64_t> shape_lists_;
  std::vector<const char*> names_;
  std::vector<void*> data_;
  std::vector<const int64_t*> shapes_;
  std::vector<int> dims_;
  std::vector<int> types_;
  std::vector<size_t> ids_;
  std::vector<const char*> device_types_;
  std::vector<int> device_ids_;
};

/// A parameter that a pass allocated.
struct NewParam {
  std::string name;
  std::vector<int64_t> shape;
  int dtype;
  bool is_arg;
  Buffer memory;
};

/// Serves a pass's alloc_arg and alloc_aux. A refused request is recorded as an error, which makes
/// the call fail whatever the pass returns.
class Allocator {
 public:
  /// `accept_*`: whether the caller gave a dictionary that can take new parameters.
  Allocator(bool accept_args, bool accept_aux)
      : accept_args_(accept_args), accept_aux_(accept_aux) {}

  /// The nd_malloc of the ABI; `self` is an Allocator.
  static void allocate(const void* self, const int64_t* shape, int num_dims, const char* dev_type,
                       int dev_id, int dtype, const char* name, int is_arg, void** data);

  const std::string& error() const { return error_; }
  /// Returns the parameters in order of allocation; of equal names only the last.
  std::vector<NewParam> take();

 private:
  void allocateOne(const int64_t* shape, int num_dims, const char* dev_type, int dtype,
                   const char* name, bool is_arg, void** data);

  bool accept_args_;
  bool accept_aux_;
  std::string error_;
  std::vector<NewParam> params_;
};

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_PARAMS_H_
