// Parameters of models, as they cross to a library and back.
#ifndef PASSLIB_LIBRARY_PARAMS_H_
#define PASSLIB_LIBRARY_PARAMS_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "library/entry_points.h"
#include "library/memory.h"
#include "library/stable_items.h"
#include "library/weights/on_demand.h"

namespace passlib {

/// Parameters by column, as the entry points take them. Owns names and shapes; data is borrowed
/// from the caller.
class ParamBlock {
 public:
  ParamBlock() = default;
  ParamBlock(ParamBlock&&) = default;
  ParamBlock(const ParamBlock&) = delete;
  ParamBlock& operator=(const ParamBlock&) = delete;

  /// Makes room for as many parameters.
  void reserve(std::size_t count);

  /// Returns the place of its sizes, `dims` of them, which the caller sets.
  int64_t* add(std::string_view name, void* data, std::size_t dims, int dtype);

  /// Sets the memory of a parameter.
  void setData(std::size_t number, void* data) { data_[number] = data; }

  /// Lends a parameter on demand, in a block of arguments or of states.
  void setOnDemand(std::size_t number, bool of_args, WeightPlace place);
  /// Returns the place of the parameter with an ID; null unless it is one on demand of this block.
  const WeightPlace* onDemand(std::size_t id) const;
  /// Returns the number of the parameter with an ID.
  static std::size_t numberOf(std::size_t id) { return id / 2 - 1; }

  int count() const { return static_cast<int>(names_.size()); }
  const char* const* names() const { return names_.data(); }
  void* const* data() const { return data_.data(); }
  const int64_t* const* shapes() const { return shapes_.data(); }
  const int* dims() const { return dims_.data(); }
  const int* types() const { return types_.data(); }

  /// All columns, in the order of passCallGraphPass_t.
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
  std::vector<WeightPlace> places_;  ///< empty unless parameters are lent on demand
};

/// The elements of a new parameter, made from one that was lent on demand.
struct ScaledParam {
  Scaled elements;
  bool of_arg;         ///< whether that one is among the arguments
  std::size_t number;  ///< of that one
};

/// A parameter that a pass made.
struct NewParam {
  std::string name;
  std::vector<int64_t> shape;
  int dtype;
  bool is_arg;
  Buffer memory;  ///< unless it is scaled
  std::optional<ScaledParam> scaled;
};

/// Serves a pass's alloc_arg and alloc_aux, and weights on demand. A refused request is recorded as
/// an error, which makes the call fail whatever the pass returns. Threads of the pass may call at
/// the same time.
class Allocator {
 public:
  /// `accept_*`: whether the caller gave a dictionary that can take new parameters. The blocks live
  /// as long as this object.
  Allocator(bool accept_args, bool accept_aux, const ParamBlock& args, const ParamBlock& aux)
      : accept_args_(accept_args), accept_aux_(accept_aux), args_(args), aux_(aux) {}

  /// The nd_malloc of the ABI; `self` is an Allocator.
  static void allocate(const void* self, const int64_t* shape, int num_dims, const char* dev_type,
                       int dev_id, int dtype, const char* name, int is_arg, void** data);

  /// See readWeight_t and scaleWeight_t of the header; `self` is an Allocator.
  static void read(const void* self, std::size_t id, const void** data);
  static int scale(const void* self, std::size_t id, const double* factors, std::size_t count,
                   const char* name);

  const std::string& error() const { return error_; }
  /// After the call: refuses it if the pass wrote to weights that it read on demand.
  void refuseWrites();
  /// Returns the parameters in order of allocation; of equal names only the last.
  std::vector<NewParam> take();

 private:
  void allocateOne(const int64_t* shape, int num_dims, const char* dev_type, int dtype,
                   const char* name, bool is_arg, void** data);
  void refuseUnlessAccepted(bool is_arg, const std::string& what);
  int scaleOne(std::size_t id, const double* factors, std::size_t count, const char* name);

  bool accept_args_;
  bool accept_aux_;
  const ParamBlock& args_;
  const ParamBlock& aux_;
  std::mutex mutex_;  ///< of what follows
  OnDemand on_demand_;
  std::string error_;
  std::vector<NewParam> params_;
};

}  // namespace passlib

#endif  // PASSLIB_LIBRARY_PARAMS_H_
