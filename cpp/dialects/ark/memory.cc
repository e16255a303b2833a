#include "dialects/ark/memory.h"

#include <algorithm>
#include <string>

namespace passlib::ark {
namespace {

constexpr std::size_t kMostParts = 64;
/// Of comparisons of parts in one file; Python refuses more.
constexpr std::size_t kMostSteps = 300'000;
constexpr int64_t kMostBytes = int64_t{1} << 58;

bool isWhole(const Tensor& tensor) { return tensor.shape == tensor.strides; }

bool isSamePart(const Tensor& left, const Tensor& right) {
  return left.shape == right.shape && left.strides == right.strides &&
         left.offsets == right.offsets && left.dtype == right.dtype;
}

}  // namespace

Memory::Memory(const Ops& ops, const std::vector<int32_t>& makers, const Schema& schema)
    : tensors_(ops.tensors), schema_(schema) {
  IdIndex known;
  places_.reserve(tensors_.size());
  for (const Tensor& tensor : tensors_) {
    const auto fresh = static_cast<int32_t>(buffers_.size());
    const int32_t place = known.add(tensor.buffer, fresh);
    if (place == IdIndex::kNone) buffers_.emplace_back();
    places_.push_back(place == IdIndex::kNone ? fresh : place);
  }
  findInputs(ops);
  for (const Op& op : ops.ops) {
    for (const Tensors* list : {&op.reads, &op.writes}) {
      for (const int32_t tensor : *list) {
        Buffer& buffer = of(tensor);
        if (!buffer.is_input || makers[static_cast<std::size_t>(tensor)] != kNone) continue;
        if (buffer.described == kNone) buffer.described = tensor;
        buffer.has_several = buffer.has_several || buffer.described != tensor;
      }
    }
  }
}

void Memory::findInputs(const Ops& ops) {
  std::vector<bool> seen(buffers_.size(), false);
  const auto see = [&](int32_t tensor) {
    const auto place = static_cast<std::size_t>(places_[static_cast<std::size_t>(tensor)]);
    const bool before = seen[place];
    seen[place] = true;
    return before;
  };
  for (const Op& op : ops.ops) {
    if (op.isVirtual()) continue;
    for (const int32_t read : op.reads) {
      const Tensor& tensor = tensors_[static_cast<std::size_t>(read)];
      if (!see(read)) of(read).is_input = tensor.isOf(ops.rank) && !tensor.is_received;
    }
    for (const int32_t written : op.writes) see(written);
  }
}

void Memory::write(int32_t result) {
  const Tensor& tensor = tensors_[static_cast<std::size_t>(result)];
  Tensors& parts = of(result).parts;
  const auto described = [this](int32_t part) -> const Tensor& {
    return tensors_[static_cast<std::size_t>(part)];
  };
  const auto replaced = std::find_if(parts.begin(), parts.end(), [&](int32_t part) {
    return isSamePart(described(part), tensor);
  });
  if (replaced != parts.end()) parts.erase(replaced);
  if (isWhole(tensor)) {
    steps_ += parts.size();
    const int64_t size = sizeOf(tensor);
    const auto covered = [&](int32_t part) { return sizeOf(described(part)) <= size; };
    parts.erase(std::remove_if(parts.begin(), parts.end(), covered), parts.end());
  }
  parts.push_back(result);
  require(parts.size() <= kMostParts && steps_ <= kMostSteps);
}

int64_t Memory::sizeOf(const Tensor& tensor) const {
  const auto known = schema_.item_sizes.find(std::string(tensor.dtype));
  int64_t size = known == schema_.item_sizes.end() ? 1 : known->second;
  for (const int64_t stride : tensor.strides) {
    require(size <= kMostBytes / stride);
    size *= stride;
  }
  return size;
}

}  // namespace passlib::ark
