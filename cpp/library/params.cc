#include "library/params.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <utility>

#include "graph/text_table.h"
#include "lib_api.h"

namespace passlib {
namespace {

using mxnet::ext::host::quoted;

}  // namespace

int64_t* ParamBlock::add(std::string_view name, void* data, std::size_t dims, int dtype) {
  char* const text = name_texts_.add(name.size() + 1);
  *std::copy(name.begin(), name.end(), text) = '\0';
  int64_t* const sizes = shape_lists_.add(dims);
  names_.push_back(text);
  data_.push_back(data);
  shapes_.push_back(sizes);
  dims_.push_back(static_cast<int>(dims));
  types_.push_back(dtype);
  ids_.push_back(0);
  device_types_.push_back("cpu");
  device_ids_.push_back(0);
  return sizes;
}

void Allocator::allocate(const void* self, const int64_t* shape, int num_dims, const char* dev_type,
                         int /*dev_id*/, int dtype, const char* name, int is_arg, void** data) {
  *data = nullptr;
  auto* allocator = const_cast<Allocator*>(static_cast<const Allocator*>(self));
  try {
    allocator->allocateOne(shape, num_dims, dev_type, dtype, name, is_arg != 0, data);
  } catch (const std::exception& error) {  // must not unwind through the library
    if (allocator->error_.empty()) allocator->error_ = error.what();
  }
}

void Allocator::allocateOne(const int64_t* shape, int num_dims, const char* dev_type, int dtype,
                            const char* name, bool is_arg, void** data) {
  const char* kind = is_arg ? "arg" : "aux";
  const std::string what = std::string("the pass allocates ") + kind + " " + quoted(name);
  const auto refuse = [&](const std::string& reason) {
    if (error_.empty()) error_ = what + reason;
  };
  const std::size_t element = elementSize(dtype);
  if (element == 0) return refuse(" with the unknown dtype code " + std::to_string(dtype));
  if (num_dims < 0 || num_dims > kMostDims) {
    return refuse(" with " + std::to_string(num_dims) + " dimensions; 0 to " +
                  std::to_string(kMostDims) + " are possible");
  }
  for (int i = 0; i < num_dims; ++i) {
    if (shape[i] < 0) {
      return refuse(" with the negative extent " + std::to_string(shape[i]));
    }
  }
  const std::optional<std::size_t> counted = arrayBytes(element, shape, num_dims);
  if (!counted) return refuse(" with more elements than fit in memory");
  const std::size_t bytes = *counted;
  Buffer memory;
  try {
    memory = Buffer(bytes, false);
  } catch (const std::bad_alloc&) {
    return refuse(" of " + std::to_string(bytes) + " bytes, which the system does not have");
  }
  // From here on the pass gets memory even if the call must fail: libraries built with MXNet's own
  // lib_api do not check for null.
  if (std::strcmp(dev_type, "cpu") != 0) {
    refuse(" on device " + quoted(dev_type) + "; only the cpu is supported");
  }
  if (is_arg ? !accept_args_ : !accept_aux_) {
    refuse(std::string(", but optimize_for was given no ") + kind + (is_arg ? "s" : "") +
           " to put it into; pass " + (is_arg ? "args" : "aux") + "={} or your parameters");
  }
  *data = memory.data();
  params_.push_back(NewParam{name, std::vector<int64_t>(shape, shape + num_dims), dtype, is_arg,
                             std::move(memory)});
}

std::vector<NewParam> Allocator::take() {
  TextViewSet known[2];
  for (TextViewSet& names : known) names.reserve(params_.size());
  std::vector<bool> last(params_.size());
  for (std::size_t i = params_.size(); i-- > 0;) {
    last[i] = known[params_[i].is_arg ? 1 : 0].insert(params_[i].name).second;
  }
  std::vector<NewParam> kept;
  kept.reserve(params_.size());
  for (std::size_t i = 0; i < params_.size(); ++i) {
    if (last[i]) kept.push_back(std::move(params_[i]));
  }
  params_.clear();
  return kept;
}

}  // namespace passlib
