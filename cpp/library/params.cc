#include "library/params.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <utility>

#include "graph/text_table.h"
#include "header.h"

namespace passlib {
namespace {

using mxnet::ext::host::quoted;

}  // namespace

void ParamBlock::reserve(std::size_t count) {
  names_.reserve(count);
  data_.reserve(count);
  shapes_.reserve(count);
  dims_.reserve(count);
  types_.reserve(count);
  ids_.reserve(count);
  device_types_.reserve(count);
  device_ids_.reserve(count);
}

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

void ParamBlock::setOnDemand(std::size_t number, bool of_args, WeightPlace place) {
  places_.resize(names_.size());
  places_[number] = place;
  ids_[number] = (number + 1) * 2 + (of_args ? 1 : 0);
}

const WeightPlace* ParamBlock::onDemand(std::size_t id) const {
  const std::size_t number = numberOf(id);
  return id != 0 && number < places_.size() && ids_[number] == id ? &places_[number] : nullptr;
}

void Allocator::allocate(const void* self, const int64_t* shape, int num_dims, const char* dev_type,
                         int /*dev_id*/, int dtype, const char* name, int is_arg, void** data) {
  *data = nullptr;
  auto* allocator = const_cast<Allocator*>(static_cast<const Allocator*>(self));
  const std::lock_guard<std::mutex> lock(allocator->mutex_);
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
  refuseUnlessAccepted(is_arg, what);
  *data = memory.data();
  params_.push_back(NewParam{name, std::vector<int64_t>(shape, shape + num_dims), dtype, is_arg,
                             std::move(memory), std::nullopt});
}

void Allocator::refuseUnlessAccepted(bool is_arg, const std::string& what) {
  if ((is_arg ? accept_args_ : accept_aux_) || !error_.empty()) return;
  error_ = what + ", but optimize_for was given no " + (is_arg ? "args" : "aux") +
           " to put it into; pass " + (is_arg ? "args" : "aux") + "={} or your parameters";
}

void Allocator::read(const void* self, std::size_t id, const void** data) {
  *data = nullptr;
  auto* allocator = const_cast<Allocator*>(static_cast<const Allocator*>(self));
  const WeightPlace* place = allocator->args_.onDemand(id);
  if (place == nullptr) place = allocator->aux_.onDemand(id);
  if (place == nullptr) return;
  const std::lock_guard<std::mutex> lock(allocator->mutex_);
  try {
    *data = allocator->on_demand_.read(*place, id);
  } catch (const std::bad_alloc&) {
    if (!allocator->error_.empty()) return;
    allocator->error_ = "the pass reads a weight of " + std::to_string(place->size) +
                        " bytes, which the system does not have";
  }
}

void Allocator::refuseWrites() {
  const std::size_t id = on_demand_.written();
  if (id == 0 || !error_.empty()) return;
  const ParamBlock& block = args_.onDemand(id) != nullptr ? args_ : aux_;
  error_ = std::string("the pass wrote to the weight ") +
           quoted(block.names()[ParamBlock::numberOf(id)]) +
           ", which it got to read by readTensor(); alloc_arg makes another tensor";
}

int Allocator::scale(const void* self, std::size_t id, const double* factors, std::size_t count,
                     const char* name) {
  auto* allocator = const_cast<Allocator*>(static_cast<const Allocator*>(self));
  const std::lock_guard<std::mutex> lock(allocator->mutex_);
  try {
    return allocator->scaleOne(id, factors, count, name);
  } catch (const std::exception& error) {
    if (allocator->error_.empty()) allocator->error_ = error.what();
    return mxnet::ext::PassResource::kNotFinite;
  }
}

int Allocator::scaleOne(std::size_t id, const double* factors, std::size_t count,
                        const char* name) {
  const WeightPlace* const of_args = args_.onDemand(id);
  const WeightPlace* const place = of_args != nullptr ? of_args : aux_.onDemand(id);
  if (place == nullptr) return mxnet::ext::PassResource::kNotOnDemand;
  std::optional<Scaled> scaled = OnDemand::scaled(*place, factors, count);
  if (!scaled) return mxnet::ext::PassResource::kNotOnDemand;
  if (name == nullptr) {
    return scaled->isFinite() ? mxnet::ext::PassResource::kFinite
                              : mxnet::ext::PassResource::kNotFinite;
  }
  refuseUnlessAccepted(true, std::string("the pass makes arg ") + quoted(name));
  const ParamBlock& block = of_args != nullptr ? args_ : aux_;
  const std::size_t number = ParamBlock::numberOf(id);
  const int64_t* const shape = block.shapes()[number];
  params_.push_back(NewParam{name, std::vector<int64_t>(shape, shape + block.dims()[number]),
                             place->dtype, true, Buffer(),
                             ScaledParam{std::move(*scaled), of_args != nullptr, number}});
  return mxnet::ext::PassResource::kFinite;
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
