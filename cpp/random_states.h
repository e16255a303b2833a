// The random number generators that operators may draw from.
#ifndef PASSLIB_RANDOM_STATES_H_
#define PASSLIB_RANDOM_STATES_H_

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

namespace passlib {

/// Starts all generators anew, as MXNet's random.seed does: generator i gets 127 * seed + i.
void seedRandomStates(uint32_t seed);

/// A set of generators, lent for the time of one call. Calls one after the other, from whatever
/// thread, go on with the same set, so that a program's numbers are those that MXNet would give;
/// calls at the same time get sets of their own.
class RandomLease {
 public:
  /// How many generators there are; the number is part of the ABI.
  static constexpr std::size_t kCount = 1024;

  struct Set {
    std::size_t number = 0;  ///< in the order in which sets were first needed
    uint64_t generation = 0;
    std::vector<std::mt19937> states;
  };

  RandomLease();
  ~RandomLease();
  RandomLease(const RandomLease&) = delete;
  RandomLease& operator=(const RandomLease&) = delete;

  std::mt19937* states() { return set_->states.data(); }

 private:
  std::unique_ptr<Set> set_;
};

}  // namespace passlib

#endif  // PASSLIB_RANDOM_STATES_H_
