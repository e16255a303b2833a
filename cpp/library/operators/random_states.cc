#include "library/operators/random_states.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "fork_mutex.h"

namespace passlib {
namespace {

/// MXNet 1.9.1 multiplies seeds by this, so that adjacent seeds share few generators.
constexpr uint32_t kSeedStride = 127;

struct Pool {
  ForkMutex<std::mutex> mutex;
  uint32_t seed = 0;
  uint64_t generation = 1;
  std::size_t made = 0;
  std::vector<std::unique_ptr<RandomLease::Set>> free;
};

Pool& pool() {
  // Never destroyed, since operators may run until the process ends.
  static Pool* instance = new Pool();
  return *instance;
}

}  // namespace

void seedRandomStates(uint32_t seed) {
  Pool& all = pool();
  const std::lock_guard<ForkMutex<std::mutex>> lock(all.mutex);
  all.seed = seed;
  ++all.generation;
}

RandomLease::RandomLease() {
  Pool& all = pool();
  uint32_t seed = 0;
  uint64_t generation = 0;
  {
    const std::lock_guard<ForkMutex<std::mutex>> lock(all.mutex);
    const auto first = std::min_element(
        all.free.begin(), all.free.end(),
        [](const auto& left, const auto& right) { return left->number < right->number; });
    if (first != all.free.end()) {
      set_ = std::move(*first);
      all.free.erase(first);
    } else {
      set_ = std::make_unique<Set>();
      set_->number = all.made++;
    }
    seed = all.seed;
    generation = all.generation;
  }
  if (set_->generation == generation) return;
  set_->states.resize(kCount);
  uint32_t next = seed * kSeedStride + static_cast<uint32_t>(set_->number * kCount);
  for (std::mt19937& state : set_->states) state.seed(next++);
  set_->generation = generation;
}

RandomLease::~RandomLease() {
  Pool& all = pool();
  const std::lock_guard<ForkMutex<std::mutex>> lock(all.mutex);
  all.free.push_back(std::move(set_));
}

}  // namespace passlib
